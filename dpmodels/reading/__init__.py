"""Data as batches in bounded memory: files, object stores, databases, pictures, and rows in memory."""
