"""A folder on loopback as an object store that speaks as much of S3 as reading needs, or as a web server over TLS.

Ranges are sent from the disk without being copied, so that what reading costs is the reader's. It counts what it sends.
"""

import json
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import urlopen
from xml.sax.saxutils import escape

from benchmarks.common import ROOT

COUNTS = "/-counts"


class Handler(BaseHTTPRequestHandler):
    """Answers HEAD, GET of an object or a range of it, and ListObjectsV2; buckets are the sub-folders."""

    protocol_version = "HTTP/1.1"
    folder, sent, requests, lock = Path(), 0, 0, Lock()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        asked, file = parse_qs(address.query), self.folder / unquote(address.path).strip("/")
        if address.path == COUNTS:
            counts = {"mib": Handler.sent / 2**20, "requests": Handler.requests}
            return self._answer(200, json.dumps(counts).encode())
        if "list-type" in asked:
            return self._answer(200, listing(file, asked.get("prefix", [""])[0]))
        if not file.is_file():
            return self._answer(404, b"")
        size = file.stat().st_size
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        first, last = (int(wanted[1]), min(int(wanted[2] or size - 1), size - 1)) if wanted else (0, size - 1)
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Last-Modified", "Sat, 21 Nov 2026 00:00:00 GMT")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        with Handler.lock:
            Handler.requests += 1
        if self.command == "GET":
            self._send(file, first, last + 1)

    def _send(self, file: Path, first: int, end: int) -> None:
        self.wfile.flush()
        with file.open("rb") as source, suppress(OSError):  # whoever asked may have gone
            while first < end:
                count = min(2**20, end - first)
                if isinstance(self.connection, ssl.SSLSocket):
                    source.seek(first)
                    self.connection.sendall(source.read(count))
                else:
                    count = os.sendfile(self.connection.fileno(), source.fileno(), first, count)
                first += count
                with Handler.lock:
                    Handler.sent += count

    def _answer(self, code: int, content: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""


def listing(bucket: Path, prefix: str) -> bytes:
    """Name the objects of a bucket that begin with a prefix, as S3 does."""
    files = {str(file.relative_to(bucket)): file.stat().st_size for file in bucket.rglob("*") if file.is_file()}
    found = "".join(
        f"<Contents><Key>{escape(name)}</Key><Size>{size}</Size>"
        "<LastModified>2026-11-21T00:00:00.000Z</LastModified></Contents>"
        for name, size in sorted(files.items())
        if name.startswith(prefix)
    )
    head = '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    return f"{head}<IsTruncated>false</IsTruncated>{found}</ListBucketResult>".encode()


def certify(folder: Path) -> Path:
    """Make a key and a certificate of 127.0.0.1 that vouches for itself, in one file."""
    made = folder / "site.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        ["openssl", *words.split(), "-keyout", made, "-out", folder / "crt"], check=True, capture_output=True
    )
    made.write_bytes(made.read_bytes() + (folder / "crt").read_bytes())
    return made


@contextmanager
def served(*words: object) -> Iterator[int]:
    """Serve a folder in a process of its own; yield the port."""
    command = [sys.executable, "-m", "benchmarks.object_store", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield int(process.stdout.readline())  # type: ignore[union-attr]
        finally:
            process.terminate()


def counts(port: int, certificate: Path | None) -> dict[str, float]:
    """Ask a server what it has sent so far."""
    context = ssl.create_default_context(cafile=certificate) if certificate else None
    with urlopen(f"http{'s' if certificate else ''}://127.0.0.1:{port}{COUNTS}", context=context) as answer:
        return dict(json.loads(answer.read()))


def main() -> None:
    """Serve the folder that is named first, over TLS where a file of key and certificate is named second."""
    Handler.folder = Path(sys.argv[1])
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if len(sys.argv) > 2:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[2])
            server.socket = context.wrap_socket(server.socket, server_side=True)
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
