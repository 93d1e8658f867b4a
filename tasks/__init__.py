"""The stages: each resolves handles to files, calls ``dpmodels`` once, stores the result and returns a handle."""

from tasks.engine.pools import preset_pools

preset_pools()  # before a stage imports a library that starts one thread for each core
