"""The only noise in the library: every draw is exact, on integers, and takes its randomness from the system."""
