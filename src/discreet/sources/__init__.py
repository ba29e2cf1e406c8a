"""Where scores come from. A source knows the tally, its items by rank, and what one user can do to its scores."""
