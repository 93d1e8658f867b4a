"""Chains of derived columns give, written out, what reckoning them one after the other gives."""

import random

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.derive import derive
from dpmodels.contract.formula import reckon
from dpmodels.contract.schema import Schema

COLUMNS = """
name: chains
columns:
  a: {type: number, min: 0, max: 900, round: 2}
  b: {type: integer, min: 1, max: 40}
  k: {type: categorical, values: [x, y]}
"""
ROWS, MOST = 200, 5


def formula(draw: random.Random, names: list[str]) -> str:
    one, other = draw.choice(names), draw.choice(names)
    forms = (
        *(f"{one} {sign} {other}" for sign in "+-*"),
        *(f"{one} / 1.19", f"max({one}, {other})", f"round({one} * {draw.randint(1, 99)}) / 100"),
        *(f"{one} * {{'x': 2, 'y': 3}}[k]", f"{one} - ({other} - 1)", f"-{one} + 2", f"{one} > {other}"),
    )
    return draw.choice(forms)


@pytest.mark.parametrize("seed", range(60))
def test_a_chain_written_out_gives_what_its_steps_give(seed: int) -> None:
    draw, names, steps = random.Random(seed), ["a", "b"], list[tuple[str, str, int | None]]()
    for number in range(draw.randint(2, MOST)):
        steps.append((f"d{number}", formula(draw, names), draw.choice([None, 0, 1, 2])))
        names.append(f"d{number}")
    lines = [
        f'  {name}: {{type: derived, formula: "{text}"{"" if decimals is None else f", round: {decimals}"}}}\n'
        for name, text, decimals in steps
    ]
    draw.shuffle(lines)  # a schema lists them in any order
    schema, faults = parse(COLUMNS + "".join(lines))
    assert isinstance(schema, Schema), faults
    rng = np.random.default_rng(seed)
    places = rng.integers(0, 2, ROWS)
    amounts, pieces = np.round(rng.random(ROWS) * 900, 2), rng.integers(1, 41, ROWS)
    values = {"a": amounts, "b": pieces, "k": np.array(["x", "y"])[places]}
    operands = {"a": amounts, "b": pieces.astype(float), "k": places.astype(float)}
    for name, text, decimals in steps:
        columns = {**schema.columns, **{step: schema.columns["a"] for step, _, _ in steps}}
        given = reckon(text, operands, columns)
        operands[name] = given if decimals is None else np.round(given, decimals)
        made = derive(schema.derived[name], schema.columns, pa.RecordBatch.from_pydict(values))
        assert np.allclose(made.to_numpy(zero_copy_only=False).astype(float), operands[name], rtol=1e-9, atol=1e-9)
