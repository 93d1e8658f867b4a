"""Tables that lie elsewhere: in an object store, behind a web server and in databases, each tested against a real one.

The object store, DuckDB and https:// need packages that are skipped where they are not installed:

    pip install 'moto[server]' duckdb-engine aiohttp
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import postgres
from benchmarks.inputs import KEYS, PLACES, fill
from benchmarks.object_store import certify, counts, served
from dpmodels.errors import DataError, NacreError, PathTaken
from dpmodels.reading.load import RawRows
from dpmodels.reading.open_tables import pinned
from tasks.stages.export import export
from tests.hand_off.make_golden import GOLDEN
from tests.kit.buckets import Bucket
from tests.kit.errors import refused
from tests.kit.inputs import KEY, SCHEMA, SECRET, TABLE, as_arrow, as_csv, as_json, hive, ingested, parquet, same
from tests.kit.open_tables import delta, iceberg, place_of
from tests.kit.support import run_cli, write_clinic

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
CARD = GOLDEN / "FORMAT-5" / "card"
PASSWORD = "NACRE_DATABASE_PASSWORD"


@pytest.fixture
def visits(bucket: Bucket, tmp_path: Path) -> str:
    """Fill a bucket with tables of every kind."""
    here = tmp_path / "here"
    here.mkdir()
    parquet(here / "t.parquet"), as_csv(here / "t.csv.gz", ";"), as_json(here / "t.jsonl"), as_arrow(here / "t.arrow")
    hive(here / "wards", "ward")
    bucket.put(here, "in")
    return bucket.uri("in/{}")


@pytest.mark.parametrize("name", ["t.parquet", "t.csv.gz", "t.jsonl", "t.arrow", "wards", "wards/*/*.parquet"])
def test_an_object_store_is_read_like_a_folder(tmp_path, visits, name):
    same(ingested(tmp_path, visits.format(name)))


def rows_in(place: str) -> int:
    return sum(len(batch) for batch in RawRows(place, SCHEMA, 64))


def test_open_tables_are_read_from_an_object_store_and_written_there(tmp_path, bucket):
    here = tmp_path / "here"
    delta(here / "visits", TABLE.slice(0, 100))
    metadata = Path(place_of(iceberg(here)))
    bucket.put(here, "in")
    places = {name: bucket.uri(f"in/{name}") for name in ("visits", str(metadata.relative_to(here)))}
    sizes = [rows_in(place) for name in places.values() for place in (name, pinned(name))]
    assert sizes == [100, 100, 300, 300]
    same(ingested(tmp_path, places["visits"]), TABLE.slice(0, 100))
    written_to = export(CARD, f"delta:{bucket.uri('out/visits')}")
    assert written_to.endswith("@v0") and rows_in(written_to) == 30
    with refused(PathTaken, "--replace"):
        export(CARD, f"delta:{bucket.uri('out/visits')}")
    assert export(CARD, f"delta:{bucket.uri('out/visits')}", replace=True).endswith("@v1")


@pytest.mark.parametrize(("name", "sentence"), [("none.csv", "does not exist"), ("", "a folder of files of one kind")])
def test_what_an_object_store_lacks_is_said_in_one_sentence(tmp_path, visits, name, sentence):
    with refused(DataError, sentence, column="") as caught:
        ingested(tmp_path, visits.format(name))
    assert KEY not in str(caught.value) and "\n" not in str(caught.value)


def test_a_bucket_that_is_not_there_is_refused(tmp_path, visits):
    with refused(DataError, r"does not exist|cannot be listed", column="") as caught:
        ingested(tmp_path, visits.format("t.csv.gz").replace("s3://", "s3://else"))
    assert KEY not in str(caught.value) and "\n" not in str(caught.value)


def test_a_store_that_does_not_answer_is_named_without_its_key(tmp_path, visits, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with refused(DataError, "check its name, and the credentials in the environment", column="") as caught:
        ingested(tmp_path, "s3://visits/in/t.csv?region=us-east-1")
    assert KEY not in str(caught.value)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve a folder over https, with a certificate that the environment trusts; yield the address."""
    pytest.importorskip("aiohttp", reason="needs pip install 'nacre[https]'")
    folder = tmp_path / "site"
    folder.mkdir()
    parquet(folder / "t.parquet"), as_csv(folder / "t.csv.gz", ";")
    certificate = certify(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with served(folder, certificate) as port:
        yield f"https://127.0.0.1:{port}"


READ = """
import sys
from pathlib import Path
from tests.kit.inputs import ingested, same
for number, uri in enumerate(sys.argv[2:]):
    same(ingested(Path(sys.argv[1]) / str(number), uri))
"""


def test_files_are_read_over_https(tmp_path, site):
    """In a process of its own, which reads once, where it starts, which certificates it trusts."""
    words = [sys.executable, "-c", READ, tmp_path, f"{site}/t.parquet", f"{site}/t.csv.gz"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr


def test_a_file_that_a_site_lacks_is_refused(tmp_path, site):
    with refused(DataError, r"does not exist|cannot be listed", column=""):
        ingested(tmp_path, f"{site}/none.parquet")


@pytest.mark.parametrize("name", ["visits.csv", "visits.csv.gz"])
@pytest.mark.parametrize("scheme", ["s3", "https"])
@pytest.mark.nightly_if("https-visits.csv", "s3-visits.csv.gz")
def test_text_is_fetched_once_and_in_large_steps(tmp_path, monkeypatch, scheme, name):
    if scheme == "https":
        pytest.importorskip("aiohttp", reason="needs pip install 'nacre[https]'")
    fill(tmp_path / "visits", 48)
    certificate = certify(tmp_path) if scheme == "https" else None
    for variable, value in {**KEYS, "SSL_CERT_FILE": str(certificate or "")}.items():
        monkeypatch.setenv(variable, value)
    with served(tmp_path, *filter(None, [certificate])) as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        uri = PLACES[scheme].format(name=f"visits/{name}", port=port)
        words = [sys.executable, "-m", "benchmarks.inputs", "--read", uri, "all"]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0 and json.loads(done.stdout)["rows"] > 1_000_000, done.stderr
        sent = counts(port, certificate)
    size = (tmp_path / "visits" / name).stat().st_size / 2**20
    assert size < sent["mib"] <= size + 6 and sent["requests"] < size / 3 + 12


@pytest.fixture(scope="module")
def clinic() -> Iterator[str]:
    """Start PostgreSQL with the rows in a table, and a role that needs its password; yield the URL without it."""
    psycopg = pytest.importorskip("psycopg")
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    with postgres.server() as url:
        database = postgres.new_database(url, "clinic")
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(
                "create table visits (patient bigint, age smallint, ward text, dose numeric(6, 2), smoker boolean, "
                "sick text, seen timestamptz default now(), part jsonb default '{}')"
            )
            rows = [tuple(row.values()) for row in TABLE.to_pylist()]
            with connection.cursor() as cursor:
                cursor.executemany("insert into visits values (%s, %s, %s, %s, %s, %s)", rows)
            connection.execute(f"create role reader login password '{KEY}'")
            connection.execute("grant select on visits to reader")
        yield database.replace("postgres@", "reader@")


COLUMNS = "patient, age, ward, dose, smoker, sick"
QUERY = f"select {COLUMNS} from visits where ward like '%%t%%' or ward not like '%t%'"


def test_a_query_of_postgresql_is_streamed(tmp_path, clinic, monkeypatch):
    monkeypatch.setenv(PASSWORD, KEY)
    same(ingested(tmp_path, (clinic, QUERY)))


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (f"select {COLUMNS}, seen as other from visits", "the data has 1 column"),
        ("select patient, seen as age, ward, dose, smoker, sick from visits", "column age: must hold numbers"),
        ("select patient, part as age, ward, dose, smoker, sick from visits", "leave it out with `type: identifier`"),
        (f"select '{SECRET}'::int", "the database refuses the query"),
        (
            f"select 1 / (age - {TABLE['age'][200]}) as patient, {COLUMNS[9:]} from visits",
            "the database refuses the query",
        ),
        ("drop table visits", "only reads"),
        ("delete from visits", "only reads"),
        ("with gone as (delete from visits returning *) select * from gone", "the database refuses the query"),
    ],
)
def test_a_query_that_does_not_fit_is_refused_and_changes_nothing(tmp_path, clinic, monkeypatch, query, sentence):
    monkeypatch.setenv(PASSWORD, KEY)
    with pytest.raises(NacreError) as caught:
        ingested(tmp_path, (clinic, query))
    assert sentence in str(caught.value) and SECRET not in str(caught.value) and KEY not in str(caught.value)
    same(ingested(tmp_path / "again", (clinic, QUERY)))


