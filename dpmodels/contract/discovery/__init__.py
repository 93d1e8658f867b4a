"""What a schema leaves to be discovered, what its draft is checked by, and what was paid for it."""
