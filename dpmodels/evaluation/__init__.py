"""How good is the synthetic table: scores against real data stay sensitive, everything else is a summary of releases."""
