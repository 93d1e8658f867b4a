"""What the pages tell a stranger to type is typed here, on a few rows of the same table."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

import nacre
from dpmodels.errors import SchemaError
from flows.demo import SCHEMA, _fetch
from tests.support import charges, run_cli

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md")])


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where `nacre demo` has left its table, of a tenth of the rows, and its schema."""
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NACRE_HOME", "state")
    (tmp_path / "demo").mkdir()
    table = tmp_path / "demo" / "randhie.parquet"
    _fetch(table)
    pd.read_parquet(table).head(2_000).to_parquet(table, index=False)
    shutil.copy(SCHEMA, tmp_path / "demo")
    return tmp_path


def commands(page: Path) -> list[list[str]]:
    """List the commands of a page, which stand in lines of their own."""
    found = re.findall(r"^    (nacre .*?)(?:\s+# .*)?$", page.read_text(), re.MULTILINE)
    return [shlex.split(line)[1:] for line in found]


def test_the_tutorial_can_be_typed_from_top_to_bottom(demo: Path) -> None:
    typed = commands(ROOT / "docs" / "tutorial.md")
    assert typed.pop(0)[0] == "demo" and len(typed) == 9
    for words in typed:
        words, into = (words[: words.index(">")], words[-1]) if ">" in words else (words, "")
        code, out, err = run_cli(*words)
        assert code == 0, (words, err)
        if into:
            Path(into).write_text(out)
    with pytest.raises(SchemaError, match=r"mdvis\.min: is still TODO"):
        nacre.load_schema("draft.yaml")
    listed = re.findall(r"^    hand-off/(\S+?),? ", (ROOT / "docs" / "tutorial.md").read_text(), re.MULTILINE)
    assert len(listed) == 5 and all((demo / "hand-off" / name).exists() for name in listed)
    assert charges(demo / "state") == ["reserve", "draw", "seal", "commit"]


def test_the_lines_for_a_notebook_run_as_they_stand(demo: Path) -> None:
    import pandas as pd

    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)
    names: dict[str, object] = {"frame": pd.read_parquet("demo/randhie.parquet"), "nacre": nacre}
    for block in reversed(blocks):  # the account is opened first
        exec(block, names)
    made = names["made"]
    assert isinstance(made, nacre.Result) and len(made.table) > 1_000 and len(blocks) == 2


def test_every_function_is_on_the_page() -> None:
    text = (ROOT / "docs" / "python.md").read_text()
    shown = set(re.findall(r"nacre\.(\w+)", text))
    assert {name for name in nacre.__all__ if name[0].islower()} <= shown
    assert all(hasattr(nacre, name) for name in shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_within_the_pages_is_broken(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
