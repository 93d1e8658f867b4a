"""What is public of a data set: its columns and the rules between them, units, documents, federations, discovery."""
