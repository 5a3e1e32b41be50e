# Every target sets up what it needs, from the lock, into .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PEERS  := benchmarks/.venv

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | column -t -s "$$(printf '\t')"

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Attaché needs Python 3.11 or newer: set PYTHON")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: setup
setup: $(READY) ## Install everything that the lock names into .venv

.PHONY: demo
demo: $(READY) ## A conversation through a real Envoy: a plain turn, a streamed turn with a tool, the stored response
	$(BIN)/attache demo

.PHONY: test
test: $(READY) ## All tests: units, properties, and end to end through a real Envoy, split and fused
	$(BIN)/python -m pytest

.PHONY: test-envoys
test-envoys: $(READY) ## The end-to-end tests against the oldest Envoy of each placement
	$(BIN)/python tests/envoys.py

.PHONY: conformance
conformance: $(READY) ## Hold everything that the end-to-end tests receive against the API's schemas; writes docs/conformance.md
	cd tests && ../$(BIN)/python -m conformance

.PHONY: lint
lint: $(READY) ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: soak
soak: $(READY) ## Clients in a few conversations while workers, PostgreSQL and Envoy are killed, on each store
	cd tests && ../$(BIN)/python -m soak

$(PEERS)/.ready: benchmarks/requirements.lock
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r benchmarks/requirements.lock
	@touch $@

.PHONY: bench
bench: $(READY) $(PEERS)/.ready ## Measure Attaché beside Envoy alone, agentic-api and the model server alone (BENCH=--quick)
	$(BIN)/python -m benchmarks $(BENCH)

.PHONY: proto
proto: $(READY) ## Regenerate the ext_proc wire messages from our .proto
	$(BIN)/python -m grpc_tools.protoc -I filters --python_out=filters --pyi_out=filters \
		filters/attache_filters/extproc/wire/ext_proc.proto

.PHONY: lock
lock: $(READY) ## Resolve requirements.lock anew
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--group dev pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		benchmarks/requirements.in -o benchmarks/requirements.lock

.PHONY: clean
clean: ## Remove the venv and every cache
	rm -rf $(VENV) $(PEERS) .envoys .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache tests/typescript/node_modules tests/codex/node_modules
