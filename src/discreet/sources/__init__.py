"""Sources of scores. A source has a tally, its items by rank, and the sensitivity of its scores."""
