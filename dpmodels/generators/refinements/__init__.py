"""What is done to the rows that a mixture draws: labels drawn anew, and values coupled within their cells."""
