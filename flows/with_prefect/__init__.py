"""All exchange with Prefect: the only package of the flows that imports it, and only when it is used."""
