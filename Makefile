# Every command of the project. `make` prints the list. Each target sets up what it needs: the
# virtual environments in this folder, the native module, the system's build tools.

PYTHON ?= python3
ARGS ?=

VENV := .venv
ORACLE_VENV := .venv-oracle
PY := $(VENV)/bin/python
# Where rustup puts cargo, for shells that were open before it was installed.
export PATH := $(PATH):$(HOME)/.cargo/bin

# The original exists for Linux only.
ifneq ($(shell uname -s),Linux)
export PENSTOCK_ORACLE ?= off
endif

# An editable install knows the folder's name: in a moved or copied folder it is made again.
HERE := $(shell printf %s '$(CURDIR)' | cksum | cut -d ' ' -f 1)
NATIVE := $(VENV)/.native-$(HERE)
RUST_SOURCES := Cargo.toml $(wildcard Cargo.lock build.rs) $(shell find src -type f)
PYTHON_SOURCES := $(wildcard python tests examples benchmarks tools)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## print this list
	@echo "make <target>, with PYTHON=python3.12 to choose a Python, ARGS='...' for the tool's arguments"
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  %-12s %s\n' "$$name" "$$text"; done

.PHONY: dev
dev: native ## set up .venv with the tools and penstock in it, editable
	@echo "ready: $(PY), or 'source $(VENV)/bin/activate'"

.PHONY: demo
demo: native ## train a small model on images made here, print images/s, write demo.png
	$(PY) examples/demo.py $(ARGS)

.PHONY: test
test: lint test-rust check test-python torture-ci ## everything CI runs: lint, tests, conformance, attacks

# Clippy has a folder of its own: maturin sets variables that pyo3's build looks at, and taking
# turns in one folder would build pyo3 anew each time.
.PHONY: lint
lint: environment cargo ## ruff, mypy, rustfmt, clippy
	$(PY) -m ruff check $(PYTHON_SOURCES)
	$(PY) -m ruff format --check $(PYTHON_SOURCES)
	$(PY) -m mypy
	cargo fmt --check
	PYO3_PYTHON='$(CURDIR)/$(PY)' cargo clippy --target-dir target/clippy --all-targets -- --deny warnings
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cargo clippy --manifest-path fuzz/Cargo.toml --target-dir target/clippy -- --deny warnings

.PHONY: format
format: environment cargo ## rewrite the sources in the project's format
	$(PY) -m ruff check --fix $(PYTHON_SOURCES)
	$(PY) -m ruff format $(PYTHON_SOURCES)
	cargo fmt

.PHONY: generate
generate: native ## write the stubs and reference pages that follow from the definitions
	$(PY) tools/generate.py

.PHONY: check
check: native ## fail where stubs or reference pages are not what the definitions say
	$(PY) tools/generate.py --check

# The release profile and the release dependencies of the build are used again here; without
# the default features nothing links to libpython.
.PHONY: test-rust
test-rust: cargo .make/system ## Rust tests
	cargo test --release --no-default-features $(ARGS)

.PHONY: test-python
test-python: native oracle ## Python tests: unit, property, conformance, stress
	$(PY) -m pytest -m "not slow and not bench" $(ARGS)

.PHONY: test-all
test-all: native oracle ## Python tests, the slow ones and many more examples included
	HYPOTHESIS_PROFILE=nightly $(PY) -m pytest -m "not bench" --timeout 1800 $(ARGS)

.PHONY: conformance
conformance: native oracle ## only the tests that compare with the original
	$(PY) -m pytest -m "not slow and not bench" tests/conformance $(ARGS)

# Attacks, each with its share of the time; PENSTOCK_TORTURE_SECONDS bounds all of them together.
.PHONY: torture
torture: native cargo ## an hour of attacks and fuzzing; fails on harm; ARGS='--only images --seed 7'
	$(PY) -m tools.torture $(ARGS)

.PHONY: torture-ci
torture-ci: native ## ten minutes of it, without what needs a build of its own
	$(PY) -m tools.torture --short $(ARGS)

.PHONY: fuzz
fuzz: native cargo ## the coverage-guided fuzzers alone; ARGS='600 png jpeg': seconds, targets
	$(PY) -m tools.torture.fuzzers $(or $(ARGS),1200)

.PHONY: fuzz-images
fuzz-images: native ## decode damaged images, 100 000 of them; ARGS='--count 2000 --only png'
	$(PY) tools/fuzz_images.py $(ARGS)

.PHONY: fuzz-build
fuzz-build: cargo .make/system ## build the fuzzers, with AddressSanitizer
	bash fuzz/build.sh address

# Both contenders in one process: the original's environment, with penstock from this folder.
.PHONY: bench
bench: native oracle ## measure against the original, interleaved
	@PYTHON='$(PYTHON)' bash tools/environment.sh $(ORACLE_VENV) requirements/bench.txt
	PYTHONPATH=python $(ORACLE_VENV)/bin/python -m benchmarks $(ARGS)

.PHONY: oracle
oracle: ## set up .venv-oracle with the original
ifeq ($(PENSTOCK_ORACLE),)
	@PYTHON='$(PYTHON)' bash tools/environment.sh $(ORACLE_VENV) requirements/oracle.txt
endif

.PHONY: clean
clean: ## remove what builds and runs left behind; the environments stay
	rm -rf target fuzz/target fuzz/corpus .make .mypy_cache .pytest_cache .ruff_cache .hypothesis demo.png $(VENV)/.native-*
	find python tests examples benchmarks tools -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	rm -f python/penstock/_core*.so

.PHONY: clean-all
clean-all: clean ## remove the environments too
	rm -rf $(VENV) $(ORACLE_VENV)

# Below: what the targets above stand on.

.PHONY: environment
environment: .make/system
	@PYTHON='$(PYTHON)' bash tools/environment.sh $(VENV) requirements/test.txt

.PHONY: cargo
cargo:
	@bash tools/rust.sh

.PHONY: native
native: environment cargo
	@$(MAKE) --no-print-directory $(NATIVE)

$(NATIVE): $(RUST_SOURCES) pyproject.toml $(VENV)/.packages-test
	VIRTUAL_ENV='$(CURDIR)/$(VENV)' $(PY) -m maturin develop --release
	@touch $@

.make/system: tools/system_deps.sh
	@PYTHON='$(PYTHON)' bash tools/system_deps.sh
	@mkdir -p .make && touch $@
