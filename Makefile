# Everything below sets itself up: it needs only make and Python 3.11 or later.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BENCHMARKS = $(filter-out __init__ common judge judge_images postgres unseen,$(basename $(notdir $(wildcard benchmarks/*.py))))

.DEFAULT_GOAL := help
.PHONY: help install demo test test-fast check bench

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

install: $(INSTALLED) ## make .venv and install nacre with its development tools

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nacre needs Python 3.11 or later: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(INSTALLED) ## run the whole pipeline on a public health-insurance study (about 3 minutes)
	$(BIN)/nacre demo

# Two streams of tests, side by side on two cores. Tests of the deployments mostly wait, for a schedule's minute and a dead
# worker's slot, so they come first in theirs; so do those of the server and of a paused flow. Each has a process of its own.
BESIDE := $(patsubst %,tests/flows/test_%.py,ledger_commands server deployments) tests/nacre tests/synthesizers tests/privacy

test: $(INSTALLED) ## run the tests
	@log=$$(mktemp); \
	(set -e; for each in $(BESIDE); do $(BIN)/python -m pytest -m 'not gpu' $$each; done) >$$log 2>&1 & waiting=$$!; \
	$(BIN)/python -m pytest -m 'not gpu' $(patsubst %,--ignore=%,$(BESIDE)); tests=$$?; \
	wait $$waiting; beside=$$?; cat $$log; rm $$log; \
	test $$tests = 0 && test $$beside = 0

test-fast: $(INSTALLED) ## run the tests that take seconds and start no process
	$(BIN)/python -m pytest -m 'not gpu and not slow and not processes' --numprocesses 2 --dist worksteal

check: $(INSTALLED) ## lint, format, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED) ## run every benchmark in its quick form
	@set -e; for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name --quick; done
