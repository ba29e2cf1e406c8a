"""What can be computed about a mechanism from the scores: for public or made-up data, never for private data."""
