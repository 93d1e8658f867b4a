"""What a person gives a draft."""
