"""Small made data sets: no record of anybody is in them, so whatever is done with them is free."""
