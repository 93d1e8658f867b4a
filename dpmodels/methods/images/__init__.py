"""Systems for images."""
