# Every target sets itself up: a virtual environment in .venv with locked dependencies, and the engine
# built into it. Nothing outside this folder is changed. What is missing is said by .ci/needs.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.9
STAGE := .ci/stage
# What is read for its spelling; names in code are nobody's prose.
PROSE := *.md docs examples

export PYO3_PYTHON := $(BIN)/python
export VIRTUAL_ENV := $(VENV)
export UV_PROJECT_ENVIRONMENT := $(VENV)
export UV_NO_PROGRESS := 1
export MPLBACKEND := Agg
# Tests start hundreds of commands. Where compiled modules may not be kept, each of them compiles pandas and
# Matplotlib anew, which takes longer than to import them.
unexport PYTHONDONTWRITEBYTECODE

# What the engine is built from; an edited test builds nothing that Python loads.
ENGINE := $(shell find crates -path '*/src/*' -name '*.rs' -o -path '*/src/*' -name '*.json' \
	-o -name build.rs -o -name Cargo.toml 2>/dev/null) Cargo.toml Cargo.lock rust-toolchain.toml

.PHONY: help
help: ## what there is to make
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Set-up

.PHONY: needs
needs:
	@.ci/needs

$(VENV)/.environment: pyproject.toml uv.lock .ci/needs
	@.ci/needs
	@echo "setting up the Python environment in .venv"
	@test -x $(BIN)/python || $(shell .ci/needs --python) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv sync --quiet --locked --inexact --all-extras --no-install-project --python $(BIN)/python
	@touch $@

# The environment has one engine at a time; its profile is in the name of the stamp.
$(VENV)/.engine-%: $(VENV)/.environment $(ENGINE)
	@echo "building the engine, profile $* (some minutes the first time)"
	@rm -f $(VENV)/.engine-*
	@$(BIN)/maturin develop --uv --profile $* --locked
	@touch $@

# The first process of guests in virtual time: static, since a guest has no libraries.
GUEST := python/sojourn/linux/init
STATIC := x86_64-unknown-linux-gnu
$(GUEST): $(VENV)/.environment $(ENGINE)
	@if [ "$$(uname -sm)" = "Linux x86_64" ]; then \
		CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS='-C target-feature=+crt-static' \
			cargo build --quiet --locked --package sojourn-guest --profile quick --target $(STATIC); \
		install -m 755 target/$(STATIC)/quick/sojourn-guest $@; \
	fi

# The engine for browsers, which the package has too. `wasm-opt` makes the module a little smaller where it is
# installed.
WASM := build/wasm
WASM_TARGET := wasm32-unknown-unknown
BROWSERS := python/sojourn/wasm
.PHONY: wasm
wasm: $(BROWSERS)/sojourn.wasm ## the engine for browsers: a WebAssembly module with its script, in build/wasm and the package

$(BROWSERS)/sojourn.wasm: $(WASM)/sojourn.wasm
	@install -m 644 $(WASM)/sojourn.wasm $(WASM)/sojourn.js $(BROWSERS)/

$(WASM)/sojourn.wasm: $(ENGINE) crates/wasm/sojourn.js
	@.ci/needs --wasm
	@echo "building the engine for browsers (some minutes the first time)"
	@cargo build --quiet --locked --package sojourn-wasm --profile wasm --target $(WASM_TARGET)
	@mkdir -p $(WASM)
	@cp target/$(WASM_TARGET)/wasm/sojourn_wasm.wasm $@.new
	@if command -v wasm-opt >/dev/null; then wasm-opt -O3 --all-features $@.new -o $@.new; fi
	@cp crates/wasm/sojourn.js $(WASM)/
	@mv $@.new $@
	@echo "$@: $$(wc -c <$@) bytes, $$(gzip -9c $@ | wc -c) compressed"

# Set-up goes on without it.
.PHONY: browsers
browsers:
	@$(MAKE) --no-print-directory wasm || echo "without the engine for browsers, which 'sojourn play' needs: make wasm"

