"""Run SDV's HMA on tables that join by keys; started by benchmarks.trees inside an environment of SDV's own."""

import json
import sys
import warnings
from pathlib import Path

import pandas as pd
from sdv.metadata import Metadata
from sdv.multi_table import HMASynthesizer

warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
task = json.loads((folder / "task.json").read_text())
real = {name: pd.read_csv(folder / f"real-{name}.csv") for name in task["metadata"]["tables"]}
synthesizer = HMASynthesizer(Metadata.load_from_dict(task["metadata"]), verbose=False)
synthesizer.fit(real)
for seed in task["seeds"]:  # a draw goes on where the one before it ended
    made = synthesizer.sample(len(real[task["root"]]), main_table_name=task["root"])
    for name, table in made.items():
        table.to_csv(folder / f"made-{seed}-{name}.csv", index=False)
