"""The flows: one pipeline a file, the command line, and the Prefect server a run brings along."""
