"""The rows that are handed over: their columns and number, and the synthetic figures of a report counted again in them."""
