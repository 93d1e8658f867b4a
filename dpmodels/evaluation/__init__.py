"""How good is the synthetic table: scores against real data stay sensitive; the rest is a summary of releases."""
