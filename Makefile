# Everything runs in .venv, which the first target that needs it makes, for the demo without the developers' tools; uv is
# used where it is there.
PYTHON ?= python3
BIN := .venv/bin
MODEL := build/small_judge
CONFIGS := inputs/configs/refund_agent.yml inputs/configs/refund_agent_ordinal.yml
SUITES := $(addprefix --jrh-config=,$(CONFIGS))
ARGS ?=

# What is tried with the oldest and with the newest versions that pyproject.toml allows: the demo, a recording, the extras,
# and what depends on how other packages read: answers of models (all that asks over HTTP), judges of Inspect, and its logs.
# The examples of the docs need the developers' tools.
SESSION_TESTS := tests/plugin/test_first_suite.py
VERSIONS_TESTS := $(SESSION_TESTS) tests/e2e --ignore=tests/e2e/test_document_examples.py \
	tests/plugin/test_network.py tests/plugin/test_graded_judge.py tests/unit/test_calls.py tests/unit/test_eval_logs.py \
	tests/unit/test_check.py tests/unit/test_tables.py tests/unit/test_statistics.py tests/unit/test_templating.py \
	tests/unit/test_review_app.py
# uv alone resolves downwards; where it is missing it comes from the package index.
UV := $(or $(shell command -v uv),.venv-uv/bin/uv)

.PHONY: demo record-demo demo-real record-demo-real test test-lowest test-newest check lint types format bench docs package picture clean

demo: .venv/demo
	$(BIN)/pytest $(SUITES) --jrh-config=examples/answers/answers.yml $(ARGS)

record-demo: .venv/installed
	$(BIN)/python -m examples.record_demo $(CONFIGS)

demo-real: .venv/demo
	@$(BIN)/python -m examples.small_judge.replay $(ARGS)

record-demo-real: .venv/installed $(MODEL)/installed
	$(BIN)/python -m examples.small_judge.record $(MODEL)/bin/python

test: .venv/installed
	$(BIN)/pytest -n auto --dist worksteal $(ARGS)

# Most people's pytest is an older one, so the oldest versions also meet the newest pytest 8: with sessions alone, since
# what the other tests try has been tried with the same versions.
test-lowest: $(UV)
	$(call resolve,.venv-lowest,--resolution lowest-direct)
	$(call try,.venv-lowest,$(VERSIONS_TESTS))
	$(UV) pip install --quiet --upgrade-package pytest --python .venv-lowest/bin/python 'pytest==8.*'
	$(call try,.venv-lowest,$(SESSION_TESTS))

# The reader of Inspect's logs that does without Inspect does as the newest one.
test-newest: $(UV)
	$(call resolve,.venv-newest)
	$(call try,.venv-newest,$(VERSIONS_TESTS) tests/unit/test_plain_samples.py)

# Each time anew: the packages that nothing here bounds have new releases between two commits.
define resolve
rm -rf $(1)
$(UV) venv --quiet --python $(PYTHON) $(1)
$(UV) pip install --quiet --python $(1)/bin/python $(2) --editable '.[test]'
$(UV) pip freeze --python $(1)/bin/python --exclude-editable > $(1)/versions.txt
endef

define try
$(1)/bin/pytest $(SUITES)
$(1)/bin/pytest -n 2 $(SUITES)
$(1)/bin/pytest -n 2 $(2) $(ARGS)
endef

check: lint types test

lint: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/installed
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/installed
	$(BIN)/python -m benchmarks $(ARGS)

docs: .venv/installed
	$(BIN)/python -m tools.reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	cp docs/*.md build/docs/   # what llms.txt links to

# Built, looked into, and tried where nothing but the wheel and what it depends on is installed.
package: .venv/installed
	rm -rf dist .venv-package
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m tools.package dist
	$(PYTHON) -m venv .venv-package
	.venv-package/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	cd .venv-package && bin/python -m pytest_jrh demo tried && \
		bin/python -m pytest_jrh check ../examples/strong_judges/agent-as-a-judge.csv --one=violated

picture: .venv/installed
	$(BIN)/python -m tools.picture

# The demo needs the package and its dependencies. What compiles nothing installs in less time: a run compiles what it imports.
.venv/demo: PIP_FLAGS := --no-compile
.venv/installed: EXTRAS := [dev]
.venv/installed: UV_FLAGS := --compile-bytecode
.venv/demo .venv/installed: pyproject.toml constraints.txt
	@if command -v uv >/dev/null 2>&1; then \
		test -x $(@D)/bin/python || uv venv --quiet --python $(PYTHON) $(@D); \
		uv pip install --quiet $(UV_FLAGS) --python $(@D)/bin/python --constraint constraints.txt --editable '.$(EXTRAS)'; \
	else \
		test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D); \
		$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) --constraint constraints.txt --editable '.$(EXTRAS)'; \
	fi
	@touch $@ $(@D)/demo

.venv-uv/bin/uv:
	$(PYTHON) -m venv .venv-uv
	.venv-uv/bin/python -m pip install --quiet --disable-pip-version-check uv

# The model and its server are no dependencies of anything here, so they have an environment of their own.
$(MODEL)/installed: examples/small_judge/requirements.txt
	@if command -v uv >/dev/null 2>&1; then \
		test -x $(MODEL)/bin/python || uv venv --quiet --python $(PYTHON) $(MODEL); \
		uv pip install --quiet --python $(MODEL)/bin/python --no-deps --requirement $<; \
	else \
		test -x $(MODEL)/bin/python || $(PYTHON) -m venv $(MODEL); \
		$(MODEL)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $<; \
	fi
	@touch $@

clean:
	rm -rf .venv .venv-lowest .venv-newest .venv-uv .venv-package outputs build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
