"""How numbers, dates and conditions are written where they come as text."""
