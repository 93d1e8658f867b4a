"""The only noise in the library: every draw is exact, on integers, from system randomness."""
