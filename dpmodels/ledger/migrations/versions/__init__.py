"""The migrations, one in each file."""
