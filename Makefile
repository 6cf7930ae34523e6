# Every command of the project. `make` prints the list. Each target sets up what it needs: the
# virtual environments in this folder, the native module, the system's build tools.

PYTHON ?= python3
ARGS ?=

VENV := .venv
ORACLE_VENV := .venv-oracle
TENSORFLOW_VENV := .venv-tensorflow
DOCS_VENV := .venv-docs
WHEEL_VENV := .venv-wheel
PY := $(VENV)/bin/python
# Where rustup puts cargo, for shells that were open before it was installed.
export PATH := $(PATH):$(HOME)/.cargo/bin

# DALI exists for Linux only.
ifneq ($(shell uname -s),Linux)
export PENSTOCK_ORACLE ?= off
endif

# An editable install knows the folder's name: in a moved or copied folder it is made again.
# Where the module is that of the quick profile, there is only the second stamp.
HERE := $(shell printf %s '$(CURDIR)' | cksum | cut -d ' ' -f 1)
NATIVE := $(VENV)/.native-$(HERE)
NATIVE_QUICK := $(VENV)/.native-quick-$(HERE)
REMOTE := $(VENV)/.remote-$(HERE)
REMOTE_QUICK := $(VENV)/.remote-quick-$(HERE)
REMOTE_SOURCES := src/readers/remote/abi.rs $(shell find remote -name target -prune -o -type f -print)
RUST_SOURCES := Cargo.toml $(wildcard Cargo.lock build.rs) $(shell find src -type f)
PYTHON_SOURCES := $(wildcard python tests examples benchmarks tools)

# Clippy and the Rust tests share a folder and a profile, so that dependencies, with the C libraries
# among them, are built once for both. It is not maturin's folder: maturin sets variables that
# pyo3's build looks at, and taking turns in one folder would build pyo3 anew each time.
CHECKS := --target-dir target/checks --profile quick
CLIPPY = PYO3_PYTHON='$(CURDIR)/$(PY)' cargo clippy $(CHECKS)
CLIPPY_REMOTE = PYO3_PYTHON='$(CURDIR)/$(PY)' cargo clippy --manifest-path remote/Cargo.toml \
	--target-dir target/checks-remote --profile quick

# What CI runs of the Python tests.
CI_TESTS := not slow and not bench

# The output of commands that run at the same time, one after the other, where `make` can do that.
OUTPUT_SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## print this list
	@echo "make <target>, with PYTHON=python3.12 to choose a Python, ARGS='...' for the tool's arguments"
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  %-15s %s\n' "$$name" "$$text"; done

.PHONY: dev
dev: native ## set up .venv with the tools and penstock in it, editable
	@echo "ready: $(PY), or 'source $(VENV)/bin/activate'"

# The announcement and the check for Rust come before anything is downloaded.
.PHONY: demo
demo: ## train a small model on images made here, print images/s, write demo.png
	@echo "make demo sets up $(VENV) (NumPy, Pillow, scikit-learn, JAX), builds the native module with"
	@echo "Rust (about 7 minutes on two cores, once), creates JPEGs, trains a small model on them and"
	@echo "writes a sheet of augmented images, demo.png. Everything stays in this folder."
	@$(MAKE) --no-print-directory -j1 cargo demo-environment $(NATIVE)
	$(PY) examples/demo.py $(ARGS)

# For the loop of edit, build and test.
.PHONY: quick
quick: native-quick ## lint what changed since HEAD, run the unit tests; under a minute after a build
	@PY='$(PY)' CLIPPY="$(CLIPPY)" bash tools/lint_changed.sh
	$(PY) -m pytest -n auto --dist loadfile -m "$(CI_TESTS) and not heavy and not alone" $(or $(ARGS),tests/unit)

# The module that is tested is the one that is released, plus the probes. Its build (one unit,
# optimized as a whole) keeps one core busy, so the other builds run beside it; the tests of Rust run
# afterwards.
.PHONY: test
test: cargo environment oracle ## everything CI runs: lint, tests, conformance, attacks
	@$(MAKE) --no-print-directory -j2 $(OUTPUT_SYNC) native lint build-rust-tests
	@$(MAKE) --no-print-directory -j1 test-rust check test-python torture-test

