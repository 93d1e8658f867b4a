"""The figures of the synthetic rows that a report states, counted again in the rows that are handed over."""
