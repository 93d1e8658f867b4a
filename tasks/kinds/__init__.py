"""What the stages ask of each kind of contract."""
