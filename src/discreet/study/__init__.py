"""The paper's figures and tables, and what it left out, computed anew: one page, for public or made-up scores."""
