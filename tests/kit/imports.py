"""What an import costs."""

import resource
import subprocess
import sys
from pathlib import Path

from tests.kit.clock import slowness

ROOT = Path(__file__).parents[2]


HEAVY = "numpy pyarrow torch prefect pandas scipy sklearn great_expectations opendp dp_accounting numba distributed"


def run(code: str, *arguments: str) -> tuple[float, str]:
    """Run code in a child; return its processor seconds at the speed of ``REFERENCE``, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return used / slowness(), done.stdout
