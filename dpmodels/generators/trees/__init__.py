"""Mixtures of the flat tables of a tree: drawn given what is known, from the root down."""
