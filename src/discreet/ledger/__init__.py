"""The privacy budget: what was promised, what is spent, and every release, in one file that shows tampering."""
