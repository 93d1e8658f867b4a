"""What a report says of columns, held against the schema, and against what figures can be."""
