"""What the pages tell a stranger to type is typed here, on a few rows of the same table; what they name is there."""

import json
import re
import shlex
import shutil
import warnings
from pathlib import Path

import pandas as pd
import pytest
import yaml

import nacre
from benchmarks.first import PATIENTS, patients
from dpmodels.errors import SchemaError
from dpmodels.hand_off.verify import verify_hand_off
from flows.demo import CODEBOOK, SCHEMA, TABLE
from tests.kit.support import charges, run_cli, write_key

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "example"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md")])


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where `nacre demo` has left its table, of an eighth of the rows, and its schema."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NACRE_HOME", "state")
    (tmp_path / "demo").mkdir()
    table = tmp_path / "demo" / "earnings.parquet"
    pd.read_parquet(TABLE).head(2_000).to_parquet(table, index=False)
    for file in (SCHEMA, CODEBOOK):
        shutil.copy(file, tmp_path / "demo")
    return tmp_path


def commands(page: Path) -> list[list[str]]:
    """List the commands of a page, which stand in lines of their own."""
    found = re.findall(r"^    (?:\.venv/bin/)?(nacre .*?)(?:\s+# .*)?$", page.read_text(), re.MULTILINE)
    return [shlex.split(line)[1:] for line in found]


def sections(hand_off: Path) -> tuple[list[str], list[str]]:
    """Name the sections of a hand-off's report, on the page and in the file of its facts."""
    headings = re.findall(r"<h[23][^>]*>([^<]+)", (hand_off / "report.html").read_text())
    return headings, list(json.loads((hand_off / "report.json").read_text()))


def test_the_tutorial_can_be_typed_from_top_to_bottom(demo: Path) -> None:
    typed = commands(ROOT / "docs" / "tutorial.md")
    assert typed.pop(0)[0] == "demo" and len(typed) == 13
    Path("longer.yaml").write_text("model: {training: {steps: 310}}")
    write_key(Path("own.pem"))  # and own.pub, as the lines of openssl do
    for words in typed:
        if Path("hand-off").exists():
            run = json.loads(Path("hand-off", "manifest.json").read_text())["run"]
            words = [word.replace("RUN", run) for word in words]
        words, into = (words[: words.index(">")], words[-1]) if ">" in words else (words, "")
        code, out, err = run_cli(*words, *(["--yes"] if words[0] == "approve" else []))
        verified = "VERIFIED: files and privacy claim are whole, and signed by the key you named" in out
        assert code == 0 and verified == (words[0] == "verify"), err
        if into:
            Path(into).write_text(out)
    with pytest.raises(SchemaError, match=r"age\.confirm: is still TODO"):
        nacre.load_schema("draft.yaml")
    listed = re.findall(r"^    hand-off/(\S+?),? ", (ROOT / "docs" / "tutorial.md").read_text(), re.MULTILINE)
    assert len(listed) == 8 and all((demo / "hand-off" / name).exists() for name in listed)
    assert charges(demo / "state") == ["reserve", "draw", "seal", "commit"]
    # the checked-in example is of the same table: make it again as docs/index.md says when this fails
    assert sections(EXAMPLE) == sections(demo / "hand-off")


def test_the_commands_for_a_table_of_ones_own_run_as_the_readme_has_them(demo: Path) -> None:
    text = (ROOT / "README.md").read_text().split("## Your own table")[1].split("**1. Say")[0]
    (demo / "own.md").write_text(text)
    assert not re.search(r"^    (?!nacre |export PATH=\S+ NACRE_HOME=)", text, re.MULTILINE)
    typed = commands(demo / "own.md")
    assert [words[:2] for words in typed[:2]] == [["schema", "init"], ["schema", "lint"]]
    assert [words[0] for words in typed[2:]] == ["validate", "ledger", "ledger", "plan", "synthesize", "ledger"]
    for words in typed:
        code, _, err = run_cli(*words)
        assert code == 0, (words, err)
    assert nacre.load_schema("earnings.yaml").columns == nacre.load_schema(SCHEMA).columns
    assert charges(demo / "state") == ["reserve", "draw", "seal", "commit"]


