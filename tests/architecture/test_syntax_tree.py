"""House rules that are read off the syntax tree, each shown to catch what it forbids."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpmodels.releases.contract import KINDS
from tests.architecture.shape import nodes, parsed, sizes, too_large

ROOT = Path(__file__).parents[2]
REVEALING = "reading text statistics embeddings mechanisms comparison audit"
REVEALS = {f"dpmodels/{room}" for room in REVEALING.split()}
NUMPY_EXPLICIT = {"default_rng", "Generator", "SeedSequence", "PCG64", "Philox", "BitGenerator"}
RENAMES = {
    *("dpmodels/artifact.py", "dpmodels/reading/ingest.py"),
    *("tasks/stages/aggregate.py", "tasks/run/receive.py", "tasks/run/remove.py"),
}
TORCH_DRAWS = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson"}
MODELS = {"Contract", "CanonicalContract", *(model.__name__ for model in KINDS.values())}
ROOMS = ("dpmodels", "tasks", "flows", "nacre")
CONTRACT_READERS = {"dpmodels/releases/contract.py", "nacre/given.py"}
SENTENCES_MATCHED = 3
"""All three expect one of two errors, of which one has no fields; other tests match fields by tests/kit/errors.py."""

Rule = Callable[[ast.AST], Iterator[str]]


def dotted(node: ast.AST) -> str:
    """Return ``a.b.c`` for such an expression, else the empty string."""
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def reveals(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute) and node.attr in ("reveal", "_Sensitive__value"):
        yield "reveals a sensitive value"
    if isinstance(node, ast.Constant) and node.value in ("reveal", "_Sensitive__value"):
        yield "names the way into a sensitive value"


def draws_pseudo_random(node: ast.AST) -> Iterator[str]:
    """Find any generator but the system's: in the mechanisms even a seeded one would be a way to undo the noise."""
    for name in imported(node):
        if name == "random" or name.startswith(("random.", "numpy.random", "torch.random")):
            yield f"imports {name}"
    name = dotted(node)
    if name.startswith(("np.random", "numpy.random", "torch.random", "torch.cuda.manual_seed")):
        yield f"uses {name}"
    if name in {
        f"torch.{draw}" for draw in (*TORCH_DRAWS, "manual_seed", "seed", "Generator", "rand_like", "randn_like")
    }:
        yield f"uses {name}"
    if isinstance(node, ast.Attribute) and node.attr in (
        "normal_",
        "uniform_",
        "bernoulli_",
        "random_",
        "exponential_",
    ):
        yield f"uses {node.attr}"


def uses_global_random_state(node: ast.AST) -> Iterator[str]:
    if "random" in imported(node):
        yield "imports random"
    name = dotted(node)
    if name.startswith(("np.random.", "numpy.random.")) and name.split(".")[2] not in NUMPY_EXPLICIT:
        yield f"uses {name}"
    if isinstance(node, ast.Call):
        name = dotted(node.func)
        drawn = name in {f"torch.{draw}" for draw in TORCH_DRAWS} or name in ("torch.rand_like", "torch.randn_like")
        if drawn and not any(keyword.arg == "generator" for keyword in node.keywords):
            yield f"calls {name} without a generator"
    if isinstance(node, ast.FunctionDef):
        calls = [dotted(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)]
        if "torch.manual_seed" in calls and "torch.random.fork_rng" not in calls:
            yield f"{node.name} seeds torch for everybody"


def looks_at_the_machine(node: ast.AST) -> Iterator[str]:
    """Find what lists every process of the machine: other tests, and other people, run there too."""
    listed = {"psutil.process_iter", "psutil.pids"}
    if dotted(node) in listed or listed & {*imported(node)}:
        yield "lists the processes of the machine"
    if isinstance(node, ast.Constant) and node.value in ("pgrep", "pkill", "killall"):
        yield f"calls {node.value}"


def reads_the_environment(node: ast.AST) -> Iterator[str]:
    if dotted(node) in ("os.environ", "os.getenv", "os.environb") or {"os.environ", "os.getenv"} & {*imported(node)}:
        yield "reads the environment"


