"""The stages: each resolves handles to files, calls ``dpmodels`` once, stores the result and returns a handle."""
