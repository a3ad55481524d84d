# Two commands on a fresh machine (python3 >= 3.11, pip, make):
#   make demo    install and assess four models on real digits
#   make test    install and run the tests
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ORACLES := .venv-oracles

# A newer torch pulls gigabytes of CUDA packages; no extra may lift it.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The long tests and the benchmarks in shards, each at most half an hour on two cores: `make slow-faults`, `make bench-risk`.
SLOW := damage evasion indicators survival attacks runs pages faults fuzz
BENCH := engine distances autoattack peers risk validity

.PHONY: demo wheel test check bench slow $(SLOW:%=slow-%) $(BENCH:%=bench-%) audit advisories format docs clean

demo: $(VENV)/.run
	$(BIN)/advrisk demo

# What `pip install` takes anywhere else: dist/advrisk-….whl
wheel:
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

# One process more than cores, as many tests wait for others; one thread for each. One that has done its share takes over.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(shell expr $$(nproc 2>/dev/null || echo 2) + 1) --maxprocesses 5 --dist worksteal

test: $(VENV)/.dev
	$(PYTEST)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile
	$(PYTEST)

# Every shard in turn; one that fails does not keep the others from running.
slow:
	$(MAKE) --keep-going --jobs=1 $(SLOW:%=slow-%)

$(SLOW:%=slow-%): slow-%: $(VENV)/.dev $(ORACLES)/.ready
	$(PYTEST) -m slow --shard $*

bench:
	$(MAKE) --keep-going --jobs=1 $(BENCH:%=bench-%)

# `make bench PAGE=docs/benchmarks.md` writes what is printed into that page, too.
$(BENCH:%=bench-%): bench-%: $(VENV)/.dev $(VENV)/.peers $(ORACLES)/.ready
	$(BIN)/python -m bench --shard $* $(if $(PAGE),--page $(PAGE))

audit: $(VENV)/.audit
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src

# Asks for known faults of the packages that are installed; it needs the network.
advisories: $(VENV)/.audit
	$(BIN)/pip-audit --local --skip-editable --progress-spinner off

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) $(ORACLES) dist site advrisk-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# Each stamp says which extras are installed; it is made anew when the requirements change.
$(VENV)/.%: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[$*]'
	touch $@

# Libraries to measure ourselves against. Some pin old packages, or a torchvision whose wheel would want another torch:
# they come without their dependencies. Where they cannot be had, the benchmarks say "not installed".
$(VENV)/.peers: $(VENV)/.bench
	$(BIN)/pip install --quiet --no-deps torchattacks adv-lib secml-torch pyautoattack && touch $@ || true

# lifelines, which our survival fits are held against, pins an old pandas: it has an environment of its own. The programs
# that ask it find it through ADVRISK_ORACLES, the path of its python.
export ADVRISK_ORACLES := $(CURDIR)/$(ORACLES)/bin/python
$(ORACLES)/.ready: pyproject.toml
	$(PYTHON) -m venv $(ORACLES) && $(ORACLES)/bin/pip install --quiet lifelines && touch $@ || true
