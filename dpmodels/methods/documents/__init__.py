"""Systems for documents."""
