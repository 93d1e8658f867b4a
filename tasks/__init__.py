"""The stages: each resolves handles, makes one call into ``dpmodels``, stores the result and returns a handle."""

from tasks.pools import preset_pools

preset_pools()  # before any of them imports a library that starts a thread a core
