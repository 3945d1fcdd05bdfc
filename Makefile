# Two commands from a fresh clone: `make demo` and `make test`.
# They need Python 3.11 or newer, and make their own virtual environment in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Tests that use every package once, in an environment of the lowest versions.
MINIMUM := .venv-minimum
MINIMUM_TESTS := tests/test_minimum.py \
  tests/io/test_load.py::test_text_and_file_are_the_same_model \
  tests/model/test_checkpoint.py \
  tests/assets/source/test_provider.py::test_archives_by_fsspec \
  tests/assets/read/test_decoder.py \
  tests/control/test_receding_horizon.py::test_receding_horizon_returns_the_cart_to_the_origin[shoot] \
  tests/control/test_inverse.py::test_a_reachable_pose_is_found \
  tests/view/test_curves.py \
  tests/view/browser/test_shape.py \
  tests/view/browser/test_viewer.py::test_it_listens_on_this_machine_only_and_ends \
  tests/cli/test_render.py::test_a_film_for_a_player \
  tests/envs/test_gymnasium.py::test_the_checker_of_gymnasium_passes \
  tests/learn/test_train.py::test_the_curve \
  tests/learn/test_train.py::test_events_for_tensorboard \
  tests/learn/test_dataset.py::test_minibatches_have_each_row_once_in_an_order_of_the_key

.PHONY: demo smoke test test-all test-minimum docs reference lint format clean

demo: $(VENV)/.demo  ## simulate 4,096 humanoids with contacts
	$(BIN)/jaxsim rollout configs/humanoid.xml --worlds 4096 --steps 500

smoke: $(VENV)/.test  ## the main paths, compiled as users compile: three minutes
	TEST_OPTIMIZED=1 $(BIN)/python -m pytest -q tests/test_smoke.py

test: smoke  ## the tests, on two cores; without those marked slow
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not slow" \
	  --ignore=tests/test_smoke.py

test-all: $(VENV)/.test  ## every test, compiled as users compile
	TEST_OPTIMIZED=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-minimum: $(MINIMUM)/.made  ## a few tests with the lowest versions of all packages
	TEST_MINIMUM=1 $(MINIMUM)/bin/python -m pytest -n 2 --dist loadfile -W ignore $(MINIMUM_TESTS)

docs: $(VENV)/.docs  ## the documentation site, in build/site
	$(BIN)/mkdocs build --strict

reference: $(VENV)/.test  ## the generated pages of docs/reference
	$(BIN)/python docs/tools/reference.py

lint: $(VENV)/.dev  ## format, lint and types, as the tests expect them
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(MINIMUM) .cache

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  "jaxsim needs Python 3.11 or newer, this is %d.%d; name another one: make PYTHON=python3.12" \
	  % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(MINIMUM)/.made: pyproject.toml tests/minimum.py
	rm -rf $(MINIMUM)
	$(PYTHON) -m venv $(MINIMUM)
	$(PYTHON) tests/minimum.py > $(MINIMUM)/minimum.txt
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -r $(MINIMUM)/minimum.txt
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(PIP) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml tests/model_packages.txt tests/client_packages.txt
	$(PIP) -e '.[test]'
	$(PIP) --no-deps -r tests/model_packages.txt -r tests/client_packages.txt
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: $(VENV)/.made pyproject.toml
	$(PIP) -e '.[docs]'
	@touch $@ $(VENV)/.demo

$(VENV)/.dev: $(VENV)/.test
	$(PIP) -e '.[test,dev]'
	@touch $@
