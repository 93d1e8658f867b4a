"""The privacy account: what a release costs, what costs add up to, and the ledger that refuses the rest."""
