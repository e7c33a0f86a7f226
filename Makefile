# On a fresh machine with Python 3.11 or newer: `make run`. Another interpreter: `make run PYTHON=python3.12`.

PYTHON ?= python3
PORT ?= 8501
ARGS ?=

# Relative, so that a folder whose path has spaces works.
venv := .venv/bin
runtime := .venv/.runtime-stamp
dev := .venv/.dev-stamp

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test check bench prove sample-data chromium

help:  ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: $(runtime)  ## Install what is needed and start the dashboard (PORT=8501 ARGS="--db my.duckdb")
	@$(venv)/python -m tepa_core app --port "$(PORT)" $(ARGS)

test: $(dev) chromium  ## Run every test, the ones in a browser too (ARGS="-k name")
	$(venv)/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m 'not e2e' $(ARGS) || [ $$? -eq 5 ]
	$(venv)/python -m pytest -m e2e $(ARGS) || [ $$? -eq 5 ]

check: $(dev)  ## Lint, format, types and import layers
	$(venv)/ruff check .
	$(venv)/ruff format --check .
	$(venv)/mypy --strict tepa_core
	$(venv)/lint-imports

bench: $(runtime)  ## Measure the cost of the rule, the queries and the import on this machine (ARGS="--json")
	@$(venv)/python -m tepa_core bench $(ARGS)

prove: $(dev) chromium  ## Show in full what the tests show in small: kills, full disks, large files (ARGS="sliders")
	@$(venv)/python -m tests.prove $(ARGS)

sample-data: $(runtime)  ## Write the sample logs in data/ again from their scripts
	$(venv)/python data/make_travel_preferences.py
	$(venv)/python data/make_heads_of_government.py

chromium:
	@if [ -n "$$TEPA_CHROMIUM" ]; then \
	  command -v "$$TEPA_CHROMIUM" >/dev/null && exit 0; \
	  echo "TEPA_CHROMIUM is $$TEPA_CHROMIUM, and there is no such program: correct it or unset it." >&2; exit 1; \
	fi; \
	for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	echo "The tests drive a Chromium and none was found. Install one (Debian: apt-get install chromium; macOS: brew install --cask chromium) or set TEPA_CHROMIUM to the path of yours." >&2; \
	exit 1

$(venv)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed. Name yours: make run PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -m venv --clear .venv \
	  || { rm -rf .venv; echo "No virtual environment could be made. On Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }

$(runtime): requirements.txt constraints.txt | $(venv)/python
	$(venv)/python -m pip install --disable-pip-version-check --quiet -r requirements.txt
	@touch $@

$(dev): requirements-dev.txt requirements.txt constraints.txt | $(venv)/python
	$(venv)/python -m pip install --disable-pip-version-check --quiet -r requirements-dev.txt
	@touch $@
