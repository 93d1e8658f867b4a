"""A command that is given no run says what lists the runs there are."""

import pytest

from tests.kit.support import run_cli


@pytest.mark.parametrize(
    ("words", "is_said"),
    [
        (["means"], True),
        (["marginals", "--home", "home"], True),
        (["sample", "--rows", 3, "--out", "new.csv"], True),
        (["means", "name-of-a-run"], False),
        (["means", "name-of-a-run", "age", "--bogus"], False),
        (["ledger", "open"], False),
    ],
)
def test_a_command_without_the_run_that_it_needs_says_what_lists_them(words: list[object], is_said: bool) -> None:
    code, _, err = run_cli(*words)
    assert code == 2 and ("`nacre runs` lists them" in err) == is_said
