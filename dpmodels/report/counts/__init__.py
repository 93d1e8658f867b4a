"""The noisy tables of a release: their cells as rows, and their most likely counts."""
