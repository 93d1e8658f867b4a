"""Run one method of SmartNoise on cell numbers; started by benchmarks.peers inside SmartNoise's own environment."""

import json
import sys
from pathlib import Path

import pandas as pd
from snsynth import Synthesizer

folder = Path(sys.argv[1])
task = json.loads((folder / "task.json").read_text())
real = pd.read_csv(folder / "real.csv")
synthesizer = Synthesizer.create(task["method"], epsilon=task["epsilon"], delta=task["delta"])
synthesizer.fit(real, categorical_columns=list(real.columns), preprocessor_eps=0.0)
synthesizer.sample(len(real)).astype("int32").to_csv(folder / "synthetic.csv", index=False)
