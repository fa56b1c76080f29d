# Each target sets up all it needs in its own virtual environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
FULL := $(VENV)/.full
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint golden bench coverage docs clean

demo: $(CORE)
	$(BIN)/unmask demo

test: $(FULL)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(FULL)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

golden: $(FULL)
	$(BIN)/python -m tests.golden

bench: $(FULL)
	$(BIN)/python -m benchmarks

coverage: $(FULL)
	$(BIN)/python -m benchmarks.coverage

docs: $(FULL)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(CORE): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

# Speaker encoders and the browser make some tests possible; without network or root these skip.
$(FULL): $(CORE)
	$(PIP) -e '.[test,lint]'
	-$(BIN)/unmask encoders install campplus
	-$(BIN)/unmask encoders install resemblyzer
	-command -v chromium > /dev/null || (apt-get update -qq && apt-get install -qq -y chromium)
	touch $@

clean:
	rm -rf $(VENV) unmask-demo site
