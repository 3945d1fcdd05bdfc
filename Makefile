# Two commands from a fresh clone: `make demo` and `make test`.
# They need Python 3.11 or newer, and make their own virtual environment in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-all lint format clean

demo: $(VENV)/.demo  ## simulate 4,096 humanoids with contacts
	$(BIN)/jaxsim rollout configs/humanoid.xml --worlds 4096 --steps 500

test: $(VENV)/.test  ## the tests, on two cores; without those marked slow
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow"

test-all: $(VENV)/.test  ## every test, compiled as users compile
	TEST_OPTIMIZED=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.dev  ## format, lint and types, as the tests expect them
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .cache

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "jaxsim needs Python 3.11 or newer, this is %d.%d; name another one: make PYTHON=python3.12" \
	  % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(PIP) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml tests/model_packages.txt tests/client_packages.txt
	$(PIP) -e '.[test]'
	$(PIP) --no-deps -r tests/model_packages.txt -r tests/client_packages.txt
	@touch $@ $(VENV)/.demo

$(VENV)/.dev: $(VENV)/.test
	$(PIP) -e '.[test,dev]'
	@touch $@
