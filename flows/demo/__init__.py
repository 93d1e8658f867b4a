"""The demo: the whole pipeline on the RAND Health Insurance Experiment, a real public table of 20,190 person-years."""

import json
import shutil
from pathlib import Path

from dpmodels.authoring.lint import load_schema
from dpmodels.errors import NacreError
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget
from flows.config import SynthesizeConfig
from flows.synthesize import synthesize
from tasks.run.store import Run

SCHEMA = Path(__file__).with_name("randhie.yaml")
EPSILON, DELTA, CAP = 1.0, 1e-5, 10.0
MODEL: dict[str, object] = {}  # the defaults


def run_demo(folder: Path) -> Run:
    """Run the demo in ``folder``; every run there is charged to the same account, until its cap is reached.

    Raises:
        NacreError: statsmodels, which ships the data, is not installed.
    """
    home, data = folder / "home", folder / "randhie.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    if not data.exists():
        _fetch(data)
    shutil.copy(SCHEMA, folder)
    schema = load_schema(SCHEMA)
    cap = PrivacyBudget(epsilon=CAP, delta=DELTA, unit=schema.unit)
    Ledger(home / "ledger.sqlite").open_account("randhie", dataset=schema.name, budget_cap=cap, note="demo")
    out = next(out for n in range(1, 10_000) if not (out := folder / f"hand-off-{n}").exists())
    options = {"data": data, "schema": SCHEMA, "out": out, "model": MODEL, "runtime": {"home": home}}
    config = SynthesizeConfig.build({**options, "privacy": {"target_epsilon": EPSILON, "delta": DELTA}})
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


def _fetch(target: Path) -> None:
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        raise NacreError("the demo's data comes with statsmodels: pip install 'nacre[demo]'") from None
    randhie.load_pandas().data.to_parquet(target, index=False)
