"""How numbers and dates are written where raw data are text."""
