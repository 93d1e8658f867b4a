"""What is handed over: the manifest, its signature, and the check that whoever receives it can make."""
