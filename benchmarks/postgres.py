"""A PostgreSQL server for as long as a test or a benchmark lasts, where the programs of one are installed."""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

USER = "postgres"  # the server refuses to run as root; Debian's package makes this user


def programs() -> Path | None:
    """Return the folder of ``initdb`` and ``pg_ctl``, or None where PostgreSQL is not installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("pg_ctl")
    candidates = [*folders, *([Path(found).parent] if found else [])]
    usable = [folder for folder in candidates if (folder / "initdb").exists() and (folder / "pg_ctl").exists()]
    if os.getuid() == 0 and not any(entry.pw_name == USER for entry in pwd.getpwall()):
        return None
    return usable[0] if usable else None


@contextmanager
def server(fsync: bool = False) -> Iterator[str]:
    """Yield the URL, without a database, of a fresh server on a loopback port; it is gone after the block."""
    folder = programs()
    if folder is None:
        raise RuntimeError("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory(prefix="nacre-pg-") as name:
        os.chmod(name, 0o755)
        data = Path(name) / "data"
        data.mkdir(mode=0o700)
        if os.getuid() == 0:
            shutil.chown(data, USER)
        _run(folder / "initdb", "--pgdata", data, "--auth", "trust", "--username", USER, "--no-sync", "--encoding=UTF8")
        port = free_port()
        safe = "on" if fsync else "off"
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync={safe}"
        options += " -c max_connections=300 -c shared_buffers=32MB -c logging_collector=off"
        _run(folder / "pg_ctl", "--pgdata", data, "--log", data / "log", "--options", options, "--wait", "start")
        try:
            yield f"postgresql://{USER}@127.0.0.1:{port}"
        finally:
            _run(folder / "pg_ctl", "--pgdata", data, "--mode", "immediate", "--wait", "stop")


def free_port() -> int:
    """Return a loopback port that nobody listens on, for a server that is about to start.

    It lies below the ports that the system hands out by itself, so nothing takes it meanwhile but by rare chance.
    """
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def new_database(url: str, name: str) -> str:
    """Make an empty database on a server and return its URL."""
    import psycopg

    with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{url}/{name}"


def _run(*command: object) -> None:
    words = [str(word) for word in command]
    if os.getuid() == 0:
        words = ["runuser", "-u", USER, "--", *words]
    done = subprocess.run(words, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{words[-1]}: {done.stdout}")
