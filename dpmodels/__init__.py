"""The pure library: privacy types, schema, mechanisms, accounting, embeddings, generators and synthesizers."""
