"""Discover: the stage that counts the keys of a table under a charge, and what its release says."""

from collections.abc import Mapping

from dpmodels.artifact import checked
from dpmodels.authoring.completion import ReleasedKeys
from dpmodels.contract.discovery.discovery_charge import DiscoveryCharge
from dpmodels.methods.tables.thresholded_counts import DiscoverySystem
from dpmodels.releases.discoveries import discovery_charge
from dpmodels.releases.release import read_release
from tasks.run.accounts import charges_of
from tasks.run.store import Handle, Run
from tasks.stages.sanitize import measure
from tasks.stages.stage import stage


@stage("discover", sensitive=True)
def discover(run: Run) -> Handle:
    """Read the raw table once, inside one ledger charge; names of columns are checked before the charge."""
    return measure(run)


def read_found(release: Handle) -> Mapping[str, ReleasedKeys]:
    """Return what a discovery released of each column (post-processing)."""
    released = read_release(checked(release.path, release.sha256)).value
    return DiscoverySystem.of_line(released.line).found(released)


def paid_for(run: Run, release: Handle) -> DiscoveryCharge:
    """Return all that a schema says of the charge that paid for its discovery."""
    (charge,) = charges_of(run)
    return discovery_charge(charge, release.sha256)
