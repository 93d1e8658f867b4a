"""What numbers are on average in each group of other columns, as a release counts them."""
