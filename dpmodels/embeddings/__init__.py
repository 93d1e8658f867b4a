"""Bounded feature maps: what is summed over the records and released once."""
