"""What somebody else wrote costs whoever reads it seconds and little memory, and moves no cursor."""

import itertools
import json
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.accounting import composition
from dpmodels.accounting.events import GaussianEvent, LaplaceEvent
from dpmodels.authoring.lint import MOST_FAULTS, lint, parse
from dpmodels.contract.schema import Schema
from dpmodels.errors import ArtifactError, DataError, InvalidArgument
from dpmodels.gate.made_files import read_batches
from dpmodels.hand_off.check_charges import MOST_WORK, _reckoned
from dpmodels.hand_off.check_files import MOST_STRANGE
from dpmodels.hand_off.lines import Cost, Line, ManifestError, Target
from dpmodels.hand_off.manifest import CARD, MANIFEST, parse_manifest
from dpmodels.hand_off.pages import _is_short
from dpmodels.hand_off.verification import Verification
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.limits import LARGEST_YAML, MOST_COLUMNS, MOST_NODES, MOST_VALUES, nodes, read_json
from dpmodels.methods.registry import create
from dpmodels.pages.page import render_page
from dpmodels.pages.report import render
from dpmodels.plain_yaml import YamlFault, read_yaml
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.release import read_release
from flows.command_line.console import console, print_facts
from flows.config import SynthesizeConfig
from flows.description import as_markdown
from flows.with_prefect.artifacts import report_in_short
from tasks.engine.engines import Threads
from tasks.engine.progress import LOG
from tasks.kinds.tables import TableCheck
from tasks.run.bucket import verify
from tasks.stages.validate import check_table
from tests.hand_off.make_golden import GOLDEN
from tests.kit.bombs import BOMBS, ROWS
from tests.kit.clock import slowness
from tests.kit.errors import refused
from tests.kit.hostile import contracts, events
from tests.kit.manifests import CHARGED, rewritten
from tests.kit.support import make_schema, make_table, run_cli, write_clinic

CONTRACTS, EVENTS = dict(contracts()), dict(events())
SECONDS, MEBIBYTES = 8, 256


