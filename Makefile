# Every target first sets up what it needs: a virtual environment in .venv with locked dependencies, and the
# engine. No target changes anything outside this folder, except the caches of pip, uv and cargo. .ci/needs reports
# missing programs.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.9
STAGE := .ci/stage
# Files whose spelling is checked. Source code is excluded because of its many names.
PROSE := *.md docs examples

export PYO3_PYTHON := $(BIN)/python
export VIRTUAL_ENV := $(VENV)
export UV_PROJECT_ENVIRONMENT := $(VENV)
export UV_NO_PROGRESS := 1
export MPLBACKEND := Agg
# Tests start hundreds of commands. If Python could not write compiled modules, each command would compile pandas
# and Matplotlib again, which takes longer than their import.
unexport PYTHONDONTWRITEBYTECODE

# Sources of the engine. Tests are excluded, so that an edited test does not cause a new build.
ENGINE := $(shell find crates -path '*/src/*' -name '*.rs' -o -path '*/src/*' -name '*.json' \
	-o -name build.rs -o -name Cargo.toml 2>/dev/null) Cargo.toml Cargo.lock rust-toolchain.toml

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Set-up

.PHONY: needs
needs:
	@.ci/needs

# The tools that install packages and build the engine.
$(VENV)/.tools: pyproject.toml uv.lock .ci/needs
	@.ci/needs
	@echo "setting up the Python environment in .venv"
	@test -x $(BIN)/python || $(shell .ci/needs --python) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(SYNC) --only-group build
	@touch $@

SYNC := $(BIN)/uv sync --quiet --locked --inexact --no-install-project --python $(BIN)/python

$(VENV)/.environment: $(VENV)/.tools
	@$(SYNC) --all-extras
	@touch $@

# The packages that `make demo` uses, about a third of all.
$(VENV)/.report: $(VENV)/.tools
	@$(SYNC) --no-default-groups --extra report
	@touch $@

# The environment contains one engine at a time. The name of the stamp contains the engine's profile.
$(VENV)/.engine-%: $(VENV)/.tools $(ENGINE)
	@echo "building the engine, profile $* ($(if $(filter quick,$*),about a minute,some minutes) the first time)"
	@rm -f $(VENV)/.engine-*
	@$(BIN)/maturin develop --uv --group build --profile $* --locked
	@touch $@

# The first process of guests in virtual time. It is linked statically, since a guest has no libraries.
GUEST := python/sojourn/linux/init
STATIC := x86_64-unknown-linux-gnu
$(GUEST): $(ENGINE)
	@if [ "$$(uname -sm)" = "Linux x86_64" ]; then \
		RUSTFLAGS="$${RUSTFLAGS:-} -C target-feature=+crt-static" \
			cargo build --quiet --locked --package sojourn-guest --profile quick --target $(STATIC); \
		install -s -m 755 target/$(STATIC)/quick/sojourn-guest $@; \
	fi

# The engine for browsers, which is also a part of the package. If `wasm-opt` is installed, it makes the module
# slightly smaller.
WASM := build/wasm
WASM_TARGET := wasm32-unknown-unknown
BROWSERS := python/sojourn/wasm
.PHONY: wasm
wasm: $(BROWSERS)/sojourn.wasm ## build the engine for browsers (a WebAssembly module and its script) in build/wasm and the package

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

# The set-up continues if this build fails.
.PHONY: browsers
browsers:
	@$(MAKE) --no-print-directory wasm || echo "the engine for browsers, which 'sojourn play' needs, was not built; make wasm shows the reason"

.PHONY: setup
setup: $(VENV)/.environment $(VENV)/.engine-release $(GUEST) browsers ## set up the environment and the engine in .venv

.PHONY: dev
dev: $(VENV)/.environment $(VENV)/.engine-quick $(GUEST) ## the same with an engine that is quick to build after an edit, but runs slightly slower
	@test -e $(BROWSERS)/sojourn.wasm || $(MAKE) --no-print-directory browsers

# A wheel has the manual page, the licences of the crates, and their bill of materials, which maturin makes.
.PHONY: shipped
shipped: setup man
	@rm -f dist/sojourn-*.whl
	@install -D -m 644 docs/_build/man/sojourn.1 packaging/wheel/data/share/man/man1/sojourn.1
	@$(BIN)/python packaging/licences.py

.PHONY: wheel
wheel: shipped ## build a wheel for this machine in dist; its installation needs neither Rust nor a compiler
	@$(BIN)/maturin build --release --locked --quiet --out dist
	@ls dist/sojourn-*.whl

# The profile records runs of an engine that counts its branches. It is valid only for these sources and this compiler.
PROFILE := $(CURDIR)/target/profile/engine.profdata
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
$(PROFILE): $(VENV)/.environment $(ENGINE) bench/pgo/train.py
	@tool=$$(rustc --print sysroot)/lib/rustlib/$(HOST)/bin/llvm-profdata; \
	test -x $$tool || rustup --quiet component add llvm-tools || \
		{ .ci/debian-rust >/dev/null; tool=build/debian-rust/llvm-profdata; }; \
	rm -rf $(@D)/runs $(@D)/package; mkdir -p $(@D); \
	RUSTFLAGS="$${RUSTFLAGS:-} -Cprofile-generate=$(@D)/runs" \
		cargo build --release --locked --quiet --package sojourn-py --lib --target $(HOST) --target-dir $(@D); \
	cp -r python $(@D)/package; \
	cp $(@D)/$(HOST)/release/lib_core.so $(@D)/package/sojourn/_core.abi3.so; \
	PYTHONPATH=$(@D)/package $(BIN)/python bench/pgo/train.py; \
	$$tool merge --output $@ $(@D)/runs

