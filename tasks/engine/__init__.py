"""What computes: threads, a cluster, and how they are kept silent and shown."""
