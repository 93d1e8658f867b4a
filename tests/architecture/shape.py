"""Print what the house rules name as targets and no test holds: sizes, and names that say nothing.

    python -m tests.architecture.shape

A name that is a bare participle or pointer, such as ``found``, ``own`` or ``place``, cannot be searched or reviewed.
"""

import ast
from collections import Counter
from collections.abc import Iterator
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


def main() -> None:
    """Print the figures."""
    names, rooms, files = Counter[str](), Counter[str](), dict[str, int]()
    functions: dict[str, int] = {}
    for package in PRODUCT:
        for file in sorted((ROOT / package).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            tree, path = ast.parse(text), str(file.relative_to(ROOT))
            names.update(bindings(tree))
            files[path] = len(text.splitlines())
            rooms[str(file.parent.relative_to(ROOT))] += files[path]
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    functions[f"{path}:{node.name}"] = (node.end_lineno or 0) - node.lineno + 1
    bare = {name: count for name, count in names.items() if name.strip("_") in BARE}
    print(f"product lines {sum(files.values()):,} in {len(files)} files")
    tests = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in (ROOT / "tests").rglob("*.py"))
    print(f"test lines {tests:,}")
    print(f"bare participles and pointers: {sum(bare.values())} of {names.total()} bindings", end="")
    print(f", {sum(bare.values()) / names.total():.1%}: {dict(Counter(bare).most_common(12))}")
    for what, sizes, most in (
        ("rooms", rooms, LARGEST_ROOM),
        ("files", files, LONGEST_FILE),
        ("functions", functions, LONGEST_FUNCTION),
    ):
        large = sorted(((size, name) for name, size in sizes.items() if size > most), reverse=True)
        print(f"{what} above {most} lines: {len(large)}", *(f"  {size} {name}" for size, name in large[:12]), sep="\n")


if __name__ == "__main__":
    main()
