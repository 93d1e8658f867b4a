"""Print the folder of the Flower app: ``flwr run "$(python -m nacre.flower)"``."""

from pathlib import Path

print(Path(__file__).parent / "app")
