"""Change the code by one operator, constant, condition or result at a time, and see whether a test notices.

    python -m tests.mutants [--module accounting] [--sample 100 --seed 0]

Each mutant lives in a process of its own, in memory: no file is changed. Which tests must notice it, and why a survivor
is left alone, is written in ``tests/mutants.toml``; a survivor without an answer there ends the command with status 1.
"""

import argparse
import ast
import copy
import importlib
import importlib.machinery
import os
import random
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BEFOREHAND = ("numpy", "scipy.stats", "torch", "pandas", "pyarrow.parquet", "sqlalchemy", "dp_accounting")
"""Imported once, for every process to come; of ours nothing is, so that each process imports its mutant."""
GRACE, FACTOR = 20.0, 4.0
SURVIVED, KILLED, ENDLESS = "survived", "killed", "endless"
SWAPS: dict[type[ast.AST], list[type[ast.AST]]] = {
    ast.Lt: [ast.LtE],
    ast.LtE: [ast.Lt],
    ast.Gt: [ast.GtE],
    ast.GtE: [ast.Gt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.Mult],
    ast.Pow: [ast.Mult],
    ast.LShift: [ast.RShift],
    ast.RShift: [ast.LShift],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}


@dataclass(frozen=True)
class Mutant:
    """One change of one module; its name says what was changed into what, and survives moves within the module."""

    module: str
    name: str
    line: int
    tree: ast.Module


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node could be instead."""
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                for other in SWAPS.get(type(operator), []):
                    yield _with(node, ops=[*node.ops[:place], other(), *node.ops[place + 1 :]])
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp():
            for other in SWAPS.get(type(node.op), []):
                yield _with(node, op=other())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool() as value):
            yield _with(node, value=not value)
        case ast.Constant(value=int() | float() as value):
            yield _with(node, value=value + 1)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield _with(node, value=ast.Constant(None))


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def places(node: ast.AST, inside: str = "") -> Iterator[tuple[ast.AST, str, Any, str]]:
    """Yield every place of a tree that holds a node which runs: parent, field, index in a list, and function."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        inside = f"{inside}.{node.name}".lstrip(".")
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list") or (isinstance(node, ast.BinOp) and _is_type(node)):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield node, field, index, inside
                yield from places(child, inside)


def _is_type(node: ast.BinOp) -> bool:
    """Tell a union of types, as in ``X | None``, from arithmetic."""
    sides = (node.left, node.right)
    return isinstance(node.op, ast.BitOr) and any(isinstance(x, ast.Constant) and x.value is None for x in sides)


def mutants(module: str) -> list[Mutant]:
    """Return every mutant of a module."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    found: list[Mutant] = []
    seen: Counter[str] = Counter()
    for parent, field, index, inside in places(tree):
        held = getattr(parent, field)
        node = held if index is None else held[index]
        for other in replacements(node):
            ast.copy_location(other, node)
            name = f"{inside or 'module'}: {ast.unparse(node)} -> {ast.unparse(other)}"
            seen[name] += 1
            name += f" ({seen[name]})" if seen[name] > 1 else ""
            _put(parent, field, index, other)
            found.append(Mutant(module, name, node.lineno, ast.fix_missing_locations(copy.deepcopy(tree))))
            _put(parent, field, index, node)
    return found


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


class Instead(MetaPathFinder):
    """Finds one module of ours, and has it run another tree."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant, self.name = mutant, mutant.module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> Any:
        """Return the module's own specification with a loader of the mutant, or nothing for any other module."""
        if fullname != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        assert spec is not None and spec.origin is not None
        spec.loader = Loader(fullname, spec.origin)
        spec.loader.tree = self.mutant.tree
        return spec


class Loader(importlib.machinery.SourceFileLoader):
    """Compiles a given tree in place of the file's."""

    tree: ast.Module

    def get_code(self, fullname: str) -> Any:
        """Compile the tree; nothing is written or read beside the source."""
        return compile(self.tree, self.path, "exec", dont_inherit=True)


def run(tests: Sequence[str], mutant: Mutant | None, limit: float) -> tuple[str, float]:
    """Run tests in a process of their own, with or without a mutant; return what came of it and the seconds."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _run_here(tests, mutant)
    while time.monotonic() - began < limit:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return (SURVIVED if status == 0 else KILLED), time.monotonic() - began
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return ENDLESS, time.monotonic() - began


def _run_here(tests: Sequence[str], mutant: Mutant | None) -> None:
    """Never return: the exit status is that of pytest."""
    status: int = 1
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        if mutant is not None:
            sys.meta_path.insert(0, Instead(mutant))
        with tempfile.TemporaryDirectory() as folder:
            os.environ["NUMBA_CACHE_DIR"] = folder  # compiled loops are looked up by what a mutant may share
            import pytest

            quiet = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not gpu"]
            status = int(pytest.main([*quiet, f"--basetemp={folder}/tests", *tests]))
    finally:
        os._exit(status)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="", help="only modules whose path holds this")
    parser.add_argument("--sample", type=int, help="so many mutants, drawn over all modules that are left")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    file = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))
    answers = {(module, name) for module, said in file.get("answers", {}).items() for name in said}
    chosen = [mutant for module in file["tests"] if args.module in module for mutant in mutants(module)]
    print(f"{len(chosen)} mutants", flush=True)
    if args.sample is not None and args.sample < len(chosen):
        chosen = sorted(random.Random(args.seed).sample(chosen, args.sample), key=lambda each: each.module)
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    for name in BEFOREHAND:
        importlib.import_module(name)
    counts, open_ones = judge(chosen, file["tests"], answers)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    sys.exit(f"{open_ones} survivors have no answer in tests/mutants.toml" if open_ones else 0)


def judge(
    chosen: Sequence[Mutant], tests: dict[str, list[str]], answers: set[tuple[str, str]]
) -> tuple[Counter[str], int]:
    """Run every mutant and print the survivors; return how many came to what, and the survivors without an answer."""
    limits: dict[str, float] = {}  # by the tests' names: modules may share them
    counts: Counter[str] = Counter()
    open_ones = 0
    for mutant in chosen:
        asked = tests[mutant.module]
        if (names := " ".join(asked)) not in limits:
            outcome, seconds = run(asked, None, 3600)
            if outcome != SURVIVED:
                sys.exit(f"the tests of {mutant.module} fail without any change: {names}")
            limits[names] = GRACE + FACTOR * seconds
        outcome, _ = run(asked, mutant, limits[names])
        answered = outcome == SURVIVED and (mutant.module, mutant.name) in answers
        counts["answered" if answered else outcome] += 1
        if outcome == SURVIVED and not answered:
            open_ones += 1
            print(f"{mutant.module}:{mutant.line} {mutant.name}", flush=True)
    return counts, open_ones


if __name__ == "__main__":
    main()