.PHONY: setup
setup: $(VENV)/.engine-release $(GUEST) browsers ## the environment and the engine, in .venv

.PHONY: dev
dev: $(VENV)/.engine-quick $(GUEST) ## the same, with an engine that builds in seconds after an edit and runs a little slower
	@test -e $(BROWSERS)/sojourn.wasm || $(MAKE) --no-print-directory browsers

.PHONY: wheel
wheel: setup ## a wheel for this platform, in dist: installs without Rust and compiler
	@rm -f dist/sojourn-*.whl
	@$(BIN)/maturin build --release --locked --quiet --out dist
	@ls dist/sojourn-*.whl

# The profile is made of these sources by this compiler, and used at once: one that is kept grows old.
PGO := $(CURDIR)/target/pgo
.PHONY: pgo
pgo: $(VENV)/.environment $(GUEST) browsers ## a wheel whose engine is compiled by a profile of its runs, in dist and .venv: somewhat faster, twice the build
	@host=$$(rustc -vV | sed -n 's/^host: //p'); \
	tool=$$(rustc --print sysroot)/lib/rustlib/$$host/bin/llvm-profdata; \
	test -x $$tool || { echo "needs the compiler's llvm-profdata: rustup component add llvm-tools"; exit 1; }; \
	develop="$(BIN)/maturin develop --uv --release --locked --target $$host --target-dir $(PGO)"; \
	rm -rf $(PGO)/runs $(VENV)/.engine-*; \
	RUSTFLAGS="-Cprofile-generate=$(PGO)/runs" $$develop; \
	$(BIN)/python bench/pgo/train.py; \
	$$tool merge --output $(PGO)/engine.profdata $(PGO)/runs; \
	export RUSTFLAGS="-Cprofile-use=$(PGO)/engine.profdata"; \
	$$develop; \
	rm -f dist/sojourn-*.whl; \
	$(BIN)/maturin build --release --locked --quiet --target $$host --target-dir $(PGO) --out dist
	@touch $(VENV)/.engine-release
	@ls dist/sojourn-*.whl

.PHONY: linux-wheel
linux-wheel: setup ## a wheel of a kernel for virtual time, in dist: for machines that are not to build one
	@$(BIN)/sojourn linux build
	@rm -f dist/sojourn_linux-*.whl
	@$(BIN)/python packaging/linux/wheel.py --out dist
	@ls dist/sojourn_linux-*.whl

# Checks

# Every file by name: `cargo fmt` does not see modules that a macro declares (crates/queue/src/lib.rs).
RUST = $(shell git ls-files --cached --others --exclude-standard 'crates/*.rs')

.PHONY: test
test: dev ## all lints and types, and the tests without the long ones; one failure does not stop the rest
	@$(MAKE) --no-print-directory check PYTEST='-m "not slow" $(PYTEST)'

.PHONY: test-all
test-all: setup ## the same with all tests, those of real programs and long studies included
	@$(MAKE) --no-print-directory check

.PHONY: check
check:
	@status=0; \
	$(STAGE) "rustfmt" rustfmt --check $(RUST) || status=1; \
	$(STAGE) "clippy" cargo clippy --workspace --all-targets --locked --quiet -- -D warnings || status=1; \
	$(STAGE) "ruff" $(MAKE) --no-print-directory ruff || status=1; \
	$(STAGE) "codespell" $(BIN)/codespell $(PROSE) || status=1; \
	$(STAGE) "mypy" $(BIN)/mypy || status=1; \
	$(STAGE) "cargo test" cargo test --workspace --locked --quiet --no-fail-fast || status=1; \
	$(STAGE) "pytest" $(BIN)/pytest -q -n auto $(PYTEST) || status=1; \
	exit $$status

.PHONY: lint
lint: $(VENV)/.environment ## formats, lints, spelling and types
	rustfmt --check $(RUST)
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	@$(MAKE) --no-print-directory ruff
	$(BIN)/codespell $(PROSE)
	$(BIN)/mypy

