"""Who has paid: an append-only, hash-chained SQL ledger of accounts and charges, which refuses charges above a cap."""
