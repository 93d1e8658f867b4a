"""Carry deployments/compose.yaml out service by service, where no engine runs containers, and try the result.

    python -m supply.compose FOLDER [--bind FOLDER ...]

It takes what supply.image takes, iproute2 and PostgreSQL, which stands for the image of the database. FOLDER/image is
the root that supply.image makes of the Dockerfile, or made earlier. What runs in it is cut off from every network.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml
from pyarrow import csv, parquet

from benchmarks import postgres
from supply.image import SEARCHED, Image, first_line, make, recall
from supply.packages import CONSISTENT, SCHEMA
from supply.services import COMPOSE, Project, interpolate

POSTGRES_DATA = "/var/lib/postgresql/data"
POSTGRES = f"""
set -Eeo pipefail
if [ "$(id -u)" = 0 ]; then
    install --directory --owner postgres --mode 700 {POSTGRES_DATA}
    install --directory --owner postgres /run/postgresql
    exec setpriv --reuid postgres --regid postgres --init-groups bash -c "$0" "$0"
fi
if [ ! -s {POSTGRES_DATA}/PG_VERSION ]; then
    initdb --username "$POSTGRES_USER" --pwfile <(printf '%s\\n' "$POSTGRES_PASSWORD")
    echo 'host all all all scram-sha-256' >>{POSTGRES_DATA}/pg_hba.conf
    pg_ctl --options "-c listen_addresses= -p 5432" --wait start
    for script in /docker-entrypoint-initdb.d/*.sh; do . "$script"; done
    pg_ctl --mode fast --wait stop
fi
exec postgres -c listen_addresses='*'
"""
"""What the entry point of the official image does, as far as it matters: the first start listens on a socket alone."""
PASSWORDS = ("DATABASE_PASSWORD", "PREFECT_PASSWORD", "OWNER_PASSWORD", "LEDGER_PASSWORD")
NIGHT = "2026-01-31"
ASKED = {
    "synthesize-night/nightly": {"night": NIGHT},
    "synthesize-table/ad-hoc": {
        "config": {
            "data": "incoming/table.csv",
            "schema": "schemas/visits.yaml",
            "out": "hand-offs/table",
            "privacy": {"target_epsilon": 1, "delta": 1e-5, "account": "visits"},
        },
        "train_on": "train-worker",
    },
}
"""What an operator asks for: a night with the parameters that are shipped, and a table that is trained without data."""
OPEN = "nacre ledger open visits --schema /srv/nacre/schemas/visits.yaml --epsilon 3 --delta 1e-4"
STATEMENTS = {
    "SELECT count(*) FROM entries": True,
    "INSERT INTO entries SELECT * FROM entries WHERE false": True,
    "UPDATE entries SET payload = '{}'": False,
    "DELETE FROM entries": False,
    "TRUNCATE entries": False,
    "DROP TABLE entries": False,
    "DELETE FROM accounts": False,
}
"""What the worker's role is allowed and refused."""
ASK = """
import psycopg, sys
with psycopg.connect("postgresql://nacre_ledger@database/ledger") as ledger:
    for statement in sys.argv[1:]:
        try:
            with ledger.transaction():
                ledger.execute(statement)
        except psycopg.errors.InsufficientPrivilege:
            print("refused", statement)
        else:
            print("allowed", statement)
"""
PAGE = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:4200/').read().decode())"


def database() -> Image:
    """Return what stands for the image of PostgreSQL: the PostgreSQL of this machine, and the entry point of that."""
    if (programs := postgres.programs()) is None:
        raise SystemExit("PostgreSQL is not installed")
    variables = {"PATH": f"{programs}:{SEARCHED}", "PGDATA": POSTGRES_DATA}
    return Image(Path("/"), command=json.dumps(["bash", "-c", POSTGRES, POSTGRES]), environment=variables)


def fill(folder: Path, image: Image) -> None:
    """Write what the operator's folder must hold."""
    for name in ("incoming", "schemas", "public"):
        (folder / name).mkdir(parents=True)
    (folder / "schemas" / "visits.yaml").write_text(SCHEMA)
    rows = "".join(f"{'east' if row % 3 else 'west'},{row % 90}\n" for row in range(900))
    (folder / "incoming" / "table.csv").write_text("ward,age\n" + rows)
    parquet.write_table(csv.read_csv(folder / "incoming" / "table.csv"), folder / "incoming" / f"{NIGHT}.parquet")
    (folder / "mine.yaml").write_text(image.run(["nacre", "deploy", "--show"]))


def attempt(project: Project) -> None:
    """Do what the compose file's first lines say, ask for hand-offs as an operator, and hold the file to its promises.

    Raises:
        SystemExit: something is not as it is promised.
    """
    project.up()
    print(project.once("register"), end="")
    project.wait(lambda: "pool nacre-cpu: " in project.log("worker").read_text(), "the worker serves its pool")
    print(f"the worker was started {project.starts['worker']} times, since there was no pool before that")
    print(project.execute("worker", OPEN.split()))
    page = project.execute("server", ["python", "-c", PAGE])
    if "<html" not in page.lower():
        raise SystemExit(f"the server has no UI: {page}")
    for name, parameters in ASKED.items():
        words = ["prefect", "deployment", "run", name, "--watch", "--params", json.dumps(parameters)]
        print(first_line(project.once("register", words)))
    for hand_off in (NIGHT, "table"):
        words = ["nacre", "verify", f"/srv/nacre/hand-offs/{hand_off}"]
        print(hand_off, first_line(project.execute("worker", words, CONSISTENT)))
    print(project.execute("worker", ["nacre", "ledger", "verify"]))
    print(trained := project.log("train-worker").read_text())
    if "is trained and sampled" not in trained:
        raise SystemExit("the train worker trained nothing")
    check_role(project)
    check_reach(project)


def check_role(project: Project) -> None:
    """Hold the worker's role to inserting and looking up."""
    said = project.execute("worker", ["python", "-c", ASK, *STATEMENTS]).splitlines()
    print(*said, sep="\n")
    if said != [f"{'allowed' if allowed else 'refused'} {one}" for one, allowed in STATEMENTS.items()]:
        raise SystemExit("the role of the worker may do something else")


def check_reach(project: Project) -> None:
    """Hold services to what they may see: nothing sensitive but for the worker, and no network for the train worker."""
    for name in (running := [name for name, one in project.running.items() if one.poll() is None]):
        table = project.execute(name, ["cat", "/proc/self/mountinfo"])
        sources = sorted(set(re.findall(rf"{project.state.name}/((?:volumes|data)/\S+)", table)))
        print(f"{name} sees {', '.join(sources)}")
        private = [source for source in sources if source == "volumes/sensitive" or source.startswith("data/")]
        if bool(private) != (name == "worker"):
            raise SystemExit(f"{name} sees {private}")
    ask = project.services["server"]["healthcheck"]["test"]
    reach = [name for name in running if name != "database" and project.healthy(name, ask)]
    print(f"{', '.join(reach)} reach the server")
    if reach != ["server", "worker"]:
        raise SystemExit("the train worker has a network, or another has none")
    secrets = project.execute("train-worker", ["cat", "/proc/1/environ"])
    if re.search("PREFECT_API|PASSWORD|NACRE_LEDGER", secrets):
        raise SystemExit("the train worker knows an address or a password")


def main(argv: Sequence[str] | None = None) -> None:
    """Carry the compose file out and try what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="where the image's root lies or will lie")
    parser.add_argument("--bind", nargs="*", default=[], help="folders of this machine that pip looks into")
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    root: Path = args.folder.absolute() / "image"
    if not args.apart:
        if not root.exists():
            root.parent.mkdir(parents=True, exist_ok=True)
            make(root, args.bind)
        apart = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        sys.stdout.flush()
        os.execvp(apart[0], [*apart, sys.executable, "-m", "supply.compose", str(args.folder), "--apart"])
    image = recall(root)
    with tempfile.TemporaryDirectory(dir=root.parent) as name:
        state = Path(name)
        fill(state / "data", image)
        variables = {one: f"{one[:3]}'s @/:%$\"\\" for one in PASSWORDS}
        variables |= {"PREFECT_LOGIN": "nacre:se/cr@et", "NACRE_DATA": str(state / "data")}
        content = interpolate(yaml.safe_load(COMPOSE.read_text(encoding="utf-8")), variables)
        project = Project(content, {"nacre": image, content["services"]["database"]["image"]: database()}, state)
        try:
            attempt(project)
        except SystemExit:
            for log in sorted([*(state / "logs").iterdir(), *state.glob("volumes/sensitive/*/error.txt")]):
                print(f"--- {log.name}", log.read_text()[-4000:], sep="\n")
            raise
        finally:
            project.down()
    print("every service did what the file says", file=sys.stderr)


if __name__ == "__main__":
    main()
