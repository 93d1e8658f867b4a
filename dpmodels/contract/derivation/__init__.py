"""Columns that follow from others, and the bounds that such a column may have."""
