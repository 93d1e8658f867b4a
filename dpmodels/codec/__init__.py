"""Rows as whole numbers and back, and which rows keep a rule; each row by itself."""
