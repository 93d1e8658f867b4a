# Everything below sets itself up: it needs only make and Python 3.11 or later.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Those that end in a report; what is concluded lies in benchmarks/archive.
BENCHMARKS = $(basename $(notdir $(shell grep -l ' report."' benchmarks/*.py)))

.DEFAULT_GOAL := help
.PHONY: help install constraints sbom dist site demo test test-nightly test-fast test-light mutants audit-full check bench

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

install: $(INSTALLED) ## make .venv and install nacre with its development tools

$(INSTALLED): pyproject.toml constraints.txt requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nacre needs Python 3.11 or later: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@echo "installing nacre and what it needs into $(VENV); this takes some minutes"
ifdef HASHES
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
else
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
endif
	@touch $@

constraints: $(INSTALLED) ## write down the versions that a fresh install takes today, and the hashes of their files
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	$(BIN)/python -m pip install --quiet --dry-run --ignore-installed --report "$$folder/report" --editable '.[dev]' && \
	$(BIN)/python -m supply.pins "$$folder/report"

sbom: $(INSTALLED) ## write the bill of materials of what is installed with nacre[all] (CycloneDX)
	$(BIN)/python -m supply.sbom

dist: $(INSTALLED) ## build the sdist and the wheel into dist, and try the wheel outside of the source tree
	$(BIN)/python -m supply.packages

site: $(VENV)-site/.installed ## build docs/ as a site into build/site, by tools in an environment of their own
	@NO_MKDOCS_2_WARNING=1 $(VENV)-site/bin/python -m mkdocs build --strict

$(VENV)-site/.installed: supply/site.txt
	$(PYTHON) -m venv $(VENV)-site
	$(VENV)-site/bin/python -m pip install --quiet --requirement supply/site.txt
	@touch $@

demo: $(INSTALLED) ## run the whole pipeline on a public table of earnings (about a minute, once installed)
	$(BIN)/nacre demo

# What runs on one worker, and what comes first, is written in tests/conftest.py. Some tests wait for servers and schedules
# rather than compute, so there is one worker more than there are cores.
WORKERS ?= $(shell expr $$(nproc) + 1)

test: $(INSTALLED) ## run the tests
	$(BIN)/python -m pytest -m 'not gpu and not nightly' --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder

test-nightly: $(INSTALLED) ## run the tests of minutes that `make test` leaves out, beside shorter ones of their kind
	$(BIN)/python -m pytest -m nightly --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder

test-fast: $(INSTALLED) ## run the tests of files that take seconds and start no process
	$(BIN)/python -m pytest -m 'not gpu and not slow and not processes' --numprocesses 2 --dist worksteal

# The other versions of Python too: make test-light PYTHON=python3.13
test-light: ## install nacre without extras, and run the tests that need no more
	$(PYTHON) -m venv --clear $(VENV)-light
	$(VENV)-light/bin/python -m pip install --quiet --constraint constraints.txt --editable . \
		pytest pytest-timeout pytest-xdist hypothesis psutil packaging
	$(VENV)-light/bin/nacre --help >/dev/null
	$(VENV)-light/bin/python -m pytest --light -m 'not gpu and not processes' --numprocesses 2 --dist worksteal $(LIGHT)
LIGHT := $(addprefix tests/,accounting ledger mechanisms/test_lattice.py contract codec gate reading statistics)

mutants: $(INSTALLED) ## change the mathematics bit by bit, and see which changes no test notices (hours; ARGS='--sample 100')
	nice $(BIN)/python -m tests.mutants $(ARGS)

audit-full: $(INSTALLED) ## hold every method to its charge, with many draws, and print what was recovered (an hour)
	$(BIN)/nacre audit --full --out audit.html

check: $(INSTALLED) ## lint, format, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED) ## run every benchmark in its quick form
	@set -e; for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name --quick; done
