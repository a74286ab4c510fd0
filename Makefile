# Everything runs in a virtual environment of its own; nothing but Python 3.11 or newer and make is needed.
PYTHON ?= python3
VENV ?= .venv
OUT ?= out
PYTEST_OPTIONS ?= --numprocesses auto --dist worksteal

BIN := $(VENV)/bin
DEMO := scenarios/demo

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench images scenarios clean

help: ## Say what there is to make
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/arecall: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "arecall needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[casbin]'
	@touch $@

$(VENV)/.dev: $(BIN)/arecall pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@# It depends on the older distribution of casbin, whose files would overwrite those of pycasbin.
	$(BIN)/python -m pip install --quiet --no-deps casbin_sqlalchemy_adapter==1.4.0
	@touch $@

$(VENV)-casbin/.dev: pyproject.toml
	$(PYTHON) -m venv $(VENV)-casbin
	$(VENV)-casbin/bin/python -m pip install --quiet --editable . casbin==1.43.0 casbin_sqlalchemy_adapter==1.4.0 \
		hypothesis pytest pytest-xdist
	@touch $@

demo: $(BIN)/arecall ## Measure a small company's search: who may read what, what was found, what leaked
	@mkdir -p $(OUT)
	@$(BIN)/arecall snapshot casbin --model $(DEMO)/rbac.conf --policy $(DEMO)/policy.csv --action read \
		--principals $(DEMO)/principals.txt --documents $(DEMO)/documents.txt -o $(OUT)/before.json
	@$(BIN)/arecall evaluate --run $(DEMO)/run.trec --qrels $(DEMO)/qrels.trec --snapshot $(OUT)/before.json \
		--delivered $(DEMO)/answers.jsonl -k 1,3,5,10 --quiet
	@$(BIN)/arecall evaluate --run $(DEMO)/run.trec --qrels $(DEMO)/qrels.trec --snapshot $(OUT)/before.json \
		--delivered $(DEMO)/answers.jsonl -k 1,3,5,10 --quiet --format json -o $(OUT)/result.json
	@echo "Read $(DEMO)/README.md for who these people are and which document leaked."

test: lint $(VENV)-casbin/.dev ## Check types and style, then run all tests; Casbin's on both of its distributions
	$(VENV)-casbin/bin/python -m pytest $(PYTEST_OPTIONS) tests/unit/casbin tests/conformance/test_casbin.py
	@# What is missing is said here, and by the tests that need it; images are made side by side before one of them waits.
	@docker/engine.sh && $(BIN)/python -m arecall_adapters.containers || true
	$(BIN)/python -m pytest $(PYTEST_OPTIONS)

lint: $(VENV)/.dev ## Check types and style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev ## Put the code into its one format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## Compare speed with the peers, side by side
	$(BIN)/python benchmarks/library.py
	$(BIN)/python benchmarks/casbin.py
	$(BIN)/python benchmarks/openfga.py
	$(BIN)/python benchmarks/dls.py

images: $(VENV)/.dev ## Pull the images of live backends; build what cannot be pulled
	@docker/engine.sh
	$(BIN)/python -m arecall_adapters.containers

scenarios: $(VENV)/.dev ## Replay all shipped scenarios on all backends, on servers for the time being
	@docker/engine.sh
	$(BIN)/arecall replay scenarios/*/*.yaml --backend openfga,casbin,elasticsearch,opensearch

clean: ## Remove the virtual environment, caches and results
	rm -rf $(VENV) $(VENV)-casbin $(OUT) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
