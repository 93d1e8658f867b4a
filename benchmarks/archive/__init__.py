"""Comparisons that are concluded: docs/benchmarks-archive.md has their answers, and no change asks them anew."""
