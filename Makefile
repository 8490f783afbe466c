# One way in: `make help`. Every target sets up what it needs; only python3 must be on the path.
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.stamp
LOCK := requirements/dev.txt
UV := $(VENV)/bin/uv
export UV_NO_PROGRESS := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo examples test test-unit test-spark43 chaos check bench docs lock format services

help: ## List the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(STAMP) ## Make .venv with locked versions, and report a missing Java

$(STAMP): $(LOCK) pyproject.toml
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "laminae needs Python 3.11 or newer, found " + sys.version.split()[0])'
	@test -x $(PY) || python3 -m venv $(VENV)
	@test -x $(UV) || $(PY) -m pip install --quiet --disable-pip-version-check uv
	@$(UV) pip sync --quiet --python $(PY) --require-hashes $(LOCK)
	@$(UV) pip install --quiet --python $(PY) --no-deps --no-build-isolation -e .
	@$(PY) tools/check_java.py
	@touch $@

demo: setup ## Show schemas evolving: verdicts, refusals and history
	@$(PY) -m laminae demo

examples: setup ## Run the three applications in examples/
	@for example in examples/*.py; do echo "== $$example"; $(PY) $$example || exit 1; done

test: setup ## Run the tests
	@$(PY) tools/run_tests.py

test-unit: setup ## Run the tests that need no Spark (under three minutes)
	@$(PY) -m pytest -m "not spark and not services and not chaos" tests/unit tests/behaviours tests/properties

test-spark43: setup ## Run the tests of state on Spark 4.3, in an environment of its own
	@test -x .venv43/bin/python || $(UV) venv --quiet --python $(PY) .venv43
	@$(UV) pip sync --quiet --python .venv43/bin/python --require-hashes $(LOCK)
	@$(UV) pip install --quiet --python .venv43/bin/python 'pyspark==4.3.*'
	@$(UV) pip install --quiet --python .venv43/bin/python --no-deps --no-build-isolation -e .
	@.venv43/bin/python -m pytest tests/unit/state tests/properties/test_state_properties.py tests/integration/spark/checkpoint

chaos: setup ## Run the long fault-injection tests, and the laws with all their examples
	@$(PY) -m pytest -m chaos tests
	@LAMINAE_ALL_EXAMPLES=1 $(PY) -m pytest tests/properties

check: setup ## Lint, format, types, layers, tree, error table, generated docs
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(PY) tools/check_tree.py
	@$(PY) tools/check_errors.py
	@$(PY) tools/reference.py --check
	@$(PY) tools/architecture.py --check

bench: setup ## Measure every figure and print it beside its target
	@$(PY) -m tests.bench

services: setup ## Start Kafka, a registry, PostgreSQL, an Iceberg catalog and Kafka Connect; print their addresses
	@$(PY) -m tests.services

docs: setup ## Write the reference pages and the picture from their sources
	@$(PY) tools/reference.py
	@$(PY) tools/architecture.py

format: setup ## Let ruff rewrite the code
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

lock: setup ## Solve the versions again and write requirements/*.txt
	@$(PY) tools/lock.py
