"""Sums of bounded points whose norm is proved, and what is read off them; no noise."""