def asks_for_a_model(node: ast.AST) -> Iterator[str]:
    """Find who asks a contract which model it is; it says itself what differs between kinds of data."""
    classes: list[ast.AST] = []
    if isinstance(node, ast.Call) and dotted(node.func) in ("isinstance", "issubclass"):
        classes = [*ast.walk(node.args[1])]
    elif isinstance(node, ast.MatchClass):
        classes = [node.cls]
    elif isinstance(node, ast.Compare) and any(isinstance(part, ast.Is | ast.IsNot | ast.Eq) for part in node.ops):
        classes = node.comparators
    if asked := sorted({dotted(one).rpartition(".")[2] for one in classes} & MODELS):
        yield f"asks for {asked[0]}"


def asserts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Assert):
        yield "asserts; python -O removes it"


def renames(node: ast.AST) -> Iterator[str]:
    """Find what gives a file a name without syncing it first; ``replace`` of a text takes two arguments."""
    if dotted(node) in ("os.replace", "os.rename", "os.renames", "shutil.move"):
        yield f"uses {dotted(node)}"
    if isinstance(node, ast.ImportFrom) and node.module in ("os", "shutil"):
        yield from (f"imports {one.name}" for one in node.names if one.name in ("replace", "rename", "renames", "move"))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not dotted(node.func).startswith("os."):
        paths = (
            len(node.args) == 1 and not node.keywords and not dotted(node.func).startswith(("dataclasses", "spares"))
        )
        if node.func.attr == "rename" or (node.func.attr == "replace" and paths):
            yield f"uses .{node.func.attr} on a path"


def matches_a_sentence(node: ast.AST) -> Iterator[str]:
    """Find what matches the sentence of an error whose fields tell which it is."""
    if isinstance(node, ast.Call) and dotted(node.func) in ("raises", "pytest.raises") and node.args:
        errors = {dotted(one).rpartition(".")[2] for one in ast.walk(node.args[0])}
        if errors & {"InvalidArgument", "DataError"} and any(keyword.arg == "match" for keyword in node.keywords):
            yield "matches a sentence"


def faults(rule: Rule, *folders: str, spared: set[str] = frozenset()) -> list[str]:
    """Apply a rule to every module under the folders but the spared ones."""
    found = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            if not place.startswith(tuple(spared)):
                every = nodes(path)
                found += [f"{place}:{getattr(node, 'lineno', 0)} {fault}" for node in every for fault in rule(node)]
    return found


def test_sensitive_values_are_revealed_in_six_rooms_only() -> None:
    assert faults(reveals, "dpmodels", "tasks", "flows", "deployments", "nacre", spared=REVEALS) == []


def test_mechanisms_draw_from_the_system_only() -> None:
    assert faults(draws_pseudo_random, "dpmodels/mechanisms") == []


def test_the_library_keeps_no_global_random_state() -> None:
    assert faults(uses_global_random_state, "dpmodels") == []


def test_the_library_reads_no_environment() -> None:
    assert faults(reads_the_environment, "dpmodels") == []


def test_tests_look_at_no_process_but_their_own() -> None:
    assert (
        faults(looks_at_the_machine, "tests", spared={"tests/kit/support.py", "tests/architecture/test_syntax_tree.py"})
        == []
    )


def test_errors_with_fields_are_matched_by_them() -> None:
    assert len(found := faults(matches_a_sentence, "tests")) <= SENTENCES_MATCHED, found


def test_files_get_their_names_in_one_module_that_syncs_them_first() -> None:
    """The others move what is deleted next, or make a part of a folder that is synced and named as a whole."""
    assert faults(renames, "dpmodels", "tasks", "flows", "nacre", spared=RENAMES) == []


def test_contracts_are_told_apart_only_where_they_are_read() -> None:
    assert faults(asks_for_a_model, *ROOMS, spared=CONTRACT_READERS) == []
    assert len(faults(asks_for_a_model, "dpmodels/releases", "nacre")) == len(CONTRACT_READERS)


def undescribed(trees: list[ast.Module]) -> list[str]:
    """List the public methods without a docstring that no base class describes; bases are found by their names."""
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    described, bases = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    methods = [(one.name, method) for one in classes for method in one.body if isinstance(method, ast.FunctionDef)]
    for one in classes:
        parents = [base.value if isinstance(base, ast.Subscript) else base for base in one.bases]
        bases[one.name] |= {dotted(base).rpartition(".")[2] for base in parents}
    for name, method in methods:
        described[name] |= {method.name} if ast.get_docstring(method) else set()

    def says(name: str, method: str) -> bool:
        return method in described[name] or any(says(base, method) for base in bases[name] - {name})

    lacking = {f"{name}.{one.name}" for name, one in methods if not says(name, one.name)}
    return sorted(each for each in lacking if "._" not in each and not each.startswith("_"))


