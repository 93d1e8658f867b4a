"""Every planted fault is noticed by the check that is named for it, and without the fault that check holds."""

import re
from pathlib import Path

import pytest

from dpmodels.audit.findings import Finding
from dpmodels.errors import NacreError
from tests.audit.faults import Fault, Run
from tests.audit.of_users import FAULTS

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


def failing(run: Run, folder: Path) -> set[str]:
    """Return the checks that fail; a measurement that another driver would have refused is one of neighbors."""
    try:
        found = run(folder)
    except NacreError as refused:
        found = [Finding(check="neighbors", holds=False, says=str(refused))]
    return {one.check for one in found if not one.holds}


SLOWEST = ("a part charged once for two", "shuffled batches", "shared latent draws", "a part is summed twice")
SLOWEST += ("files with their times", "scores that are called monotonic", "a counter of rows that begins anew")
AT_NIGHT = {one.name for n, one in enumerate(FAULTS) if n % 2 or one.name in SLOWEST}
"""Every other fault, and those that take longest, since each takes seconds."""
EACH = [pytest.param(one, marks=[pytest.mark.nightly] * (one.name in AT_NIGHT)) for one in FAULTS]


@pytest.mark.parametrize("fault", EACH, ids=lambda fault: fault.name)
def test_a_planted_fault_is_noticed_by_its_check(tmp_path, fault: Fault):
    with fault.planted():
        assert fault.check in failing(fault.run, tmp_path)


@pytest.mark.nightly  # beside the audits of every method and kind, whose checks hold without a fault
@pytest.mark.parametrize("run", list(dict.fromkeys(fault.run for fault in FAULTS)))
def test_without_a_fault_the_same_checks_hold(tmp_path, run):
    assert failing(run, tmp_path) == set()


def test_the_page_lists_every_fault_with_its_check():
    rows = re.findall(
        r"^\| (.+) \| (.+) \| (\w+) \|$", PAGE.read_text(encoding="utf-8").split("## Planted faults")[1], re.M
    )
    assert rows == [(fault.name, fault.stands_for, fault.check) for fault in FAULTS] and len(FAULTS) >= 20
