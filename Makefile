# Everything needs Python 3.11 or newer, pip and make; the rest is installed into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
CODE   := src research benchmarks evidence mutation tests examples conftest.py
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow lint format bench docs audit evidence coverage mutation lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## Create .venv with everything that tests, docs and benchmarks need

# Reruns only when the pins or the package's metadata change.
$(STAMP): requirements-dev.lock pyproject.toml research/pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
	    echo "$(PYTHON) was not found. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "discreet needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another one: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e research
	@touch $@

demo: $(STAMP) ## Publish a dozen statistics from real data, with a report
	$(BIN)/discreet demo

# The workers share the cores; threads of the linear algebra would fight over them.
test test-slow: export OPENBLAS_NUM_THREADS = 1

test: $(STAMP) ## Run the tests, and the code in docs, README and docstrings
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

# pytest's 5 is "none selected": there may be no slow test, and `make test` guards collection.
test-slow: $(STAMP) ## Run the tests that take longer
	$(BIN)/python -m pytest -n $(WORKERS) -m slow || test $$? -eq 5

lint: $(STAMP) ## Style, types and the order of the packages
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy --strict src research/src benchmarks evidence mutation
	$(BIN)/lint-imports

format: $(STAMP) ## Let ruff rewrite the code
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: $(STAMP) ## Compare with the peers (each installed into .bench on first use)
	$(BIN)/python -m benchmarks all

docs: $(STAMP) ## Build the site into ./site
	$(BIN)/zensical build --strict --clean

audit: $(STAMP) ## Attack every registered mechanism
	$(BIN)/discreet audit

evidence: $(STAMP) ## Index theorems; run studies, audits, benchmarks; write docs/evidence (ARGS: --quick, --only, --data)
	$(BIN)/python -m evidence.theorems
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m evidence $(ARGS)

coverage: $(STAMP) ## Lines of the packages that carry the guarantees which no fast test runs
	OPENBLAS_NUM_THREADS=1 $(BIN)/coverage run -m pytest -n0 -q -m "not slow" tests/core tests/noise tests/accounting tests/mechanisms tests/ledger tests/local tests/audit
	$(BIN)/coverage report

PACKAGES ?= noise accounting mechanisms
mutation: $(STAMP) ## Break lines at random and see tests fail (after make coverage; long)
	for package in $(PACKAGES); do OPENBLAS_NUM_THREADS=1 $(BIN)/python -m mutation $$package --coverage .coverage $(ARGS) || exit 1; done
	$(BIN)/python -m mutation.page

lock: ## Resolve requirements-dev.lock again (needs the network)
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet uv
	$(VENV)-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	    --no-header --no-emit-index-url --extra models --extra plot --extra postgres --extra web --group dev pyproject.toml -o requirements-dev.lock
	rm -rf $(VENV)-lock

clean: ## Remove everything that was built or cached
	rm -rf $(VENV) $(VENV)-lock .bench .cache .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist site
