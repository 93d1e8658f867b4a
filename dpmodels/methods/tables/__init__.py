"""Systems for tables that measure sums and choose among them."""