def test_a_server_that_is_not_there_is_refused_without_its_password(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv(PASSWORD, KEY)
    with refused(DataError, "the database cannot be reached", column="") as caught:
        ingested(tmp_path, ("postgresql://reader@127.0.0.1:9/clinic", "select 1"))
    assert KEY not in str(caught.value) + "".join(capfd.readouterr())


def test_a_draft_of_a_query_has_its_names(clinic, monkeypatch):
    monkeypatch.setenv(PASSWORD, KEY)
    code, out, err = run_cli("schema", "init", clinic, "--query", QUERY)
    assert code == 0 and "name: clinic\n" in out and "  ward: {type: categorical, values: TODO}\n" in out
    assert KEY not in out + err and not any(ward in out for ward in ("north", "south"))


def test_a_query_of_duckdb_is_streamed(tmp_path):
    pytest.importorskip("duckdb_engine", reason="needs pip install duckdb-engine")
    import duckdb

    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.register("rows", TABLE)
        connection.execute("create table visits as select * from rows")
    same(ingested(tmp_path, (f"duckdb:///{tmp_path / 'clinic.duckdb'}", QUERY.replace("%%", "%"))))


def test_a_run_on_a_query_reaches_its_hand_off(tmp_path, clinic, monkeypatch):
    """The whole command, whose files hold no password."""
    write_clinic(tmp_path)
    monkeypatch.setenv(PASSWORD, KEY)
    named = {"schema": "clinic.yaml", "config": "config.yaml", "out": "out", "home": "home"}
    words = [word for name, value in named.items() for word in (f"--{name}", tmp_path / value)]
    budget = ["--target-epsilon", 1, "--delta", 1e-5, "--query", QUERY, "--no-prefect", "--rows", 20]
    code, out, err = run_cli("synthesize", clinic, *words, *budget)
    assert code == 0, err
    written = [file for folder in ("home", "out") for file in (tmp_path / folder).rglob("*") if file.is_file()]
    assert len(written) > 10 and not [file for file in written if KEY.encode() in file.read_bytes()]
    assert KEY not in out + err
