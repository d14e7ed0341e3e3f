# make demo        checks a built-in example: table on the terminal; picture, report and netCDF file in demo/
# make test        every check: lint, types, tests and doctests; results under ArviZ 1.x as well, and what depends on
#                  other packages most with their lowest versions; the site, quickly
# make test-lowest what depends on other packages most, with the lowest versions that pyproject.toml declares, without numba
#                  (all tests: make test-lowest LOWEST_TESTS="tests pyro_ksd")
# make coverage    the tests and doctests again, with the lines that none of them reaches
# make test-slow   the statistical tests with many runs, about half an hour
# make mutants     small bugs on purpose, SAMPLE=200 of them (half an hour) or all of FILES=..., and how many tests notice
# make benchmark   speed of the engine and of Pyro programs
# make tutorials   executes all tutorials in full
# make docs        the tutorials and the documentation site, in build/docs (make test-docs: quickly, in build/quick)
# All of them make .venv first. Another interpreter: make PYTHON=python3.12 demo

PYTHON ?= python3
BIN := .venv/bin
PACKAGE := .venv/package
INSTALLED := .venv/installed

# ArviZ 1.x needs Python 3.12. Where .venv has an older one, results are also read and drawn by a second environment,
# without torch and Pyro.
NEWER = $(shell for version in 3.12 3.13; do PYENV_VERSION=$$version python$$version \
	-c "import sys, venv; print(sys.executable)" 2>/dev/null && break; done)
NEWER_BIN := .venv-arviz1/bin
NEWER_INSTALLED := .venv-arviz1/installed

# The lowest versions that pyproject.toml declares, on the lowest Python.
LOWEST_BIN := .venv-lowest/bin
LOWEST_INSTALLED := .venv-lowest/installed
LOWEST_TESTS := $(addprefix tests/,checks/test_model_check.py edits models/posterior plots results sequences)

# Where the site goes.
BUILD := build

# Of all mutants only a sample is tested, unless files or folders are named.
FILES :=
SAMPLE := $(if $(FILES),,200)
SEED := 0

# The tests start many interpreters: let each use the bytecode that an earlier one has written.
export PYTHONDONTWRITEBYTECODE :=

# One thread for each process: on busy processors the threads of torch wait for each other, and all of it takes long.
PARALLEL := -n auto --maxprocesses 4 --dist worksteal
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(PARALLEL)

.PHONY: demo test coverage test-arviz1 test-lowest test-docs test-slow mutants benchmark tutorials docs clean

demo: $(PACKAGE)
	$(BIN)/python -m pyro_ksd.demo

test: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST)
	@if $(BIN)/python -c "import sys; sys.exit(sys.version_info < (3, 12))"; then \
		echo "ArviZ 1.x is in .venv itself"; \
	elif [ -z "$(NEWER)" ]; then \
		echo "The tests with ArviZ 1.x were left out: neither python3.12 nor python3.13 was found"; \
	else \
		$(MAKE) --no-print-directory test-arviz1; \
	fi
	@if $(BIN)/python -c "import sys; sys.exit(sys.version_info[:2] != (3, 11))"; then \
		$(MAKE) --no-print-directory test-lowest; \
	else \
		echo "The tests with the lowest versions were left out: they need Python 3.11"; \
	fi
	$(MAKE) --no-print-directory test-docs

coverage: $(INSTALLED)
	$(PYTEST) --cov --cov-report=term:skip-covered

test-arviz1: $(INSTALLED) $(NEWER_INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m pyro_ksd.demo --output build/demo > /dev/null
	PYRO_KSD_SAVED_CHECK=build/demo/check.nc $(NEWER_BIN)/python -m pytest $(PARALLEL) tests/plots tests/results

test-lowest: $(LOWEST_INSTALLED)
	OMP_NUM_THREADS=1 $(LOWEST_BIN)/python -m pytest $(PARALLEL) $(LOWEST_TESTS)

test-docs:
	PYRO_KSD_QUICK=1 $(MAKE) --no-print-directory docs BUILD=build/quick

test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -m slow -s

mutants: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.mutants $(FILES) $(if $(SAMPLE),--sample $(SAMPLE) --seed $(SEED))

benchmark: $(INSTALLED)
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.engine_compiled
	$(BIN)/python -m benchmarks.growth
	$(BIN)/python -m benchmarks.extraction

tutorials: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python docs/execute.py $(BUILD)/docs

docs: tutorials
	$(BIN)/sphinx-build --quiet --fresh-env --nitpicky --fail-on-warning --jobs auto docs $(BUILD)/docs
	$(BIN)/python docs/links.py $(BUILD)/docs

# The package alone, for the demo; and with all that tests, tutorials and site need.
$(PACKAGE): pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "Python 3.11 or later is needed; choose one with make PYTHON=... "; exit 1; }
	$(PYTHON) -m venv .venv
	@echo "Installing into .venv; this takes some minutes"
	PIP_CONSTRAINT="$(CURDIR)/constraints.txt" $(BIN)/python -m pip install --quiet --editable ".[fast]"
	touch $@

$(INSTALLED): $(PACKAGE)
	PIP_CONSTRAINT="$(CURDIR)/constraints.txt" $(BIN)/python -m pip install --quiet --editable ".[dask,fast,test,docs,tutorials]"
	touch $@

$(NEWER_INSTALLED): pyproject.toml constraints.txt | $(INSTALLED)
	"$(NEWER)" -m venv --without-pip .venv-arviz1
	PIP_CONSTRAINT="$(CURDIR)/constraints.txt" $(BIN)/python -m pip --python $(NEWER_BIN)/python install --quiet \
		--no-compile arviz bokeh h5netcdf h5py jinja2 lazy_loader matplotlib plotly pytest pytest-xdist webcolors zarr
	PIP_CONSTRAINT="$(CURDIR)/constraints.txt" $(BIN)/python -m pip --python $(NEWER_BIN)/python install --quiet \
		--no-deps --editable .
	touch $@

$(LOWEST_INSTALLED): pyproject.toml constraints-lowest.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info[:2] != (3, 11))" || \
		{ echo "Python 3.11 is needed; choose it with make PYTHON=python3.11 test-lowest"; exit 1; }
	$(PYTHON) -m venv .venv-lowest
	PIP_CONSTRAINT="$(CURDIR)/constraints-lowest.txt" $(LOWEST_BIN)/python -m pip install --quiet --no-compile \
		--editable ".[test]"
	touch $@

clean:
	rm -rf .venv .venv-arviz1 .venv-lowest demo build *.egg-info