def test_the_lines_of_python_in_the_readme_run_as_they_stand(demo: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(block, names)
    made = names["made"]
    assert isinstance(made, nacre.Result) and len(made.table) > 1_000
    schema, drafted = nacre.load_schema(SCHEMA), names["schema"]
    many_zeros = {name: one.model_copy(update={"zero_inflated": True}) for name, one in drafted.columns.items()}
    assert drafted.target == "married" and schema.columns == drafted.columns | {
        name: many_zeros[name] for name in many_zeros if name.startswith("earned")
    }
    assert nacre.ledger("practice").balance("earnings").remaining_epsilon < 3
    assert len([line for line in block.splitlines() if line]) <= 15


def test_every_page_of_the_example_is_compared_and_none_differs() -> None:
    """When this fails, a page has changed: make the example again as docs/index.md says, and what quotes it."""
    found = verify_hand_off(EXAMPLE)
    assert (found.faults, found.notes) == ([], [])


def test_the_tutorial_of_patients_can_be_typed_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NACRE_HOME", "state")
    page = ROOT / "docs" / "tutorial-patients.md"
    make, look = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (schema,) = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    Path("visits.yaml").write_text(schema)
    names: dict[str, pd.Series] = {}
    exec(make, names)
    typed, told = commands(page), ""
    assert [words[0] for words in typed] == ["schema", "ledger", "plan", "synthesize", "sample"]
    for words in typed:
        if Path("hand-off").exists():
            run = json.loads(Path("hand-off", "manifest.json").read_text())["run"]
            words = [word.replace("RUN", run) for word in words]
        code, out, err = run_cli(*words)
        assert code == 0, (words, err)
        told += out.replace("\n", " ")
    quoted = re.findall(r"^\| `(\w+ ?\w*[: ].*?)` \|", page.read_text(), re.MULTILINE)
    assert len(quoted) == 3 and [each for each in quoted if each not in told] == []
    exec(look, names)
    assert names["rates"]["heart"] > names["rates"]["eyes"] + 0.1
    other = schema.replace("max_rows: 10", "max_rows: 3").replace(", keep: regenerate", "")
    alone = nacre.lint(re.sub(r"^users:.*\n", "", other, flags=re.MULTILINE))
    assert not alone.faults and charges(tmp_path / "state") == ["reserve", "draw", "seal", "commit"]


@pytest.mark.nightly  # its commands are those of tests/flows/test_embed_documents.py
def test_the_tutorial_of_documents_can_be_typed_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NACRE_HOME", "state")
    page = ROOT / "docs" / "tutorial-documents.md"
    make, look = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the manuals tell of names that are going away
        exec(make, {})
    (contract,) = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    Path("documents.yaml").write_text(contract)
    typed = commands(page)
    assert [words[0] for words in typed] == ["embed-documents", "synthesize"]
    for words in typed:
        code, _, err = run_cli(*words)
        assert code == 0, err
    names: dict[str, float] = {}
    exec(look, names)
    assert names["right"] > 0.8
    for folder in ("one-by-one", "together"):
        assert not verify_hand_off(Path(folder)).faults


def test_the_example_is_whole_and_tells_nothing_of_the_machine_that_made_it() -> None:
    assert not verify_hand_off(EXAMPLE).faults and sum(file.stat().st_size for file in EXAMPLE.rglob("*")) < 1 << 20
    for file in EXAMPLE.rglob("*.*"):
        told = re.findall(
            rb"(?:file:/|\s|[\"'(])/(?:home|tmp|root|work|srv|usr|Users)/|\b\d\d:\d\d:\d\d\b", file.read_bytes()
        )
        assert told == [], file


def test_every_command_of_the_pages_exists_with_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    shown, helps = [words for page in PAGES for words in commands(page)], dict[tuple[str, ...], str]()
    assert len(shown) > 30
    for words in shown:
        name = tuple(words[: 2 if words[0] in ("ledger", "schema") else 1])
        if name not in helps:
            code, helps[name], _ = run_cli(*name, "--help")
            assert code == 0, words
        for option in (word for word in words if word.startswith("--")):
            assert re.search(rf"{option}\b", helps[name]), (words, option)


def test_the_lines_for_a_notebook_run_as_they_stand(demo: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)
    names: dict[str, object] = {"frame": pd.read_parquet("demo/earnings.parquet"), "nacre": nacre}
    for block in reversed(blocks):  # the account is opened first
        exec(block, names)
    made = names["made"]
    assert isinstance(made, nacre.Result) and len(made.table) > 1_000 and len(blocks) == 2


def test_the_example_of_inference_runs_on_what_the_demo_leaves(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = nacre.synthesize("demo/earnings.parquet", "demo/earnings.yaml", epsilon=1, delta=1e-5, home="demo/home")
    shutil.copytree(made.folder, "demo/hand-off-1")
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "inference.md").read_text(), re.DOTALL)
    capsys.readouterr()
    exec(block, {})
    first_words = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert first_words == ["ethnicity", "black", "hispanic", "other"]


