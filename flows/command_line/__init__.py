"""The command line: one module for each group of commands, and modules that print."""