.PHONY: ruff
ruff: $(VENV)/.environment
	$(BIN)/ruff check
	$(BIN)/ruff format --check

.PHONY: format
format: $(VENV)/.environment ## format all sources
	rustfmt $(RUST)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: soak
soak: setup ## property and replay tests at great length
	PROPTEST_CASES=20000 cargo test --workspace --locked --release
	$(BIN)/pytest -n auto --hypothesis-profile=soak
	$(BIN)/sojourn store fetch
	$(BIN)/sojourn paper edge-store --real

.PHONY: crosscheck
crosscheck: setup ## the same dumbbells in ns-3 (needs libns3-dev)
	$(BIN)/python tests/crosscheck/run.py $(CROSSCHECK)

.PHONY: bench
bench: setup ## instruction counts, packets per CPU-second
	@bench/run

.PHONY: peers
peers: setup ## speed beside ns-3 (NS3=FOLDER:FOLDER) and htsim (HTSIM=PROGRAM), recorded for the documentation
	$(BIN)/python bench/peers/run.py --write

# Shows

.PHONY: demo
demo: $(VENV)/.engine-release ## compare queues on the paper's bottleneck; figures and report
	@$(BIN)/sojourn compare examples/taildrop-demo.toml \
		--seeds 5 --out demo-results $(DEMO) \
		--queues "pfifo limit 300p" \
		"red limit 300p min 45p max 195p probability 0.1 avpkt 1514 bandwidth 10mbit unit packets" \
		codel fq_codel pie cobalt
	@$(BIN)/sojourn report demo-results

SITE := docs/_build/site
.PHONY: site
site: setup ## documentation and playground as one static site, in docs/_build/site, for any host or none
	$(BIN)/sphinx-build -W --keep-going -q -d docs/_build/doctrees docs $(SITE)
	@test -e $(SITE)/playground || echo "without playground, and with figures that do not move: make wasm says what is missing"
	@echo "written to $(SITE)/index.html: $$(du -sk $(SITE) | awk '{printf "%.0f MB", $$1 * 1.024 / 1000}')"

.PHONY: man
man: setup ## the manual page of the commands, docs/_build/man/sojourn.1
	$(BIN)/sphinx-build --keep-going -q -b man docs docs/_build/man
	@echo "written to docs/_build/man/sojourn.1; read it with man docs/_build/man/sojourn.1"

.PHONY: links
links: setup ## whether what the documentation links to outside is there (needs a network)
	$(BIN)/sphinx-build -b linkcheck -q docs docs/_build/links

.PHONY: figures
figures: setup ## the reference's figures anew, from simulations
	$(BIN)/python docs/_figures $(FIGURES)

# The charts of reports: version of the library that the package carries.
PLOTLY := 4.1.1

.PHONY: plotly
plotly: ## renew the report's library of charts and its licence from npm, at the version set in this file
	@folder=$$(mktemp -d); cd "$$folder"; \
	npm pack --silent plotly.js-basic-dist-min@$(PLOTLY) >/dev/null; \
	tar -xzf *.tgz; \
	gzip -9 -n -c package/plotly-basic.min.js >$(CURDIR)/python/sojourn/show/html/plotly/plotly-basic.min.js.gz; \
	install -m 644 package/LICENSE $(CURDIR)/python/sojourn/show/html/plotly/LICENSE; \
	rm -r "$$folder"

.PHONY: records
records: setup ## the studies' records at the papers' lengths: prints its CPU-hours, goes on where it was stopped
	$(BIN)/python docs/studies/record.py --full --linux --steady $(STUDIES)

.PHONY: clean
clean: ## remove everything that was made here
	rm -rf .venv target build dist docs/_build demo-results .pytest_cache .mypy_cache .ruff_cache \
		.hypothesis
	rm -f python/sojourn/_core*.so $(GUEST) $(BROWSERS)/sojourn.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
