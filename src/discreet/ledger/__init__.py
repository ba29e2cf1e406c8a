"""The privacy budget: promise, cost and releases, in one file that shows tampering."""
