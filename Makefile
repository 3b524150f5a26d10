# What you need: Python 3.11 or newer, a C compiler, make, and a PyPI index. Everything is installed into .venv, in the versions
# of constraints.txt.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := constraints.txt
CONSTRAIN = $(if $(CONSTRAINTS),PIP_CONSTRAINT=$(CONSTRAINTS) PIP_BUILD_CONSTRAINT=$(CONSTRAINTS))
PIP = $(CONSTRAIN) $(BIN)/python -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2
MINUTES ?= 60
LATEST := $(MAKE) VENV=.venv-latest CONSTRAINTS=

# pip; what PyTorch brings for one platform only; nightly builds, which the index does not keep; what has no version
UNPINNED := '^pip==|^(nvidia|cuda)-|^triton==|-nightly==|@|^\#'

.PHONY: help demo test fuzz lint format bench docs dist studies test-latest constraints latest clean

help:
	@echo "make demo    install, fly a simulated sprayer, track its mass, write a report"
	@echo "make test    install, run all tests"
	@echo "make fuzz    read damaged logs of every format for an hour (MINUTES=60)"
	@echo "make lint    style, formatting and types"
	@echo "make format  repair style and formatting"
	@echo "make bench   speed, as ratios to peers that run in the same process; fails if a row is worse than benchmarks/baseline.json"
	@echo "make docs    write the generated pages of docs/ again, run the tutorials, build the site into site/"
	@echo "make dist    build sdist and wheel into dist/, check them, run the wheel in an empty environment"
	@echo "make studies run all studies in full, for hours (QUICK=1: quick forms; STUDIES=nemo: one), and write docs/studies.md"
	@echo "make test-latest   run all tests with the newest dependencies, in .venv-latest"
	@echo "make constraints   write the newest dependencies to constraints.txt, if tests and lint pass with them"
	@echo "make clean   remove .venv and everything that the others made"

demo: $(VENV)/.installed
	$(BIN)/rotorid demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 10 $(TESTS)

fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

lint: $(VENV)/.installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/pyright --pythonpath $(BIN)/python --pythonplatform Windows

format: $(VENV)/.installed-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks --check

docs: $(VENV)/.installed-docs
	$(BIN)/python docs/generate_cli.py
	$(BIN)/python docs/fill_numbers.py
	$(BIN)/python docs/fill_size_priors.py
	$(BIN)/python docs/build_site.py

dist: $(VENV)/.installed-dist
	rm -rf dist build src/rotorid.egg-info
	$(CONSTRAIN) $(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(CONSTRAIN) $(BIN)/python -m tests.installed dist/*.whl

studies: $(VENV)/.installed
	$(BIN)/python docs/make_studies.py $(STUDIES) $(if $(QUICK),--quick)

test-latest: latest
	$(LATEST) test

constraints: latest
	$(LATEST) .venv-latest/.installed-bench .venv-latest/.installed-dist
	$(LATEST) test
	$(LATEST) lint
	@echo "Writing constraints.txt"
	@{ echo "# Versions with which make test and make lint passed. Written by make constraints."; \
		.venv-latest/bin/python -m pip freeze --all --exclude-editable | sed 's/+.*//' | grep -Ev $(UNPINNED); } > constraints.new
	@mv constraints.new constraints.txt

latest:
	rm -rf .venv-latest

clean:
	rm -rf $(VENV) .venv-latest rotorid-demo build dist site src/*.egg-info .pytest_cache .ruff_cache

# Each stamp is newer than pyproject.toml and the constraints once its extra is installed, so that the second time nothing is
# done.

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 found; name one with make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: $(PYTHON) is older than Python 3.11; name another with make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing rotorid into $(VENV)"
	$(PIP) --editable .
	@touch $@

# the site imports a part of what is installed, and compiles that on all cores
$(VENV)/.installed-docs: PIP += --no-compile

$(VENV)/.installed-%: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	@echo "Installing rotorid with its $* tools into $(VENV)"
	$(PIP) --editable ".[$*]"
	@touch $(VENV)/.installed $@
