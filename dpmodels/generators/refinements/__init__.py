"""What is done to the rows that are drawn: labels drawn anew, values coupled, exchanged and redrawn in their cells."""
