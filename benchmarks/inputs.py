"""How soon, in how much memory and with how many bytes a large CSV file is read where it lies, elsewhere.

It lies in an object store that speaks S3, or on a web server over TLS, on loopback and in a process of its own
(`benchmarks/object_store.py`), which counts the requests and the bytes that it sends. Rows are repeated to the size
that is asked for. A file is read by the product's own reader, in a fresh process, up to the first batch or to its end.
"""

import argparse
import gzip
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.csv

from benchmarks.common import ROOT, Table, measure, parse, report
from benchmarks.object_store import certify, counts, served
from dpmodels.audit.made.clinic import make_schema, make_table
from dpmodels.reading.load import load_parts

BLOCK_ROWS, BATCH_ROWS = 200_000, 65_536
READS = (
    ("s3", "visits.csv", "first"),
    ("s3", "visits.csv.gz", "first"),
    ("s3", "visits.csv", "all"),
    ("s3", "visits.csv.gz", "all"),
    ("https", "visits.csv", "all"),
    ("file", "visits.csv", "all"),
)
PLACES = {
    "s3": "s3://{name}?region=us-east-1",
    "https": "https://127.0.0.1:{port}/{name}",
}
KEYS = {"AWS_ACCESS_KEY_ID": "nacre", "AWS_SECRET_ACCESS_KEY": "nacre", "AWS_DEFAULT_REGION": "us-east-1"}
HEAD = ["object", "MiB of it", "read", "rows", "seconds", "MiB fetched", "requests", "peak MiB", "before reading"]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mib", type=int, default=1024, help="size of the CSV file")
    parser.add_argument("--place", type=Path, help="folder for what is generated (default: a temporary one)")
    parser.add_argument("--read", nargs=2, metavar=("URI", "ROWS"), help=argparse.SUPPRESS)


def read(uri: str, which: str) -> None:
    """Read the first batch or all of them; print what it took as JSON."""
    before = psutil.Process().memory_info().rss
    began, rows = time.perf_counter(), 0
    for part in load_parts(uri, make_schema(), BATCH_ROWS):
        for batch in part.reveal():
            rows += batch.num_rows
            if which == "first":
                break
    took = time.perf_counter() - began
    print(json.dumps({"rows": rows, "seconds": took, "before": before / 2**20}), flush=True)
    os._exit(0)  # what was asked for ahead is not waited for


def fill(folder: Path, mib: int) -> None:
    """Write a CSV file of about so many MiB, and the same rows packed."""
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(make_table(BLOCK_ROWS), sink)
    header, _, block = sink.getvalue().to_pybytes().partition(b"\n")
    plain = (header + b"\n", block)
    folder.mkdir()
    for name, (first, rest) in {"visits.csv": plain, "visits.csv.gz": tuple(map(gzip.compress, plain))}.items():
        with open(folder / name, "wb") as target:
            target.write(first)
            for _ in range(mib * 2**20 // len(block) + 1):
                target.write(rest)


def main() -> None:
    args = parse(__doc__, options)
    if args.read:
        return read(*args.read)
    os.environ.update(KEYS)
    mib = 32 if args.quick else args.mib
    table = Table(f"A CSV file of {mib} MiB that lies elsewhere", HEAD, digits=2)
    with tempfile.TemporaryDirectory(dir=args.place) as scratch:
        place = Path(scratch)
        fill(place / "visits", mib)
        site = certify(place)
        os.environ["SSL_CERT_FILE"] = str(site)
        for scheme, name, which in READS:
            certificate = site if scheme == "https" else None
            with served(place, *filter(None, [certificate])) as port:
                os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
                uri = PLACES.get(scheme, f"{place}/{{name}}").format(name=f"visits/{name}", port=port)
                ran = measure([sys.executable, "-m", "benchmarks.inputs", "--read", uri, which], cwd=ROOT)
                if ran.code:
                    raise SystemExit(f"{uri} was not read:\n{ran.output}")
                found, sent = json.loads(ran.output.splitlines()[-1]), counts(port, certificate)
            size = (place / "visits" / name).stat().st_size / 2**20
            told = [found["rows"], found["seconds"], sent["mib"], int(sent["requests"]), ran.peak_mib, found["before"]]
            table.add(f"{scheme}://…/{name}", size, which, *told)
            print(table.markdown().splitlines()[-1], file=sys.stderr, flush=True)
    report("inputs", [table], [], args)


if __name__ == "__main__":
    main()
