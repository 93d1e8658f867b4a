"""Documents: sentences, public encoders, and the public candidates among which a document's embedding is chosen."""
