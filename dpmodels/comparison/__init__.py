"""Scores against real rows: they cost nothing, are as sensitive as the rows, and never leave."""
