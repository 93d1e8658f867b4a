"""Opacus' accountant beside ours: two programs that were written apart find the same price."""

from decimal import Decimal

import pytest

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import (
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    SampledGaussianEvent,
)
from dpmodels.accounting.prv import PRV_ERROR, prv_epsilon
from dpmodels.errors import Unsuitable
from tests.kit.errors import refused
from tests.kit.support import run_cli, write_clinic

pytest.importorskip("opacus")
STEPS = SampledGaussianEvent(noise_multiplier=2.0, sampling_probability=0.02, steps=600)
RELEASES: dict[str, list[Event]] = {
    "one Gaussian release": [GaussianEvent(noise_multiplier=4.0)],
    "steps": [SampledGaussianEvent(noise_multiplier=1.1, sampling_probability=0.01, steps=2000)],
    "looks, then steps": [GaussianEvent(noise_multiplier=8.0), GaussianEvent(noise_multiplier=5.0), STEPS],
    "the heavier of two parts": [
        ParallelEvent(by="cluster", events=(STEPS, GaussianEvent(noise_multiplier=2.0))),
    ],
}


@pytest.mark.parametrize("name", RELEASES)
def test_the_price_is_that_of_opacus_within_its_error(name: str) -> None:
    ours = float(spent_epsilon(RELEASES[name], Decimal("1e-5")))
    assert ours - 1e-3 <= prv_epsilon(RELEASES[name], 1e-5) <= ours + 2 * PRV_ERROR


def test_what_the_accountant_does_not_know_is_said() -> None:
    with refused(Unsuitable, "Gaussian releases and Poisson samples alone"):
        prv_epsilon([STEPS, LaplaceEvent(noise_multiplier=3.0)], 1e-5)
    with refused(Unsuitable, "epsilon above 30"):
        prv_epsilon([SampledGaussianEvent(noise_multiplier=0.5, sampling_probability=0.1, steps=20_000)], 1e-5)
    with refused(Unsuitable, "its grid does not hold"):
        prv_epsilon([GaussianEvent(noise_multiplier=4.0)], 1e-100)
    with refused(Unsuitable, "below 0.3"):
        prv_epsilon([GaussianEvent(noise_multiplier=0.2)], 1e-5)


def test_a_plan_that_is_explained_has_the_figures_of_other_accountants(tmp_path, capsys) -> None:
    data, schema, _ = write_clinic(tmp_path)
    words = ("plan", data, "--schema", schema, "--epsilon", 1, "--delta", 1e-5, "--home", tmp_path / "home")
    assert "accountants" not in run_cli(*words)[1]
    code, out, err = run_cli(*words, "--explain")
    assert code == 0 and err.startswith("values are not read by a plan: `nacre validate") and err.count("\n") == 1
    said = [line.removeprefix("other accountants: ") for line in out.splitlines() if line.startswith("other acc")]
    figures = dict(line.split(": ", 1) for line in said[1:])
    price, renyi = (float(figures[name].removeprefix("epsilon=")) for name in ("charged", "by Renyi divergences"))
    prv = float(figures["by Opacus' PRV accountant"].removeprefix("epsilon=").split(",")[0])
    assert abs(prv - price) < 2 * PRV_ERROR and price < renyi