def test_the_notebook_runs_from_its_first_cell_to_its_last(demo: Path) -> None:
    cells = json.loads((ROOT / "docs" / "notebook.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 6 and all(not cell["outputs"] for cell in cells if cell["cell_type"] == "code")
    names: dict[str, object] = {}
    for source in code:
        exec(source, names)
    made = names["made"]
    assert isinstance(made, nacre.Result) and charges(demo / "state") == ["reserve", "draw", "seal", "commit"]
    assert "TODO" not in str(yaml.safe_load(str(names["draft"]))) and "target: married" in str(names["draft"])
    (opening,) = [source for source in code if "open_account" in source]
    exec(opening, names)  # the same terms again, as the page says
    with pytest.raises(nacre.LedgerError, match="already open with other terms"):
        exec(opening.replace("epsilon=3", "epsilon=2"), names)


def test_every_function_is_on_the_page() -> None:
    text = (ROOT / "docs" / "python.md").read_text()
    shown = set(re.findall(r"nacre\.(\w+)", text))
    assert {name for name in nacre.__all__ if name[0].islower()} <= shown
    assert all(hasattr(nacre, name) for name in shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_within_the_pages_is_broken(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
        there = page.parent / target if target else page
        assert there.exists(), target
        headings = re.findall(r"^#+ (.*)", there.read_text(), re.MULTILINE) if there.suffix == ".md" and anchor else []
        named = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
        assert anchor in named or there.suffix != ".md" or not anchor, f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    folders = "dpmodels|tasks|flows|nacre|deployments|tests|benchmarks|docs"
    for name in re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text()):
        assert (ROOT / name).exists() or "NNNN" in name, name


def test_the_architecture_has_every_folder_and_every_room() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = [path.parent for path in ROOT.glob("dpmodels/*/__init__.py")]
    assert len(rooms) > 9 and all(f"{room.name}/" in text for room in rooms)
    way = re.findall(r"^\| `(\S+\.py)` \| `(\w+)` \|", text, re.MULTILINE)
    assert len(way) == 6 and all(f"def {name}(" in (ROOT / file).read_text() for file, name in way)


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    named = re.findall(r"(\S+\.md)$", nav, re.MULTILINE)
    pages = {str(page.relative_to(ROOT / "docs")) for name in named for page in (ROOT / "docs").glob(name)}
    assert pages == {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}


def sentences(answer: str) -> int:
    """Count the sentences of an answer, its commands aside."""
    said = re.sub(r"`[^`]*`", "x", re.sub(r"^    .*", "", answer, flags=re.MULTILINE))
    return len(re.findall(r"[.?!](?=\s|$)", said.strip()))


def test_each_question_is_answered_by_one_command_of_nacre_and_a_link() -> None:
    text = (ROOT / "docs" / "how-do-i.md").read_text()
    asked = re.split(r"^\*\*(\d+)\. How do I .*\?\*\*$", text, flags=re.MULTILINE)
    assert asked[1::2] == [str(number) for number in range(1, 42)]
    answers = [answer.partition("\n## ")[0] for answer in asked[2::2]]
    assert all(len(re.findall(r"^    nacre ", answer, re.MULTILINE)) == 1 for answer in answers)
    assert all("](" in answer and sentences(answer) <= 3 for answer in answers)


def refusals() -> list[list[str]]:
    """Write what is wrong of each kind beside the demo's files, and list the commands that refuse it."""
    schema = SCHEMA.read_text()
    changed = {
        "todo": ("max: 55", "max: TODO"),
        "less": ("  school_years: {type: integer, min: 0, max: 18}\n", ""),
        "more": ("columns:\n", "columns:\n  day: {type: integer, min: 0, max: 9}\n"),
        "narrow": ("max: 55", "max: 40"),
        "wages": ("name: earnings", "name: wages"),
    }
    for name, (old, new) in changed.items():
        Path(f"{name}.yaml").write_text(schema.replace(old, new))
    day = "{type: integer, min: 0, max: 9}"
    Path("other.yaml").write_text(f"name: other\ncolumns:\n  day: {day}\n  hour: {day}\n")
    rows = pd.read_parquet("demo/earnings.parquet")
    rows.assign(age=rows.age.where(rows.index > 3)).to_parquet("null.parquet")
    Path("parted.csv").write_text("§".join(rows.columns) + "\n")
    rows.astype({"earned_74": str}).replace({"earned_74": {"0": "none"}}).to_csv("words.csv", index=False)

    def makes(kind: str = "demo/earnings", rows: str = "demo/earnings.parquet", more: str = "--home new") -> str:
        return f"synthesize {rows} --schema {kind}.yaml --epsilon 3 --delta 1e-5 --out next {more}"

    lines = [
        "schema lint todo.yaml",
        makes("less"),
        makes("more"),
        makes("other"),
        makes(rows="parted.csv"),
        makes("narrow"),
        makes(rows="words.csv"),
        makes(rows="null.parquet"),
        makes(rows="absent.parquet"),
        makes().replace("1e-5", "0.1"),
        makes().replace("next", "made"),
        makes(more=""),
        makes("wages", more=""),
        makes("wages", more="--open"),
        "sample 20990101-abc --rows 5 --out more.parquet",
    ]
    return [line.split() for line in lines]


@pytest.mark.nightly  # half a minute of commands
def test_the_errors_of_the_page_are_printed_as_they_stand_there(demo: Path) -> None:
    page = (ROOT / "docs" / "errors.md").read_text()
    told = re.findall(r"^\| `(.*?)` \|", page, re.MULTILINE)
    nacre.synthesize("demo/earnings.parquet", "demo/earnings.yaml", epsilon=1, delta=1e-5, out="made")
    for words, error in zip(refusals(), told, strict=True):
        code, _, err = run_cli(*words)
        assert code == 1 and all(part in err for part in error.split("…")), (error, err)
    assert charges(demo / "state") == ["reserve", "draw", "seal", "commit"] and not Path("next").exists()


def test_pages_say_how_many_questions_are_answered() -> None:
    pages = [ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "how-do-i.md"]
    assert all("forty questions" in page.read_text().lower() for page in pages)


def test_the_schema_of_the_readme_is_that_of_the_demo_and_patients_fit_theirs() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    schema, demo = nacre.load_schema(shown), nacre.load_schema(SCHEMA)
    assert (schema.columns, schema.target, schema.unit) == (demo.columns, demo.target, demo.unit)
    assert set(nacre.load_schema(PATIENTS).columns) == set(patients(10).column_names)
    asked = re.findall(r"^    (workload:|- columns: .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    workload = nacre.load_schema("\n".join([*asked, shown])).workload
    assert workload[0].columns == ("ethnicity", "earned_78") and len(workload) == 3


def test_every_decision_has_a_status() -> None:
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    lines = [page.read_text().splitlines()[2] for page in decisions]
    assert [
        line for line in lines if not re.match(r"2\d{3}-\d\d-\d\d\. Status: (accepted|superseded by \d{4})\b", line)
    ] == []
