"""Print what the house rules name as targets: sizes, which a test holds, and names that say nothing, which none does.

    python -m tests.architecture.shape

A name that is a bare participle or pointer, such as ``found``, ``own`` or ``place``, cannot be searched or reviewed.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("dpmodels", "tasks", "flows", "nacre")
BARE = set(
    [
        "asked",
        "begun",
        "chosen",
        "done",
        "drawn",
        "found",
        "given",
        "held",
        "kept",
        "known",
        "made",
        "met",
        "named",
        "own",
        "place",
        "places",
        "ready",
        "said",
        "seen",
        "sent",
        "shown",
        "taken",
        "told",
        "wanted",
    ]
)
LONGEST_FILE, LONGEST_FUNCTION, LARGEST_ROOM = 400, 45, 4500


def bindings(tree: ast.AST) -> Iterator[str]:
    """Yield every name that a module binds: variables, arguments, attributes of objects, and names of fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg


@cache
def parsed(file: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of the syntax tree of a file, which take longer to find than to judge."""
    return tuple(ast.walk(parsed(file)))


def trees() -> Iterator[tuple[str, str, ast.Module]]:
    """Yield the path, the text and the syntax tree of every file of the product."""
    for package in PRODUCT:
        for file in sorted((ROOT / package).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            yield str(file.relative_to(ROOT)), text, parsed(file)


def sizes() -> dict[str, tuple[Counter[str], int]]:
    """Return the lines of rooms, files and functions by name, and the most that each may have."""
    rooms, files, functions = Counter[str](), Counter[str](), Counter[str]()
    for path, text, _ in trees():
        files[path] = len(text.splitlines())
        rooms[path.rpartition("/")[0]] += files[path]
        for node in nodes(ROOT / path):
            if isinstance(node, ast.FunctionDef):
                functions[f"{path}:{node.name}"] = (node.end_lineno or 0) - node.lineno + 1
    return {
        "rooms": (rooms, LARGEST_ROOM),
        "files": (files, LONGEST_FILE),
        "functions": (functions, LONGEST_FUNCTION),
    }


def too_large(counts: Counter[str], most: int) -> list[tuple[int, str]]:
    """Return what has more lines than it may, the largest first."""
    return sorted(((size, name) for name, size in counts.items() if size > most), reverse=True)


def main() -> None:
    """Print the figures."""
    lines, names = sizes(), Counter(name for _, _, tree in trees() for name in bindings(tree))
    bare = Counter({name: count for name, count in names.items() if name.strip("_") in BARE})
    print(f"product lines {lines['files'][0].total():,} in {len(lines['files'][0])} files")
    tests = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in (ROOT / "tests").rglob("*.py"))
    print(f"test lines {tests:,}")
    print(f"bare participles and pointers: {bare.total()} of {names.total()} bindings", end="")
    print(f", {bare.total() / names.total():.1%}: {dict(bare.most_common(12))}")
    for what, (counts, most) in lines.items():
        large = too_large(counts, most)
        print(f"{what} above {most} lines: {len(large)}", *(f"  {size} {name}" for size, name in large[:12]), sep="\n")


if __name__ == "__main__":
    main()