def costs(read: Callable[[], object]) -> tuple[float, float]:
    """Read something; return its seconds at the speed of ``REFERENCE``, and by how many MiB the process grew."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    read()
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seconds = used if used < SECONDS else used / slowness()  # which is at least 1, and takes a while to measure
    return seconds, (after.ru_maxrss - before.ru_maxrss) / 1024


@contextmanager
def peak_of(peaks: list[int]) -> Iterator[None]:
    """Append the most bytes that Arrow held at once during the block."""
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        yield
    finally:
        pa.set_memory_pool(before)
        peaks.append(pool.max_memory())


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_hostile_contract_costs_seconds(name: str) -> None:
    seconds, mebibytes = costs(lambda: parse(CONTRACTS[name]))
    assert seconds < SECONDS and mebibytes < MEBIBYTES
    found, faults = parse(CONTRACTS[name]) if len(CONTRACTS[name]) < 10_000 else (None, [])
    assert found is None and len(faults) <= MOST_FAULTS + 1


@pytest.mark.parametrize("name", EVENTS)
def test_events_of_a_stranger_cost_seconds(tmp_path: Path, name: str) -> None:
    own = tmp_path / "own"
    shutil.copytree(CHARGED, own, ignore=shutil.ignore_patterns("*.sig"))
    whole = json.loads((own / MANIFEST).read_text())
    whole["events"], whole["asked"]["epsilon"] = EVENTS[name], 1000.0
    (own / MANIFEST).write_text(json.dumps(whole))
    verify_hand_off(CHARGED)  # what is imported late is not the stranger's
    faults: list[str] = []
    seconds, mebibytes = costs(lambda: faults.extend(verify_hand_off(own).faults))
    assert seconds < SECONDS and mebibytes < MEBIBYTES
    assert any("cost" in fault or "time to price" in fault for fault in faults)


@pytest.mark.parametrize("field", ["events", "entries", "discoveries", "cautions", "clients", "uncharged"])
def test_a_long_list_of_nothing_is_refused_at_its_first_item(field: str) -> None:
    whole = json.loads((CHARGED / MANIFEST).read_text())
    (whole["ledger"] if field == "entries" else whole)[field] = [{}] * 100_000
    content, refused = json.dumps(whole).encode(), list[str]()

    def read() -> None:
        with pytest.raises(ManifestError) as refusal:
            parse_manifest(content)
        refused.extend(refusal.value.faults)

    seconds, mebibytes = costs(read)
    assert seconds < SECONDS and mebibytes < MEBIBYTES and len(refused) <= MOST_FAULTS + 1


def test_each_delta_at_which_the_same_events_are_priced_counts() -> None:
    laplace = [LaplaceEvent(noise_multiplier=5.0), GaussianEvent(noise_multiplier=5.0)]
    found, lines = Verification(), []
    for n in range(1000):
        cost = Cost(epsilon=Decimal(1), delta=1e-5 * (1 + n * 1e-6))
        asked = Target(epsilon=1000.0, delta=cost.delta)
        lines.append(Line.model_construct(asked=asked, spent=cost, events=tuple(laplace)))
    seconds, _ = costs(lambda: [_reckoned([line], line.price.asked.delta, found) for line in lines])
    assert seconds < SECONDS and "time to price" in found.faults[-1]


@pytest.mark.parametrize("method", ["p3gm", "dp-gan", "dpkg"])
@pytest.mark.nightly_if("dp-gan", "dpkg")  # beside p3gm, which takes longest
def test_the_events_of_a_plan_of_ours_are_priced_within_the_budget(method: str) -> None:
    """At the settings that a plan has by itself, the line alone and two of them together."""
    schema = make_schema()
    budget = PrivacyBudget(epsilon=1.0, delta=1e-5, adjacency=schema.adjacency, unit=schema.unit)
    event = create(method, {}, {}).plan(schema, budget).event
    for cache in (composition._spent, composition._renyi, composition._whole, composition._all_others):
        cache.cache_clear()
    cost = Cost(epsilon=Decimal(1), delta=1e-5)
    line = Line.model_construct(asked=Target(epsilon=1.0, delta=1e-5), spent=cost, events=(event,))
    found, spent = Verification(), []
    seconds, mebibytes = costs(lambda: spent.extend(_reckoned(lines, 1e-5, found) for lines in ([line], [line, line])))
    assert seconds < SECONDS and mebibytes < MEBIBYTES
    assert not found.faults and found.work <= MOST_WORK / 8 and spent[1] > 1 > spent[0]


def test_a_report_at_the_bound_is_rendered_in_seconds_and_a_wide_one_is_within_it() -> None:
    report = json.loads((GOLDEN / "LAYOUT-2" / "laid-out" / "report.json").read_text())
    widest = max(report["columns"], key=lambda one: len(json.dumps(one)))
    values = nodes(json.dumps(widest).encode()) + 1
    assert values * MOST_COLUMNS + 10 * MOST_VALUES < MOST_NODES
    report["columns"] = [{**widest, "name": f"column {number}"} for number in range(MOST_NODES // values - 20)]
    facts = read_json(json.dumps(report).encode())
    render({**facts, "columns": facts["columns"][:9]})
    seconds, mebibytes = costs(lambda: render(facts))
    assert seconds < SECONDS and mebibytes < MEBIBYTES


@pytest.mark.parametrize("name", ["report.json", CARD])
@pytest.mark.parametrize("content", ['{"privacy": [' + "[]," * 2**22 + "[]]}", '["' + "<" * 2**23 + '"]'])
def test_facts_that_fill_the_memory_are_not_read(tmp_path: Path, name: str, content: str) -> None:
    own = rewritten(GOLDEN / "LAYOUT-2" / "laid-out", tmp_path / "own", name, lambda _: content.encode())
    faults: list[str] = []
    seconds, mebibytes = costs(lambda: faults.extend(verify_hand_off(own).faults))
    assert seconds < SECONDS and mebibytes < MEBIBYTES and any(name in fault for fault in faults)


@pytest.mark.parametrize("where", ["", "synthetic", "report"])
def test_files_without_end_that_an_outsider_added_are_not_all_looked_at(tmp_path: Path, where: str) -> None:
    own = tmp_path / "own"
    shutil.copytree(GOLDEN / "LAYOUT-2" / "laid-out", own)
    (own / where).mkdir(exist_ok=True)
    for number in range(MOST_STRANGE + 2000):
        (own / where / f"{number}.txt").touch()
    faults: list[str] = []
    seconds, mebibytes = costs(lambda: faults.extend(verify_hand_off(own).faults))
    assert seconds < SECONDS and mebibytes < MEBIBYTES
    assert len(faults) == 11 and f"at least {MOST_STRANGE - 10} more files" in faults[-1]


def test_a_file_that_is_larger_than_any_of_its_kind_is_not_hashed(tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(GOLDEN / "LAYOUT-2" / "laid-out", own)
    (own / "schema.yaml").write_bytes(b" " * (LARGEST_YAML + 1))
    assert "schema.yaml is larger than any of its kind" in verify_hand_off(own).faults


def test_a_page_of_text_without_end_is_not_made() -> None:
    assert _is_short({"sample_sheet": "data:image/png;base64," + "A" * 2**24})
    assert not _is_short({"sample_sheet": "<" * 2**24}) and not _is_short({"data_set": "<" * 2**24})


def test_a_manifest_of_values_without_end_is_one_fault(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text('{"artifacts": [' + "[]," * 2**20 + "[]]}")
    seconds, mebibytes = costs(lambda: verify_hand_off(tmp_path))
    assert seconds < SECONDS and mebibytes < MEBIBYTES


def test_numbers_are_those_that_both_versions_of_yaml_read_alike() -> None:
    words = {"1": 1, "-7": -7, "+5": 5, "0": 0, "1.5": 1.5, ".5": 0.5, "1.0e+3": 1000.0}
    texts = ["012", "08", "1_000", "0x1F", "0o17", "0b1", "1:30", "1:30:00.5", "1e5", "-.5", "1.0e5"]
    assert read_yaml("\n".join(f"k{n}: {word}" for n, word in enumerate(words))) == {
        f"k{n}": value for n, value in enumerate(words.values())
    }
    assert read_yaml(json.dumps(texts).replace('"', "")) == texts
    assert read_yaml("[yes, No, on, true, ~, null]") == [True, False, True, True, None, None]
    assert read_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: *a") == {"a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": {"x": 1}}
    for bad in ("a: 1\na: 2", "!!python/name:os.system x", "a: &a [*a]", "? [1]\n: 2", "a: 1\n---\nb: 2", "[" * 99):
        with pytest.raises(YamlFault):
            read_yaml(bad)


def test_texts_that_look_like_numbers_elsewhere_keep_a_schemas_hash() -> None:
    """An earlier version wrote them without quotes where YAML 1.1 takes them for text."""
    values = ["08", "1e5", "0o17", "-.5", "2e10", "a"]
    text = f"name: a\nunit: record\ncolumns:\n  x: {{type: categorical, values: {json.dumps(values)}}}\n"
    schema, faults = parse(text)
    assert isinstance(schema, Schema) and not faults
    again, faults = parse(schema.to_yaml())
    assert isinstance(again, Schema) and not faults and again.hash == schema.hash


HOSTILE = "x\x1b[2J\x9b\u202eevil\u2066\u200b\x07"


def test_a_name_moves_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f'name: a\ncolumns:\n  {json.dumps(HOSTILE)}: {{type: {json.dumps(HOSTILE)}}}\n  "a\\nb": {{}}\n')
    assert lint(file)
    code, out, err = run_cli("schema", "lint", file)
    assert code == 1 and r"\x1b[2J" in err and r"\u202e" in err
    print_facts("title", {HOSTILE: HOSTILE})
    with console.capture() as kept:
        console.print(HOSTILE, markup=False)
    shown = out + err + capsys.readouterr().out + kept.get()
    assert not set(HOSTILE) - set("x[2Jevil") & set(shown)


def test_a_page_runs_no_script_and_holds_no_sign_that_a_browser_obeys() -> None:
    class Gate:
        raw, broken, outcomes = False, (), ()
        contract = type("Contract", (), {"name": HOSTILE + "<script>"})

    page = render_page("checks.html", gate=Gate, counted=False, rules="", at_making="")
    assert "default-src 'none'" in page and "<script" not in page and "STYLE-HASH" not in page
    assert not set(HOSTILE) - set("x[2Jevil") & set(page) and r"\u202e" in page


def test_a_name_is_shown_to_prefect_and_in_the_log_as_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = as_markdown({HOSTILE: HOSTILE + "<b>"})
    privacy = {"spent_epsilon": 1.0, "delta": 1e-5, "unit": HOSTILE}
    report = {"data_set": HOSTILE, "cautions": [HOSTILE], "privacy": privacy}
    shown += report_in_short(report, Path(HOSTILE))
    run_cli("-v", "schema", "lint", tmp_path)  # as a terminal shows the log from then on
    LOG.warning("column %s", HOSTILE)
    shown += capsys.readouterr().err
    assert "column x" in shown and r"\u202e" in shown and not set(HOSTILE) - set("x[2Jevil") & set(shown)


@pytest.mark.parametrize("name", ["out", "data", "schema", "account"])
def test_the_letter_nul_is_one_sentence(tmp_path: Path, name: str) -> None:
    data, schema, config = write_clinic(tmp_path)
    settings = {"data": str(data), "out": str(tmp_path / "out"), "schema": str(schema)}
    privacy = {"target_epsilon": 1, "delta": 1e-5, **({"account": "a\0b"} if name == "account" else {})}
    settings |= {name: "a\0b"} if name != "account" else {}
    config.write_text(json.dumps({**settings, "privacy": privacy}))
    with refused(InvalidArgument, "NUL", value="a\0b"):
        SynthesizeConfig.build({}, config)
    with refused(InvalidArgument, "NUL", name="folder"):
        verify("a\0b")


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_in_the_place_of_samples_takes_little_memory(tmp_path: Path, bomb: str) -> None:
    """It is refused, or is read a few megabytes at a time; the gate says that its rows are not those of the schema."""
    table, schema = make_table(50), make_schema()
    BOMBS[bomb](path := tmp_path / "part-00000.parquet", table)
    assert path.stat().st_size < 2**18
    with peak_of(peaks := list[int]()):
        try:
            gate, _ = check_table(tmp_path, TableCheck(schema, ROWS, 65_536), Threads(1))
            refused = bool(gate.broken)
        except DataError as fault:
            refused = "than the rows of such a table take" in str(fault) or "which no such table has" in str(fault)
    assert refused and peaks[0] < MEBIBYTES * 2**20


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_in_the_place_of_a_release_takes_little_memory(tmp_path: Path, bomb: str) -> None:
    BOMBS[bomb](path := tmp_path / "release.parquet", make_table(50))
    with peak_of(peaks := list[int]()), pytest.raises(ArtifactError):
        read_release(path)
    assert peaks[0] < MEBIBYTES * 2**20


def test_the_honest_files_of_other_tools_are_read_as_before(tmp_path: Path) -> None:
    """In either version of a page, of any size, packed or not, in each encoding but one."""
    table, schema = make_table(3000), make_schema()
    plain = {name: "DELTA_BINARY_PACKED" for name in ("patient", "age")} | {"ward": "DELTA_LENGTH_BYTE_ARRAY"}
    for number, (version, packed, encoding, size) in enumerate(
        itertools.product(("1.0", "2.0"), ("zstd", "none", "snappy"), (None, plain), (2**20, 64))
    ):
        how = {"use_dictionary": not encoding, "column_encoding": encoding, "data_page_size": size}
        path = tmp_path / f"part-{number:05d}.parquet"
        pq.write_table(table, path, row_group_size=2000, data_page_version=version, compression=packed, **how)
        read = pa.Table.from_batches(read_batches(path, 700, schema, len(table)))
        assert read.equals(table)
        for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
            other = table.set_column(2, "ward", table["ward"].cast(kind))
            pq.write_table(other, path)
            assert pa.Table.from_batches(read_batches(path, 700, schema)).to_pylist() == table.to_pylist()
        with pytest.raises(DataError):
            next(read_batches(path, 700, schema, len(table) - 1))
