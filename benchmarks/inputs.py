"""How soon, in how much memory and with how many bytes a large CSV file is read where it lies, in an object store.

The store speaks S3 on loopback (`pip install 'moto[server]'`), in a process of its own, behind a relay that counts the
bytes that it sends. Its answers are what takes most of the time: for every range that is asked for, it copies the whole
object. Rows are repeated to the size that is asked for. A file is read by the product's own reader, in a fresh process.
"""

import argparse
import gzip
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import psutil
import pyarrow as pa
import pyarrow.csv
import pyarrow.fs as pafs

from benchmarks.common import ROOT, Table, measure, parse, report
from dpmodels.evaluation.audit.made.clinic import make_schema, make_table
from dpmodels.schema.load import load_parts

BLOCK_ROWS, BATCH_ROWS = 200_000, 65_536
READS = (("visits.csv", "first"), ("visits.csv.gz", "first"), ("visits.csv", "all"))
KEYS = {"AWS_ACCESS_KEY_ID": "nacre", "AWS_SECRET_ACCESS_KEY": "nacre", "AWS_DEFAULT_REGION": "us-east-1"}
PATIENT = {"request_timeout": 600, "connect_timeout": 60}
HEAD = ["object", "MiB of it", "read", "rows", "seconds", "MiB fetched", "peak MiB", "before reading"]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mib", type=int, default=1024, help="size of the CSV file")
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


class Relay:
    """Passes connections on to a server, and counts the bytes that come back."""

    def __init__(self, port: int) -> None:
        self.to, self.fetched = port, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.to))
            Thread(target=self._pass, args=(near, far, False), daemon=True).start()
            Thread(target=self._pass, args=(far, near, True), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        with suppress(OSError):
            while content := source.recv(1 << 16):
                self.fetched += len(content) * counted
                sink.sendall(content)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextmanager
def store() -> Iterator[int]:
    """Start an object store in a process of its own; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            if process.poll() is not None:
                raise SystemExit("the object store does not start: pip install 'moto[server]'")
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait()


def fill(port: int, mib: int) -> dict[str, float]:
    """Write a CSV file of about so many MiB into the store, and the same rows packed; return the MiB of each."""
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(make_table(BLOCK_ROWS), sink)
    header, _, block = sink.getvalue().to_pybytes().partition(b"\n")
    system = pafs.S3FileSystem(
        endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True, **PATIENT
    )
    system.create_dir("visits")
    plain = (header + b"\n", block)
    packed = {"visits.csv": plain, "visits.csv.gz": tuple(map(gzip.compress, plain))}
    for name, (first, rest) in packed.items():
        with system.open_output_stream(f"visits/{name}", compression=None) as target:
            target.write(first)
            for _ in range(mib * 2**20 // len(block) + 1):
                target.write(rest)
    return {name: system.get_file_info(f"visits/{name}").size / 2**20 for name in packed}


def main() -> None:
    args = parse(__doc__, options)
    if args.read:
        return read(*args.read)
    os.environ.update(KEYS)
    mib = 32 if args.quick else args.mib
    table = Table(f"A CSV file of {mib} MiB in an object store", HEAD, digits=2)
    with store() as port:
        sizes = fill(port, mib)
        for name, which in READS:
            relay = Relay(port)
            uri = f"s3://visits/{name}?endpoint_override=127.0.0.1:{relay.port}&scheme=http&region=us-east-1"
            ran = measure([sys.executable, "-m", "benchmarks.inputs", "--read", uri, which], cwd=ROOT)
            if ran.code:
                raise SystemExit(f"{uri} was not read:\n{ran.output}")
            found = json.loads(ran.output.splitlines()[-1])
            fetched = relay.fetched / 2**20
            table.add(name, sizes[name], which, found["rows"], found["seconds"], fetched, ran.peak_mib, found["before"])
            print(table.markdown().splitlines()[-1], file=sys.stderr, flush=True)
    report("inputs", [table], [], args)


if __name__ == "__main__":
    main()
