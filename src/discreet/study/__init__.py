"""Compute the figures and tables of the paper, and more, for public or made-up scores, and plan releases."""
