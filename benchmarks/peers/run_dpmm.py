"""Run one method of dpmm on cell numbers; started by benchmarks.peers inside dpmm's own environment."""

import json
import sys
from pathlib import Path

import fast_dpmm
import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

PIPELINES = {"aim": AIMPipeline, "aim-target": AIMPipeline, "mst": MSTPipeline, "priv-bayes": PrivBayesPipeline}

folder = Path(sys.argv[1])
task = json.loads((folder / "task.json").read_text())
real = pd.read_csv(folder / "real.csv")
domain = task["sizes"]
options = {"n_jobs": 1, "disable_processing": True}
fast_dpmm.install()
if task["method"].startswith("aim"):
    options["max_model_size"] = 80  # its published default, in megabytes
if task["method"] == "aim-target":
    fast_dpmm.aim_for(task["target"])
pipeline = PIPELINES[task["method"]](epsilon=task["epsilon"], delta=task["delta"], **options)
pipeline.fit(real, domain, random_state=task["seed"])
pipeline.generate(n_records=len(real), random_state=task["seed"]).to_csv(folder / "synthetic.csv", index=False)
