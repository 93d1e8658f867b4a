"""What a report says of single figures: shares, means, rates of the target, and how columns depend on each other."""
