"""A federation over several machines, as a Flower app: the server's side, each client's side, and what they exchange.

The bundle that Flower sends around holds no code. It names this package, which every party has installed by itself, so
a client runs what it chose to install. Only ``app`` objects know Flower; the rest are plain functions.
"""
