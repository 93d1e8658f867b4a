"""Faults of a schema that stand beside others."""
