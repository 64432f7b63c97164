# `make` alone lists the targets.

CARGO ?= cargo
# What `make run` tests, and how; these sizes take about a minute on most disks, and a quarter of
# the free space at most.
PATH_TO_TEST ?= .
RUN_SIZE = $(shell df -Pk $(PATH_TO_TEST) | awk 'NR == 2 { k = int($$4 / 4); print (k < 8388608 ? k : 8388608) "k" }')
RUN_OPTIONS ?= --size $(RUN_SIZE) --settle 20s --baseline 8s --recovery 8s

.DEFAULT_GOAL := help
.PHONY: help run build check test soak bench man clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 8

run: ## Install what is missing, build, and test whether deleting stalls the current directory's disk
	@scripts/setup run
	$(CARGO) build --release --locked -p trimbench
	@$(CARGO) run --quiet --release --locked -p trimbench -- run $(RUN_OPTIONS) $(PATH_TO_TEST)

build: ## Build the release binary: target/release/trimbench
	$(CARGO) build --release --locked -p trimbench

check: ## Format, lints, documentation, floors, licences and advisories of the dependencies
	$(CARGO) fmt --all --check
	scripts/floors
	scripts/licences
	scripts/advisories
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

test: ## Install what the tests need, then check and run every test
	scripts/setup test
	$(MAKE) --no-print-directory check
	$(CARGO) test --workspace --locked --no-fail-fast

soak: ## The long counts (kills, races, repeats) that `make test` only samples
	scripts/setup test
	TRIMBENCH_SOAK=1 $(CARGO) test --release --workspace --locked --no-fail-fast

bench: ## CPU per I/O of the engine, beside a bare loop and fio; figures in target/bench/engine.json
	scripts/setup test
	$(CARGO) bench --locked -p trimbench-load --bench engine

man: ## Man pages and shell completions, from the argument definitions, into target/man and target/completions
	$(CARGO) run --quiet --locked -p trimbench --example generate -- target

clean: ## Remove everything that was built
	$(CARGO) clean
