"""The rows that are handed over: their columns and number, and synthetic figures of a report counted in them again."""
