"""What a release costs and what costs add up to: pure mathematics, no database."""
