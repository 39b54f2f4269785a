# Everything runs in .venv, which the first target that needs it makes; uv is used where it is there.
PYTHON ?= python3
BIN := .venv/bin
CONFIGS := inputs/configs/refund_agent.yml inputs/configs/refund_agent_ordinal.yml
SUITES := $(addprefix --jrh-config=,$(CONFIGS))
ARGS ?=

.PHONY: demo record-demo test check format bench clean

demo: .venv/installed
	$(BIN)/pytest $(SUITES) $(ARGS)

record-demo: .venv/installed
	$(BIN)/python -m examples.record_demo $(CONFIGS)

test: .venv/installed
	$(BIN)/pytest -n auto $(ARGS)

check: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto $(ARGS)

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/installed
	$(BIN)/python -m benchmarks $(ARGS)

.venv/installed: pyproject.toml constraints.txt
	@if command -v uv >/dev/null 2>&1; then \
		test -x $(BIN)/python || uv venv --quiet --python $(PYTHON) .venv; \
		uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '.[dev]'; \
	else \
		test -x $(BIN)/python || $(PYTHON) -m venv .venv; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'; \
	fi
	@touch $@

clean:
	rm -rf .venv outputs build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
