# Each target sets up all it needs in its own virtual environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
FULL := $(VENV)/.full
ALONE := .venv-core/.installed
OTHERS := .venv-integrations/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test core integrations lint golden bench growth interval-coverage code-coverage fuzz faults mutants docs build clean

demo: $(CORE)
	$(BIN)/unmask demo

# Where CI is set, tests that lack what is installed below fail instead of being skipped.
test: $(FULL)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(if $(CI),--required)

# The core alone: what `pip install unmask` brings, and what runs tests; nothing of the report.
core: $(ALONE)
	.venv-core/bin/python -m pytest @tests/core.txt

# Scorers of scikit-learn and the metric of torchmetrics, in an environment of their own.
integrations: $(OTHERS)
	.venv-integrations/bin/python -m pytest -p no:cacheprovider tests/integrations/check.py

lint: $(FULL)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

golden: $(FULL)
	$(BIN)/python -m tests.golden

bench: $(FULL)
	$(BIN)/python -m benchmarks

# Time and memory against size, with the fitted exponent: half an hour, never part of CI.
growth: $(FULL)
	$(BIN)/python -m benchmarks growth

# How often intervals hold the truth.
interval-coverage: $(FULL)
	$(BIN)/python -m studies.coverage --processes $$(nproc)

# Which lines and branches of the core its tests reach; some minutes, never part of `make test`.
code-coverage: $(FULL)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/test_*.py \
		$(addprefix tests/,cli engine privacy scoring stress trials)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

fuzz: $(FULL)
	$(BIN)/python -m fuzz --processes $$(nproc) --keep fuzz-faults

faults: $(FULL)
	$(BIN)/python -m fuzz.faults

mutants: $(FULL)
	$(BIN)/python -m fuzz.mutants

build: $(FULL)
	$(PIP) build
	$(BIN)/python -m build --outdir dist .

docs: $(FULL)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(CORE): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[report]'
	touch $@

$(ALONE): pyproject.toml constraints.txt
	test -x .venv-core/bin/python || $(PYTHON) -m venv .venv-core
	.venv-core/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-e . pytest hypothesis mpmath
	touch $@

$(OTHERS): pyproject.toml constraints.txt
	test -x .venv-integrations/bin/python || $(PYTHON) -m venv .venv-integrations
	.venv-integrations/bin/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt -e '.[integrations]' pytest hypothesis
	touch $@

# Speaker encoders, the browser, axe-core and LaTeX make some tests possible; without network, npm or
# root these skip. MAY_BE_ABSENT of tests/conftest.py may be absent where CI is set.
$(FULL): $(CORE)
	$(PIP) -e '.[test,lint]'
	-$(BIN)/unmask encoders install campplus
	-$(BIN)/unmask encoders install resemblyzer
	-npm install --silent --no-save --prefix $(VENV)/axe axe-core@4.10.3
	-command -v chromium > /dev/null || (apt-get update -qq && apt-get install -qq -y chromium)
	-command -v pdflatex > /dev/null \
		|| (apt-get update -qq && apt-get install -qq -y texlive-latex-recommended)
	touch $@

clean:
	rm -rf $(VENV) .venv-core .venv-integrations unmask-demo site
