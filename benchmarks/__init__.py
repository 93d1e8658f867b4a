"""Published tables we answer to, each one command: ``python -m benchmarks.NAME [--quick] [--json FILE]``."""
