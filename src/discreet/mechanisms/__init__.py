"""The mechanisms, one file each, all of the shape in `base`."""
