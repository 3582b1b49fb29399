VENV ?= .venv
PY := $(VENV)/bin/python
WORKERS ?= 2

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(VENV)/.installed ## a virtual environment with everything that the demo and the tests need

$(VENV)/.installed: pyproject.toml constraints.txt
	python3 -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup ## the whole loop on the built-in clouds: no account, no network, about a minute
	$(PY) -m broker demo

test: setup ## lint, types, import rules and every test that takes seconds
	@$(MAKE) --no-print-directory lint
	$(PY) -m pytest -n $(WORKERS) -m "not deep and not bench and not crash"

test-deep: setup ## the property tests with many more examples, and the slow tests
	$(PY) -m pytest -n $(WORKERS) -m "deep" --hypothesis-profile=deep

crash: setup ## kill, lose, refuse and delay at every boundary of apply, on all three clouds
	$(PY) -m pytest tests/crash -n $(WORKERS) --dist worksteal

bench: setup ## CPU time and memory as ratios, with bars
	$(PY) -m pytest -m bench -s tests/bench tests/queues

fuzz: setup ## at least 100,000 damaged inputs for each format of job queues
	$(PY) -m tests.queues.fuzzing --workers $(WORKERS)

bench-sia: setup ## the allocator on the public traces (BROKER_TRACES=folder): each figure beside its bar
	$(PY) -m pytest -m bench -s tests/backtest tests/sia tests/forecasts

lint: setup ## ruff, mypy --strict, import-linter
	$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache

.PHONY: help setup demo test test-deep crash bench bench-sia fuzz lint
.DEFAULT_GOAL := help
