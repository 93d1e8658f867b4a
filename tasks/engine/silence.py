"""Nothing of a library reaches the terminal while private rows are at hand: a warning may tell that a value is huge.

numpy keeps what it does about floating-point errors for each thread, Python its filter of warnings for the process. It
is imported late, since it reads how many threads it may start while it is loaded (pools.py).
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silenced() -> Iterator[None]:
    """Silence warnings of every thread, and floating-point errors of this one, for as long as the block runs."""
    import numpy as np

    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        yield


def silence_thread() -> None:
    """Silence floating-point errors of a thread of ours that ends with its work."""
    import numpy as np

    np.seterr(all="ignore")