ZIG := $(BIN)/uv tool run --quiet --from maturin==1.16.0 --with ziglang==0.17.1 maturin build --zig \
	--compatibility manylinux_2_28 --release --locked --quiet --out dist
ARM := aarch64-unknown-linux-gnu
.PHONY: wheels
wheels: shipped $(PROFILE) ## build the wheels of a release in dist: x86-64, optimised with a profile of runs, and aarch64
	@RUSTFLAGS="$${RUSTFLAGS:-} -Cprofile-use=$(PROFILE)" $(ZIG) --target x86_64-unknown-linux-gnu
	@if rustup --quiet target add $(ARM); then \
		mv $(GUEST) build/init; trap "mv build/init $(GUEST)" EXIT; \
		$(ZIG) --target $(ARM); \
	else \
		echo "left out: $(ARM), since rustup has no library for it"; \
	fi
	@ls dist/sojourn-*.whl

.PHONY: linux-wheel
linux-wheel: setup ## build a wheel in dist with a kernel for virtual time, for machines that cannot build one
	@$(BIN)/sojourn linux build
	@rm -f dist/sojourn_linux-*.whl
	@$(BIN)/python packaging/linux/wheel.py --out dist
	@ls dist/sojourn_linux-*.whl

# Checks

# All files by name, since `cargo fmt` does not find modules that a macro declares (crates/queue/src/lib.rs).
RUST = $(shell git ls-files --cached --others --exclude-standard 'crates/*.rs')

.PHONY: test
test: dev ## run all lints, the type checks, and the tests except the long ones; continues after failures
	@$(MAKE) --no-print-directory check PYTEST='-m "not slow" $(PYTEST)'

.PHONY: test-all
test-all: setup ## the same with all tests, including those with real programs and long studies
	@$(MAKE) --no-print-directory check

.PHONY: check
check:
	@status=0; \
	$(STAGE) "rustfmt" rustfmt --check $(RUST) || status=1; \
	$(STAGE) "clippy" cargo clippy --workspace --all-targets --locked --quiet -- -D warnings || status=1; \
	$(STAGE) "ruff" $(MAKE) --no-print-directory ruff || status=1; \
	$(STAGE) "codespell" $(BIN)/codespell $(PROSE) || status=1; \
	$(STAGE) "mypy" $(BIN)/mypy || status=1; \
	$(STAGE) "javascript" .ci/javascript || status=1; \
	$(if $(findstring not slow,$(PYTEST)),,$(STAGE) "crates" .ci/crates || status=1;) \
	$(STAGE) "cargo test" cargo test --workspace --locked --quiet --no-fail-fast || status=1; \
	$(STAGE) "pytest" $(BIN)/pytest -q -n auto $(PYTEST) || status=1; \
	exit $$status

.PHONY: lint
lint: $(VENV)/.environment ## check formats, lints, spelling and types
	rustfmt --check $(RUST)
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	@$(MAKE) --no-print-directory ruff
	$(BIN)/codespell $(PROSE)
	$(BIN)/mypy
	.ci/javascript

.PHONY: javascript
javascript: ## check types and lints of the JavaScript (needs npm)
	.ci/javascript

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
soak: setup ## run the property and replay tests with many more cases
	PROPTEST_CASES=20000 cargo test --workspace --locked --release
	$(BIN)/pytest -n auto --hypothesis-profile=soak
	$(BIN)/sojourn store fetch
	$(BIN)/sojourn paper edge-store --real

.PHONY: advisories
advisories: $(VENV)/.environment ## check the locked dependencies for known vulnerabilities (needs a network)
	@.ci/advisories

.PHONY: release-check
release-check: setup ## run the checks before a release that take too long for each change; commit its .ci/release-check.log
	@mkdir -p build; all=build/release-check.log; last=.ci/release-check.log; status=0; { status=0; \
	$(STAGE) "advisories" .ci/advisories || status=1; \
	SOJOURN_RELEASE=1 $(STAGE) "write path" $(BIN)/pytest -q -s tests/faults/test_write_path.py || status=1; \
	SOJOURN_RELEASE=1 $(STAGE) "false alarms of ab" $(BIN)/pytest -q -s tests/ab/test_ab.py -k themselves || status=1; \
	SOJOURN_RELEASE=1 $(STAGE) "judge" $(BIN)/pytest -q tests/judge -k planted || status=1; \
	SOJOURN_RELEASE=1 $(STAGE) "slow clients" $(BIN)/pytest -q -s tests/cli/test_udp_slow.py || status=1; \
	$(STAGE) "records" $(BIN)/python docs/studies/record.py --replay 60 || status=1; \
	$(STAGE) "Linux in virtual time" $(BIN)/python -m tests.agreement build/agreement --seeds 12 --minutes 240 || status=1; \
	$(STAGE) "release, up to publishing" $(BIN)/python packaging/release.py || status=1; \
	$(STAGE) "fresh systems" .ci/fresh || status=1; \
	exit $$status; } 2>&1 | tee $$all || status=1; \
	changed=$$(git diff --quiet HEAD || echo ", with changes"); \
	echo "$$(date -u '+%F %R') UTC, commit $$(git rev-parse HEAD)$$changed, $$(nproc) processors" >$$last; \
	grep -aoE '(== .*|FAILED|ERROR|measured:|[0-9]+ (passed|failed)).*|.*[Vv]ulnerabilit.*' $$all | cut -c1-200 | sed -n 1,200p >>$$last; \
	exit $$status

