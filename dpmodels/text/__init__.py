"""Documents: their sentences, the public functions that embed them, and how deep a public candidate lies among them."""
