"""A method that holds all records is refused, before any charge, where the memory has no room for them."""

from pathlib import Path

import pytest

from dpmodels.methods.registry import create
from tasks.run import memory as room
from tests.kit.support import charges, make_schema, run_cli, synthesize_words, write_clinic


@pytest.mark.parametrize("method", ["privbayes", "dp-vae"])
def test_a_table_that_does_not_fit_is_refused_before_the_charge_with_a_size_and_no_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    write_clinic(tmp_path, rows=777)
    config = tmp_path / "method.yaml"
    config.write_text(f"model: {{method: {method}}}\n")
    monkeypatch.setattr(room, "memory_of_machine", lambda: 2**14)
    code, out, err = run_cli(*synthesize_words(tmp_path, config=config))
    assert code == 1 and f"{method} holds all records in memory, about " in err and "nothing was charged" in err
    assert "777" not in out + err and "take a method that streams (nacre, moments, pearl, dp-merf)" in err
    assert charges(tmp_path / "home") == []


@pytest.mark.parametrize(("method", "least"), [("nacre", 0), ("moments", 0), ("pearl", 0), ("privbayes", 30)])
def test_methods_that_stream_hold_nothing(method: str, least: int) -> None:
    system = create(method, {}, {})
    held = system.held_bytes(system.design(system.settled(make_schema()), make_schema()))
    assert (held == 0) if not least else (least <= held < 200)


def test_the_memory_is_that_of_the_container_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = room.memory_of_machine()
    (tmp_path / "memory.max").write_text("1048576\n")
    (tmp_path / "unlimited").write_text("max\n")
    monkeypatch.setattr(room, "LIMITS", (tmp_path / "none", tmp_path / "unlimited"))
    assert room.memory_of_machine() >= whole > 2**28
    monkeypatch.setattr(room, "LIMITS", (tmp_path / "unlimited", tmp_path / "memory.max"))
    assert room.memory_of_machine() == 2**20
