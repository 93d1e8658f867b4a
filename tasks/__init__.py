"""The stages: each resolves handles, makes one call into ``dpmodels``, stores the result and returns a handle."""
