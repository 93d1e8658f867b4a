"""What fits of one release differ by."""
