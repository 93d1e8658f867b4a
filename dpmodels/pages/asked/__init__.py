"""What is asked of a person before files leave."""
