"""Facts of a hand-off as other people's registries keep them."""
