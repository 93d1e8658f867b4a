"""What a release costs and what several releases cost together: pure mathematics, no database."""
