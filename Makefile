# What you need: Python 3.11 or newer, a C compiler, make, and a PyPI index. Everything is installed into .venv.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2

.PHONY: help demo test lint format bench docs clean

help:
	@echo "make demo    install, fly a simulated sprayer, track its mass, write a report"
	@echo "make test    install, run all tests"
	@echo "make lint    style, formatting and types"
	@echo "make format  repair style and formatting"
	@echo "make bench   speed, as ratios to peers that run in the same process"
	@echo "make docs    write docs/cli.md and the numbers of docs/how-to-choose.md anew"
	@echo "make clean   remove .venv and everything that the others made"

demo: $(VENV)/.installed
	$(BIN)/rotorid demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 10 $(TESTS)

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(VENV)/.installed-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

docs: $(VENV)/.installed
	$(BIN)/python docs/generate_cli.py
	$(BIN)/python docs/fill_numbers.py

clean:
	rm -rf $(VENV) rotorid-demo build dist src/*.egg-info .pytest_cache .ruff_cache

# Each stamp is newer than pyproject.toml once its extra is installed, so that the second time nothing is done.

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 found; name one with make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: $(PYTHON) is older than Python 3.11; name another with make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "Installing rotorid into $(VENV)"
	$(PIP) --editable .
	@touch $@

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	@echo "Installing rotorid with its $* tools into $(VENV)"
	$(PIP) --editable ".[$*]"
	@touch $(VENV)/.installed $@
