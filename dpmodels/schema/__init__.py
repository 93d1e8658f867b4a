"""The public contract of a table: its columns, their bounds, and the one encoding every synthesizer reads."""
