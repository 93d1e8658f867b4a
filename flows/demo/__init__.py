"""The demo: the whole pipeline on what 15,992 men earned in three years, a real public table (earnings.yaml)."""

import json
import shutil
from pathlib import Path

from dpmodels.authoring.lint import load_schema
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget
from flows.config import SynthesizeConfig
from flows.synthesize import synthesize
from tasks.run.store import Run

SCHEMA, TABLE = (Path(__file__).with_name(name) for name in ("earnings.yaml", "earnings.parquet"))
CODEBOOK = Path(__file__).with_name("codebook.csv")  # what a schema of one's own is drafted of
EPSILON, DELTA, CAP = 1.0, 1e-5, 10.0
"""The delta is a round one, as papers have it; for 15,992 men it is above the rule of thumb, a tenth of one over their
number, so that the pages of the demo show how they warn of that."""
MODEL: dict[str, object] = {}  # the defaults
STATEMENT = {
    "purpose": "To show what a hand-off is",
    "subjects": "US men of 16 to 55, minors among them: a survey of 1976 linked to Social Security earnings",
    "special_categories": "ethnicity: ethnic origin. No condition of Art. 9 is claimed; who uses it under the GDPR "
    "must find one",
    "legal_basis": "None claimed: a US public-use file, as an example; who uses it under the GDPR must find their own",
    "compatibility": "None weighed: the file was published for research, and shows a method here",
    "information": "None given: the demo shows a public survey of 1976 that names nobody",
    "minors": "Minors of 16 and 17 are among the men; nothing is done for them, since the survey is public",
    "processor": "None: whoever runs the demo does so for themselves",
    "contact": "A. Example, demo@nacre.example (made up: a demo has no contact)",
    "recipient": "Anybody who runs the demo, or reads it as an example",
    "recipient_retention": "No day is set, since the data are a public file",
    "license": "None claimed: a public-use survey file of the United States, shown as an example",
    "why": "A row is a man; epsilon, delta and the cap of 10 are an example's, which nobody chose for a purpose",
    "retention": "No day is set, since the data are a public file: as long as the folder of the demo is kept",
    "release_retention": "No day is set, since the data are a public file: as long as the folder of the demo is kept",
}
"""What an operator would say of a hand-off; the demo has no controller or signer, so it names none."""


def run_demo(folder: Path) -> Run:
    """Run the demo in ``folder``; every run there is charged to the same account, until its cap is reached."""
    home, data = folder / "home", folder / TABLE.name
    folder.mkdir(parents=True, exist_ok=True)
    for file in (SCHEMA, TABLE, CODEBOOK):
        shutil.copy(file, folder)
    schema = load_schema(SCHEMA)
    cap = PrivacyBudget(epsilon=CAP, delta=DELTA, unit=schema.unit)
    Ledger(home / "ledger.sqlite").open_account(schema.name, dataset=schema.name, budget_cap=cap, note="demo")
    out = next(out for n in range(1, 10_000) if not (out := folder / f"hand-off-{n}").exists())
    options = {"data": data, "schema": SCHEMA, "out": out, "model": MODEL, "statement": STATEMENT}
    privacy = {"target_epsilon": EPSILON, "delta": DELTA}
    config = SynthesizeConfig.build({**options, "privacy": privacy, "runtime": {"home": home}})
    return synthesize(config)


def describe_utility(run: Run) -> str:
    """Say how well the target is predicted, in exact scores, which may be shown because the table is public.

    For your data such scores stay in the internal report.
    """
    internal = json.loads((run.sensitive / "internal-report.json").read_text())
    utility = internal["metrics"]["utility of the target"]["result"]
    return (
        f"predicting {run.plan.release.table.target} on held-out real rows, {utility['metric']}: "
        f"{utility['tstr']:.3f} trained on synthetic, {utility['trtr']:.3f} trained on real rows"
    )
