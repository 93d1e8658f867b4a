"""Small files that were made to cost whoever reads them minutes or gigabytes, by name."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MOST = 2**21 - 4096
HEAD = "name: a\nunit: record\ncolumns:\n"


def filled(line: Callable[[int], str], head: str = HEAD, most: int = MOST) -> str:
    """Repeat lines until the file is as large as it may be."""
    parts, size, number = [head], len(head), 0
    while size < most:
        parts.append(line(number))
        size += len(parts[-1])
        number += 1
    return "".join(parts)


def contracts() -> Iterator[tuple[str, str]]:
    """Yield hostile contracts of nearly two mebibytes."""
    columns = HEAD + "  x: {type: integer, min: 0, max: "
    yield "base 60", columns + ":".join(["1"] * (MOST // 2)) + "}\n"
    yield "many of base 60", filled(lambda n: f"  x{n}: {{type: integer, min: {':'.join(['1'] * 8000)}, max: 1}}\n")
    yield "digits", columns + "9" * MOST + "}\n"
    yield "digits of floats", columns + "9" * (MOST - 10) + ".5}\n"
    yield "unknown keys", filled(lambda n: f"  x{n}: {{type: integer, min: 0, max: 9, kay{n}: 1}}\n")
    yield "unknown keys at the top", filled(lambda n: f"colunms{n}: 1\n", HEAD + "  x: {type: boolean}\n")
    yield "long keys", filled(lambda n: f"  {'y' * 30000}{n}: {{type: integr}}\n")
    yield "columns", filled(lambda n: f" a{n}:\n")
    yield "columns of no type", filled(lambda n: f"  x{n}: {{}}\n")
    yield "types", filled(lambda n: f"  x{n}: {{type: integr{n}}}\n")
    yield "columns that are good", filled(lambda n: f"  x{n}: {{type: boolean}}\n")
    listed = HEAD + "  x: {type: categorical, values: ["
    yield "values", filled(lambda n: f"{n},", listed) + "1]}\n"
    yield "values of no kind", listed + "~," * 130_000 + "1]}\n"
    yield "values twice", HEAD + "  x: {type: categorical, values: [" + "a," * 60_000 + "a]}\n"
    yield "keys twice", filled(lambda n: "  x: {type: boolean}\n")
    yield "todo", filled(lambda n: f"  x{n}: TODO\n")
    yield "words", filled(lambda n: "no, ", HEAD + "  x: {type: categorical, values: [") + "no]}\n"
    yield "nested", HEAD + "[" * MOST
    yield "nested mappings", HEAD + "{a: " * (MOST // 4)
    yield (
        "laughs",
        "\n".join(
            ["l0: &l0 [1]", *(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12)), "columns: *l11"]
        ),
    )
    yield "aliases", filled(lambda n: "*a, ", "a: &a 1\ncolumns: [") + "1]\n"
    yield "tags", filled(lambda n: f"  x{n}: !!python/object/apply:os.system [id]\n")
    yield "merges", filled(lambda n: f"  x{n}: {{<<: {{type: boolean}}}}\n")
    yield "infinite", columns + "1.0e+999}\n"
    yield "not a number", columns + ".nan}\n"
    yield "dates", filled(lambda n: f"  x{n}: 2020-99-99\n")
    yield (
        "constraints",
        filled(lambda n: f"  - {{column: y{n}, at_most: z{n}}}\n", HEAD + "  x: {type: boolean}\nconstraints:\n"),
    )
    yield "rules", filled(lambda n: f"  - x <= y{n}\n", HEAD + "  x: {type: boolean}\nconstraints:\n")
    for rules in (500, 6_000):
        texts = ", ".join(f"when x = v{59_999 - n} then y >= 2" for n in range(rules))
        values = ", ".join(f"v{n}" for n in range(60_000))
        names = f"  y: {{type: integer, min: 0, max: 9}}\n  x: {{type: categorical, values: [{values}]}}\n"
        yield f"{rules} rules of many values", f"constraints: [{texts}]\n{HEAD}{names}"
    yield "discoveries", HEAD + "  x: {type: boolean}\ndiscovered: [" + "{}, " * 60_000 + "{}]\n"
    yield "comments", filled(lambda n: "#\n")
    yield "quotes", HEAD + '  x: "' + "\\u0041" * (MOST // 6) + '"\n'
    yield "question marks", HEAD + "? " * (MOST // 2)
    yield "anchors", filled(lambda n: f"  x{n}: &b{n} {{type: boolean}}\n")


def events() -> Iterator[tuple[str, list[dict[str, object]]]]:
    """Yield lists of events, a few kilobytes of text each, that are slow to price."""

    def sampled(**own: object) -> dict[str, object]:
        return {"kind": "sampled_gaussian", **own}

    yield "sampled", [sampled(noise_multiplier=0.8 + n / 100, sampling_probability=0.5, steps=100) for n in range(60)]
    yield "many steps", [sampled(noise_multiplier=30 + n, sampling_probability=0.9, steps=10**4) for n in range(40)]
    yield (
        "a large budget",
        [sampled(noise_multiplier=0.5 + n / 100, sampling_probability=0.3, steps=40) for n in range(60)],
    )
    yield "laplace", [{"kind": "laplace", "noise_multiplier": 0.3 + n / 100} for n in range(60)]
    yield "pure", [{"kind": "pure", "epsilon": 10 + n / 100} for n in range(60)]
    parts = [sampled(noise_multiplier=1 + n / 50, sampling_probability=0.5 - n / 200, steps=1 + n) for n in range(60)]
    yield "parallel", [{"kind": "parallel", "by": "x", "events": parts}]
    yield "parallels", [{"kind": "parallel", "by": "x", "events": parts[n:]} for n in range(20)]


def lint_seconds(name: str, path: Path) -> None:
    """Read one hostile contract in this process, and print what came of it."""
    from dpmodels.authoring.lint import parse

    text = dict(contracts())[name]
    path.write_text("")
    start = time.process_time()
    found, faults = parse(text)
    print(json.dumps({"seconds": time.process_time() - start, "faults": len(faults), "found": found is not None}))


if __name__ == "__main__":
    lint_seconds(sys.argv[1], Path(sys.argv[2]))
