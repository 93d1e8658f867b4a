"""A configuration of a run that trains briefly."""

from pathlib import Path

from flows.config import SynthesizeConfig


def config(folder: Path, **changes: object) -> SynthesizeConfig:
    settings = {
        "data": folder / "clinic.parquet",
        "schema": folder / "clinic.yaml",
        "out": folder / "out",
        "privacy": {"target_epsilon": 1.0, "delta": 1e-5, "report_epsilon": 0.5},
        "runtime": {"home": folder / "home", "prefect": False},
    }
    return SynthesizeConfig.build({**settings, **changes}, folder / "config.yaml")
