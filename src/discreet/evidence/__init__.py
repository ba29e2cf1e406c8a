"""Evidence that epsilon holds: exactly on small inputs, and statistically through the front door."""