SECONDS := 10
.PHONY: fuzz
fuzz: dev ## run each coverage-guided fuzz target for SECONDS (default 10), or only TARGETS
	fuzz/run $(SECONDS) $(TARGETS)

.PHONY: crosscheck
crosscheck: setup ## compare dumbbells with ns-3 (needs libns3-dev)
	$(BIN)/python tests/crosscheck/run.py $(CROSSCHECK)

.PHONY: bench
bench: setup ## run all benchmarks
	@bench/run

.PHONY: peers
peers: setup ## record the speed in comparison with ns-3 (NS3=FOLDER:FOLDER) and htsim (HTSIM=PROGRAM)
	$(BIN)/python bench/peers/run.py --write

# Demonstrations and documentation

# The engine for browsers is built after the answer. An engine that exists already is used, of either profile.
ANY := $(or $(wildcard $(VENV)/.engine-release),$(VENV)/.engine-quick)
.PHONY: demo
demo: ## compare queues for a call behind an upload; writes figures and a report to demo-results
	@CARGO_INCREMENTAL=0 CARGO_TERM_QUIET=true $(MAKE) --no-print-directory -j2 $(VENV)/.report $(ANY)
	@$(BIN)/sojourn compare examples/home.toml --set flows.bulk.count=32 --out demo-results $(DEMO)
	@echo
	@$(BIN)/sojourn report demo-results
	@echo; echo "next: source .venv/bin/activate; sojourn new (asks about your link), or sojourn play (a page that simulates it)"
	@test -e $(BROWSERS)/sojourn.wasm || { \
		echo "building what sojourn play needs, in some minutes; Ctrl-C stops only this"; \
		$(MAKE) --no-print-directory browsers; }

SITE := docs/_build/site
.PHONY: site
site: setup ## build the documentation and the playground as a static site in docs/_build/site
	$(BIN)/sphinx-build -a -W --keep-going -q -d docs/_build/doctrees docs $(SITE)
	@test -e $(SITE)/playground || echo "the site has no playground and no interactive figures; make wasm shows the reason"
	@echo "written to $(SITE)/index.html: $$(du -sk $(SITE) | awk '{printf "%.0f MB", $$1 * 1.024 / 1000}')"

.PHONY: man
man: setup ## build the manual page of the commands, docs/_build/man/sojourn.1
	@$(BIN)/sphinx-build -W --keep-going -q -b man -c docs/_man docs/reference docs/_build/man
	@echo "written to docs/_build/man/sojourn.1; read it with man docs/_build/man/sojourn.1"

.PHONY: links
links: setup ## check the documentation's links to other sites (needs a network)
	$(BIN)/sphinx-build -b linkcheck -q docs docs/_build/links

.PHONY: figures
figures: setup ## simulate and draw the figures of the reference again
	$(BIN)/python docs/_figures $(FIGURES)

# Version of the library of charts that the package contains for reports.
PLOTLY := 4.1.1

.PHONY: plotly
plotly: ## download the library of charts and its licence from npm, in the version set in this file
	@folder=$$(mktemp -d); cd "$$folder"; \
	npm pack --silent plotly.js-basic-dist-min@$(PLOTLY) >/dev/null; \
	tar -xzf *.tgz; \
	gzip -9 -n -c package/plotly-basic.min.js >$(CURDIR)/python/sojourn/show/html/plotly/plotly-basic.min.js.gz; \
	install -m 644 package/LICENSE $(CURDIR)/python/sojourn/show/html/plotly/LICENSE; \
	rm -r "$$folder"

.PHONY: records
records: setup ## run the studies at the lengths of the papers; prints the CPU-hours, and continues after a stop
	$(BIN)/python docs/studies/record.py --full --linux $(STUDIES)

.PHONY: agreement
agreement: setup ## compare drawn cells with Linux in virtual time (needs kernels; up to a day, and continues after a stop)
	$(BIN)/python -m tests.agreement build/agreement --record

.PHONY: clean
clean: ## remove all files that make has created
	rm -rf .venv target build dist .ci/js/node_modules docs/_build demo-results .pytest_cache .mypy_cache .ruff_cache \
		.hypothesis
	rm -f python/sojourn/_core*.so $(GUEST) $(BROWSERS)/sojourn.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
