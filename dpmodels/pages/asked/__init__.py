"""What is asked of a person before files leave, and what an officer asks of the files."""
