"""Feed one reader with what atheris makes up, guided by the code that it reaches; atheris is installed by hand.

    pip install atheris
    python -m tests.kit.fuzz schema-1.yaml -max_total_time=600

Every name in ``tests.kit.damaged.readers`` is a reader. An error that is no refusal ends the search, and
leaves the bytes that made it in a file.
"""

import sys
from tempfile import TemporaryDirectory

import atheris

with atheris.instrument_imports(include=["dpmodels", "flows", "yaml"]):
    from tests.kit.damaged import SECRET, outcome, readers


def main() -> None:
    """Search until the time is over."""
    reader = readers()[sys.argv.pop(1)]

    def try_one(content: bytes) -> None:
        assert SECRET not in outcome(reader, content)

    with TemporaryDirectory() as corpus:
        with open(f"{corpus}/whole", "wb") as file:
            file.write(reader.whole)
        atheris.Setup([*sys.argv, corpus], try_one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
