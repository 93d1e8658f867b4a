"""Who has paid: accounts, charges and their caps in an append-only, hash-chained SQL ledger that refuses the rest."""
