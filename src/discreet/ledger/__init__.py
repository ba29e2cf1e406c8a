"""The privacy budget: promise, cost and releases, in one file or table that shows tampering."""
