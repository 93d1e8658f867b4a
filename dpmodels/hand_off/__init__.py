"""What is handed over: the manifest, its signature, and the check that a recipient can make."""