.PHONY: lint
lint: cargo environment ## ruff, mypy, rustfmt, clippy
	$(PY) -m ruff check $(PYTHON_SOURCES)
	$(PY) -m ruff format --check $(PYTHON_SOURCES)
	$(PY) -m mypy
	$(PY) -m mypy --config-file examples/mypy.ini examples/*.py
	cargo fmt --check
	$(CLIPPY) --all-targets -- --deny warnings
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	$(CLIPPY) --manifest-path fuzz/Cargo.toml -- --deny warnings
	cargo fmt --check --manifest-path remote/Cargo.toml
	$(CLIPPY_REMOTE) -- --deny warnings

.PHONY: format
format: cargo environment ## rewrite the sources in the project's format
	$(PY) -m ruff check --fix $(PYTHON_SOURCES)
	$(PY) -m ruff format $(PYTHON_SOURCES)
	cargo fmt
	cargo fmt --manifest-path remote/Cargo.toml

.PHONY: generate
generate: native-quick ## write the stubs and reference pages that follow from the definitions
	$(PY) tools/generate.py

.PHONY: check
check: native ## fail where stubs or reference pages are not what the definitions say
	$(PY) tools/generate.py --check

# Without the default features nothing links to libpython.
RUST_TESTS := cargo test $(CHECKS) --lib --no-default-features

.PHONY: test-rust
test-rust: cargo .make/system ## Rust tests
	$(RUST_TESTS) $(ARGS)

.PHONY: build-rust-tests
build-rust-tests: cargo .make/system
	$(RUST_TESTS) --no-run

.PHONY: test-python
test-python: native oracle ## Python tests: unit, property, conformance, stress
	@PY='$(PY)' bash tools/run_tests.sh "$(CI_TESTS)" $(ARGS)

# DALI is asked anew, whatever the cache knows.
.PHONY: test-all
test-all: native oracle ## Python tests, the slow ones and many more examples included
	@HYPOTHESIS_PROFILE=nightly PENSTOCK_ORACLE_CACHE=off PY='$(PY)' \
		bash tools/run_tests.sh "not bench" --timeout 1800 $(ARGS)

.PHONY: conformance
conformance: native oracle ## only the tests that compare with DALI
	@PY='$(PY)' bash tools/run_tests.sh "$(CI_TESTS)" tests/conformance $(ARGS)

.PHONY: test-tensorflow
test-tensorflow: native ## run the programs of docs/tensorflow.md with TensorFlow
	@PYTHON='$(PYTHON)' bash tools/environment.sh $(TENSORFLOW_VENV) requirements/tensorflow.txt
	PYTHONPATH='$(CURDIR)/python:$(CURDIR)' $(TENSORFLOW_VENV)/bin/python -m pytest -k tensorflow tests/unit/api/test_framework_guides.py $(ARGS)

# Attacks, each with its share of the time; PENSTOCK_TORTURE_SECONDS bounds all of them together.
.PHONY: torture
torture: native cargo ## an hour of attacks and fuzzing; fails on harm; ARGS='--only images --seed 7'
	$(PY) -m tools.torture $(ARGS)

.PHONY: torture-ci
torture-ci: native ## ten minutes of it, without what needs a build of its own
	$(PY) -m tools.torture --short $(ARGS)

# What `make test` runs of it: the attacks of the short run with its seed, four minutes.
.PHONY: torture-test
torture-test: native
	PENSTOCK_TORTURE_SECONDS=$${PENSTOCK_TORTURE_SECONDS:-240} $(PY) -m tools.torture --short

.PHONY: fuzz
fuzz: native cargo ## the coverage-guided fuzzers alone; ARGS='600 png jpeg': seconds, targets
	$(PY) -m tools.torture.fuzzers $(or $(ARGS),1200)

.PHONY: fuzz-images
fuzz-images: native ## decode damaged images, 100 000 of them; ARGS='--count 2000 --only png'
	$(PY) tools/fuzz_images.py $(ARGS)

.PHONY: fuzz-audio
fuzz-audio: native ## decode damaged sounds, 100 000 of them; ARGS='--count 2000 --only flac'
	$(PY) tools/fuzz_audio.py $(ARGS)

.PHONY: fuzz-video
fuzz-video: native ## decode damaged videos, 100 000 of them; ARGS='--count 2000 --only mp4'
	$(PY) tools/fuzz_video.py $(ARGS)

.PHONY: fuzz-build
fuzz-build: cargo .make/system ## build the fuzzers, with AddressSanitizer
	bash fuzz/build.sh address

# Both in one process: DALI's environment, with penstock from this folder.
.PHONY: bench
bench: native oracle ## measure against DALI, interleaved
	@PYTHON='$(PYTHON)' bash tools/environment.sh $(ORACLE_VENV) requirements/bench.txt
	PYTHONPATH=python $(ORACLE_VENV)/bin/python -m benchmarks $(ARGS)

# `abi3audit` has nothing to check: wheels are for one version of Python each (CONTRIBUTING.md).
.PHONY: wheel
wheel: cargo .make/system ## build a wheel into dist/, check it, try it out in an empty environment
	@PYTHON='$(PYTHON)' bash tools/environment.sh $(WHEEL_VENV) requirements/wheel.txt
	PYTHON='$(PYTHON)' bash tools/wheel.sh $(WHEEL_VENV) $(ARGS)

# Pages in docs/, and the pictures that `tools/docs` draws with the library.
.PHONY: docs
docs: cargo docs-environment ## build the documentation into site/; fails on broken links
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/python -m mkdocs build --strict $(ARGS)

.PHONY: docs-serve
docs-serve: cargo docs-environment ## serve the documentation on http://127.0.0.1:8000
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/python -m mkdocs serve $(ARGS)

.PHONY: oracle
oracle: ## set up .venv-oracle with DALI
ifeq ($(PENSTOCK_ORACLE),)
	@PYTHON='$(PYTHON)' bash tools/environment.sh $(ORACLE_VENV) requirements/oracle.txt
endif

.PHONY: clean
clean: ## remove what builds and runs left behind; the environments stay
	rm -rf target dist site fuzz/target fuzz/corpus .make .mypy_cache .pytest_cache .ruff_cache .hypothesis demo.png $(VENV)/.native-* $(VENV)/.remote-*
	find python tests examples benchmarks tools -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	rm -f python/penstock/_core*.so

.PHONY: clean-all
clean-all: clean ## remove the environments and DALI's answers too
	rm -rf $(VENV) $(ORACLE_VENV) $(DOCS_VENV) $(WHEEL_VENV) $(TENSORFLOW_VENV) .oracle-cache

# Below: what the targets above stand on.

.PHONY: environment
environment: .make/system
	@PYTHON='$(PYTHON)' bash tools/environment.sh $(VENV) requirements/test.txt

# The same folder with fewer packages; `environment` adds the others.
.PHONY: demo-environment
demo-environment: .make/system
	@PYTHON='$(PYTHON)' bash tools/environment.sh $(VENV) requirements/demo.txt

.PHONY: docs-environment
docs-environment: .make/system
	@PYTHON='$(PYTHON)' bash tools/environment.sh $(DOCS_VENV) requirements/docs.txt
	VIRTUAL_ENV='$(CURDIR)/$(DOCS_VENV)' $(DOCS_VENV)/bin/python -m maturin develop --release $(TEST_FEATURES)

.PHONY: cargo
cargo:
	@bash tools/rust.sh

.PHONY: native
native: cargo environment
	@$(MAKE) --no-print-directory $(NATIVE) $(REMOTE)

.PHONY: native-quick
native-quick: cargo environment
	@$(MAKE) --no-print-directory $(NATIVE_QUICK) $(REMOTE_QUICK)

MATURIN := VIRTUAL_ENV='$(CURDIR)/$(VENV)' $(PY) -m maturin
# What users install, plus the kernels that misbehave on request.
TEST_FEATURES := --features python,probes

$(NATIVE): $(RUST_SOURCES) pyproject.toml requirements/demo.txt
	$(MATURIN) develop --release $(TEST_FEATURES)
	@touch $@ $(NATIVE_QUICK)

$(NATIVE_QUICK): $(RUST_SOURCES) pyproject.toml requirements/demo.txt
	$(MATURIN) develop --profile quick $(TEST_FEATURES)
	@rm -f $(NATIVE) && touch $@

# The module that reads URLs, a package of its own. It has its own dependencies, so its own folder.
MATURIN_REMOTE := $(MATURIN) develop --manifest-path remote/Cargo.toml --target-dir target/remote

$(REMOTE): $(REMOTE_SOURCES) requirements/demo.txt
	$(MATURIN_REMOTE) --release
	@touch $@ $(REMOTE_QUICK)

$(REMOTE_QUICK): $(REMOTE_SOURCES) requirements/demo.txt
	$(MATURIN_REMOTE) --profile quick
	@rm -f $(REMOTE) && touch $@

.make/system: tools/system_deps.sh
	@PYTHON='$(PYTHON)' bash tools/system_deps.sh
	@mkdir -p .make && touch $@
