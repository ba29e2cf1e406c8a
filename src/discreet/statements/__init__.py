"""What a release says about itself: a text for people, and an entry for the public registry of deployments."""
