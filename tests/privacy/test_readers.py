"""Damaged files, and files that were made to do harm: each is refused in a sentence, and no private value is said."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels import limits
from dpmodels.authoring.lint import load_schema, parse
from dpmodels.errors import ArtifactError, InvalidArgument, SchemaError, Unsuitable
from dpmodels.hand_off.manifest import MANIFEST
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.keys import public_key
from dpmodels.text.encoders import describe_encoder
from flows.config import SynthesizeConfig
from tests.kit.damaged import CARDED, SECRET, Reader, outcome, readers
from tests.kit.errors import refused
from tests.kit.manifests import rewritten

ROOT = Path(__file__).parents[2]
NAMES = sorted(readers())
BITS = [
    b"\x00", b"\xff", b"\xff" * 8, b"\x7f\xff\xff\xff", b"-1", b"9" * 30, b"1e400", b"NaN", b"null", b"[]", b"{}",
    b"true", b'"', b"'", b"\n", b",", b":", b"- ", b"~", b"\xc3(", b"\xe2\x80\xae", b"../../", b"&a *a", b"[" * 40,
    b"\x1b[31m", b"0x1F",    b"2020-99-99", b"1:30", b"!!python/object/apply:os.system [id]", b"\xf0\x9f\x92\xa9",
]  # fmt: skip
"""What breaks readers: ends of numbers, signs that mean something, text that is none, words of other languages."""
LOADERS = {
    ("pickle", "load"), ("pickle", "loads"), ("pickle", "Unpickler"), ("cloudpickle", "load"), ("cloudpickle", "loads"),
    ("dill", "load"), ("dill", "loads"), ("marshal", "load"), ("marshal", "loads"), ("shelve", "open"),
    ("joblib", "load"), ("yaml", "load"), ("yaml", "load_all"), ("yaml", "unsafe_load"), ("yaml", "full_load"),
    ("torch", "load"), ("np", "load"), ("numpy", "load"), ("pandas", "read_pickle"), ("pd", "read_pickle"),
    ("jsonpickle", "decode"),
}  # fmt: skip
HARMLESS = {("np", "load"): ("allow_pickle", False), ("torch", "load"): ("weights_only", True)}
BETWEEN_PROCESSES = {"tasks/engine/cluster.py"}
OPERATORS = {("dpmodels/generators/operators/network.py", "exec")}
"""Runs the source that the worker's own file names, which no file of data or of a run does."""
"""Here a function of ours goes to a worker of the operator's own Dask cluster, which unpickles all that it is sent."""

EXAMPLES = 8 if settings().max_examples == 100 else settings().max_examples
"""Damaged files of each kind; ``pytest --hypothesis-profile thorough`` asks for more than the 100 of no profile."""

Edit = tuple[str, float, bytes, int]
edits = st.lists(
    st.tuples(
        st.sampled_from(["flip", "put", "insert", "delete", "repeat", "cut"]),
        st.floats(0, 1, exclude_max=True),
        st.one_of(st.sampled_from(BITS), st.binary(min_size=1, max_size=8)),
        st.integers(1, 200),
    ),
    min_size=1,
    max_size=5,
)


def damaged(whole: bytes, wished: list[Edit]) -> bytes:
    """Return content with some edits, each at a place that is a share of its length."""
    content = bytearray(whole)
    for kind, share, bits, length in wished:
        at = int(share * len(content))
        match kind:
            case "flip" if content:
                content[at] ^= 1 << length % 8
            case "put":
                content[at : at + len(bits)] = bits
            case "insert":
                content[at:at] = bits
            case "delete":
                del content[at : at + length]
            case "repeat":
                content[at:at] = content[at : at + length]
            case "cut" if share > 0.5:
                del content[at:]
    return bytes(content)


def hold(reader: Reader, wished: list[Edit]) -> None:
    """Read a damaged file: it is read, or it is refused in a sentence that holds no private value."""
    said = outcome(reader, damaged(reader.whole, wished))
    assert SECRET not in said and "\x1b" not in said and "Traceback" not in said
    assert len(said) < 4000


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_file_is_read(name: str) -> None:
    assert outcome(readers()[name], readers()[name].whole) == ""


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=EXAMPLES, derandomize=True, database=None)
@given(wished=edits)
def test_a_damaged_file_is_refused_in_a_sentence(name: str, wished: list[Edit]) -> None:
    hold(readers()[name], wished)


FOUND = [
    ("rows.csv", b'"ward"', b'"w\xffrd"'),
    ("letters.csv", b'"author"', b'"auth\xff"'),
    ("ward.csv", b'"pulse"', b'"p\xfflse"'),
    ("vectors.parquet", b"vectors", b"vec\xffors"),
    ("rows.parquet", b"south", b"s\xffuth"),
    ("made.parquet", b"south", b"s\xffuth"),
    ("made.parquet", b"smoker", b"smok\xffr"),
    ("pictures.npz", b"PK\x03\x04", b"PK\x03\x05"),
    ("checkpoint.safetensors", b"model/weight", b"modem/weight"),
    ("generator.safetensors", b"mixture", b"network"),
    ("generator.safetensors", b"class_counts", b"clasz_counts"),
    ("config.yaml", b"a.csv", b"\xff.csv"),
    ("config.yaml", b"rows: 7", b"rows: 2020-99-99"),
]
"""What ended a reader otherwise than in a sentence, once."""


