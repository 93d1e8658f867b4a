"""What a release says of the groups that columns make: means of numbers, and rates of the target."""