def test_public_methods_say_what_they_do_unless_they_override_one_that_does() -> None:
    assert undescribed([parsed(path) for room in ROOMS for path in (ROOT / room).rglob("*.py")]) == []
    text = "class A:\n    def f(self):\n        'Say.'\nclass B(A):\n    def f(self): ...\n    def g(self): ..."
    assert undescribed([ast.parse(text)]) == ["B.g"]


def test_nothing_depends_on_assert() -> None:
    assert faults(asserts, "dpmodels", "tasks", "flows", "nacre") == []


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (reveals, "x.reveal()"),
        (reveals, "f = x.reveal"),
        (reveals, "getattr(x, 'reveal')()"),
        (reveals, "x._Sensitive__value"),
        (draws_pseudo_random, "import random"),
        (draws_pseudo_random, "from random import gauss"),
        (draws_pseudo_random, "from numpy.random import default_rng"),
        (draws_pseudo_random, "from numpy import random"),
        (draws_pseudo_random, "np.random.default_rng(0)"),
        (draws_pseudo_random, "torch.randn(3, generator=g)"),
        (draws_pseudo_random, "torch.Generator()"),
        (draws_pseudo_random, "x.normal_()"),
        (uses_global_random_state, "import random"),
        (uses_global_random_state, "np.random.normal()"),
        (uses_global_random_state, "torch.rand(3)"),
        (uses_global_random_state, "torch.randn_like(x)"),
        (uses_global_random_state, "def f():\n    torch.manual_seed(0)"),
        (reads_the_environment, "os.environ['HOME']"),
        (reads_the_environment, "from os import getenv"),
        (renames, "os.replace(a, b)"),
        (renames, "from os import rename"),
        (renames, "path.replace(target)"),
        (renames, "Path(a).rename(b)"),
        (asks_for_a_model, "isinstance(contract, Schema)"),
        (asks_for_a_model, "isinstance(contract, schema.Schema | None)"),
        (asks_for_a_model, "isinstance(contract, (Documents, Federation))"),
        (asks_for_a_model, "type(contract) is Discovery"),
        (asks_for_a_model, "match contract:\n    case Schema(): pass"),
        (asserts, "assert x"),
        (matches_a_sentence, "pytest.raises(errors.DataError, match='x')"),
        (matches_a_sentence, "pytest.raises((InvalidArgument, Unsuitable), match=x)"),
        (looks_at_the_machine, "psutil.process_iter(['cmdline'])"),
        (looks_at_the_machine, "from psutil import pids"),
        (looks_at_the_machine, "subprocess.run(['pgrep', 'x'])"),
    ],
)
def test_the_rule_catches(rule: Rule, source: str) -> None:
    assert [fault for node in ast.walk(ast.parse(source)) for fault in rule(node)]


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (reveals, "class S:\n    def reveal(self): ..."),
        (draws_pseudo_random, "from secrets import randbits"),
        (draws_pseudo_random, "torch.floor(x)"),
        (uses_global_random_state, "np.random.default_rng(7).normal()"),
        (uses_global_random_state, "torch.rand(3, generator=g)"),
        (uses_global_random_state, "def f():\n    with torch.random.fork_rng():\n        torch.manual_seed(0)"),
        (renames, "text.replace('a', 'b')"),
        (renames, "dataclasses.replace(x, y=1)"),
        (reads_the_environment, "os.path.join('a')"),
        (matches_a_sentence, "pytest.raises(Unsuitable, match='x')"),
        (matches_a_sentence, "refused(DataError, 'x', column='age')"),
        (looks_at_the_machine, "psutil.Process(pid).children()"),
    ],
)
def test_the_rule_spares(rule: Rule, source: str) -> None:
    assert not [fault for node in ast.walk(ast.parse(source)) for fault in rule(node)]


def test_no_test_imports_from_another() -> None:
    """What tests share lies in tests/kit, or in a module of their room that is no test."""
    imported = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.")
        if str(node.module).rpartition(".")[2].startswith("test_")
        or any(name.name.startswith("test_") for name in node.names)
    ]
    assert imported == []


@pytest.mark.parametrize("what", ["rooms", "files", "functions"])
def test_none_has_more_lines_than_one_reads(what: str) -> None:
    assert too_large(*sizes()[what]) == []
