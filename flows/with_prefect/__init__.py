"""What Prefect is told, and asked: the only room of the flows that imports it, and no earlier than it is used."""
