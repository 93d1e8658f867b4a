"""A run and its home: files by who may write them, the account that pays, locks, and what is received."""
