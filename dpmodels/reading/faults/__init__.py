"""What is wrong with data that cannot be read, said without a value of it."""
