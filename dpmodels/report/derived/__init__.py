"""What a report says of columns that follow from others: their shares and quantiles, and their means."""
