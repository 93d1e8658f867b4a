"""What the report says to everybody: made of releases, charged scores and synthetic rows, never of real ones."""
