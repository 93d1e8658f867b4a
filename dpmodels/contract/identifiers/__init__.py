"""Columns that name a record or a user: what becomes of them, and the patterns that they are made after."""