@pytest.mark.parametrize(("name", "whole", "broken"), FOUND)
def test_what_was_found_stays_mended(name: str, whole: bytes, broken: bytes) -> None:
    content = readers()[name].whole.replace(whole, broken)
    assert content != readers()[name].whole
    said = outcome(readers()[name], content)
    assert said and SECRET not in said and "\xff" not in said


def test_an_unknown_key_of_a_client_is_told_with_the_keys_there_are() -> None:
    _, faults = parse(readers()["federation.yaml"].whole.replace(b"name: north", b"nome: north").decode())
    assert any("did you mean `name`" in str(fault) for fault in faults)


keys = st.sampled_from(
    ["name", "unit", "columns", "target", "clients", "encoder", "text", "type", "min", "values", "x"]
)
parts = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["integer", "TODO", "image"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50, derandomize=True, database=None)
@given(content=st.dictionaries(keys, parts, max_size=6))
def test_a_contract_of_any_content_has_faults_and_makes_none(content: dict) -> None:
    found, faults = parse(yaml.safe_dump(content, allow_unicode=True))
    assert (found is None) == bool(faults)


@settings(max_examples=50, derandomize=True, database=None)
@given(text=st.text(max_size=200))
def test_any_text_in_the_place_of_a_contract_is_told_in_faults(text: str) -> None:
    found, faults = parse(text)
    assert (found is None) == bool(faults)


@pytest.mark.parametrize("name", ["schema-1.yaml", "config.yaml", "manifest-card.json", "handed-model-card.json"])
def test_what_is_nested_too_deep_is_refused(name: str) -> None:
    for bomb in (b"[" * 20_000, b'{"a":' * 20_000, b"{a: " * 5000):
        assert SECRET not in outcome(readers()[name], bomb)


def test_what_repeats_itself_in_yaml_is_not_unfolded(tmp_path: Path) -> None:
    layers = [f"l{number}: &l{number} [{', '.join([f'*l{number - 1}'] * 9)}]" for number in range(1, 12)]
    bomb = "\n".join(["l0: &l0 [1]", *layers, "columns: *l11"])
    found, faults = parse(bomb)
    assert found is None and any("repeats another part" in str(fault) for fault in faults)
    (tmp_path / "bomb.yaml").write_text(bomb)
    with pytest.raises(InvalidArgument):
        SynthesizeConfig.build({}, tmp_path / "bomb.yaml")


def test_a_file_that_is_larger_than_its_kind_may_be_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"#" * (limits.LARGEST_YAML + 1))
    with pytest.raises(SchemaError, match="larger than 2 MiB"):
        load_schema(file)
    with pytest.raises(ArtifactError, match="larger than 2048 KiB"):
        SynthesizeConfig.build({}, file)
    with refused(InvalidArgument, name="public_key", value=file):
        public_key(file)
    padded = b'{"format": 5, "x": "' + b"x" * limits.LARGEST_MANIFEST + b'"}'
    own = rewritten(CARDED, tmp_path / "own", "schema.yaml", lambda content: content + b"\n#" * limits.LARGEST_YAML)
    assert any("schema.yaml is not the schema" in fault for fault in verify_hand_off(own).faults)
    (own / MANIFEST).write_bytes(padded)
    with pytest.raises(ArtifactError, match="larger than 4 MiB"):
        verify_hand_off(own)


def _sources() -> Iterator[Path]:
    for room in ("dpmodels", "tasks", "flows", "nacre", "deployments"):
        yield from sorted((ROOT / room).rglob("*.py"))


def loads(tree: ast.AST) -> Iterator[str]:
    """Yield every call, and every import by name, of what runs or may run what a file says."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=module, names=names):
                yield from (f"from {module}" for each in names if (module, each.name) in LOADERS)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if (module, name) in LOADERS - HARMLESS.keys():
                yield f"{module}.{name}"
            case ast.Call(func=ast.Name(id="eval" | "exec" as name)):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name), keywords=given):
                wanted = HARMLESS.get((module, name))
                said = [(each.arg, getattr(each.value, "value", None)) for each in given]
                yield from [f"{module}.{name}"] if wanted and wanted not in said else []
                yield from (each.arg for each in given if each.arg == "trust_remote_code")


@pytest.mark.parametrize(
    "bad",
    [
        "import pickle\npickle.load(f)", "from pickle import loads", "np.load(p)", "np.load(p, allow_pickle=True)",
        "torch.load(p)", "torch.load(p, weights_only=False)", "yaml.load(t, Loader=yaml.Loader)", "eval(text)",
        "g(torch, pickle.loads)", "AutoModel.from_pretrained(p, trust_remote_code=True)",
    ],
)  # fmt: skip
def test_the_search_for_pickle_finds_it(bad: str) -> None:
    assert list(loads(ast.parse(bad)))


def test_nothing_that_is_loaded_is_run() -> None:
    found = {(str(file.relative_to(ROOT)), what) for file in _sources() for what in loads(ast.parse(file.read_text()))}
    assert found == {(place, "pickle.loads") for place in BETWEEN_PROCESSES} | OPERATORS


def test_a_model_in_a_pickle_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[]")
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch hit'\ntR.")
    with pytest.raises(Unsuitable, match="reading a pickle runs"):
        describe_encoder(str(tmp_path))


def test_every_reader_is_tried() -> None:
    """Whoever adds a suffix that is read adds it here."""
    assert {Path(name).suffix for name in NAMES} == {
        ".parquet", ".csv", ".tsv", ".gz", ".jsonl", ".arrow", ".npz", ".png", ".safetensors", ".yaml", ".yml", ".sql",
        ".json", ".pem", ".xlsx", "",
    }  # fmt: skip
