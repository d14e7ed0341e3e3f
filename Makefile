# make demo        checks a built-in example: table on the terminal, picture and netCDF file in demo/
# make test        every check: lint, types, tests and doctests with coverage
# make test-slow   the statistical tests with many runs, about a quarter of an hour
# make benchmark   speed of the engine and of Pyro programs
# All of them make .venv first. Another interpreter: make PYTHON=python3.12 demo

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed

.PHONY: demo test test-slow benchmark clean

demo: $(INSTALLED)
	$(BIN)/python -m pyro_ksd.demo

test: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --cov --cov-report=term:skip-covered

test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -m slow -s

benchmark: $(INSTALLED)
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.extraction

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "Python 3.11 or later is needed; choose one with make PYTHON=... "; exit 1; }
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT="$(CURDIR)/constraints.txt" $(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

clean:
	rm -rf .venv demo build *.egg-info
