# `make` alone lists the targets.

CARGO ?= cargo
# What `make run` tests, and how; these sizes take some minutes on most disks, and a quarter of
# the free space at most, and the 1 GiB that is read.
PATH_TO_TEST ?= .
RUN_SIZE = $(shell df -Pk $(PATH_TO_TEST) | awk 'NR == 2 { k = int($$4 / 4); print (k < 8388608 ? k : 8388608) "k" }')
RUN_OPTIONS ?= --size $(RUN_SIZE) --settle 20s --baseline 8s --recovery 8s

.DEFAULT_GOAL := help
.PHONY: help run build dist test-dist dist-check check lint doc quick test test-vm soak bench bench-extents bench-rm bench-names bench-small bench-db bench-claim lab man clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 13

run: ## Install what is missing, build, and test whether deleting stalls the current directory's disk
	@scripts/about-run '$(PATH_TO_TEST)' '$(RUN_SIZE)'
	@scripts/setup run
	$(CARGO) build --release --locked -p trimbench
	@$(CARGO) run --quiet --release --locked -p trimbench -- run $(RUN_OPTIONS) $(PATH_TO_TEST)

build: ## Build the release binary, target/release/trimbench, and the library for C
	$(CARGO) build --release --locked -p trimbench -p trimbench-capi

dist: ## Packages, static programs, checksums and an SBOM, into target/dist (docs/install.md)
	scripts/setup dist
	scripts/dist

test-dist: ## Install, use, upgrade and remove what `make dist` built, in fresh roots (root, three minutes)
	scripts/setup dist
	scripts/test-dist

dist-check: ## Build what users install in two folders, and compare byte by byte (half an hour; DIST_ONLY='deb rpm sbom': a third)
	scripts/setup dist
	scripts/dist-check $(if $(DIST_ONLY),--only $(DIST_ONLY))

check: lint doc ## Format, lints, documentation, floors, prose, licences and advisories of the dependencies

lint:
	$(CARGO) fmt --all --check
	scripts/floors
	scripts/prose
	scripts/licences
	scripts/advisories
	scripts/test-notes --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

quick: ## Every unit test and all tests of pure crates: no root, nothing but Rust, a minute
	@scripts/quick

test: ## Install what the tests need, then check and run every test
	scripts/setup check
	@# What only tests need is fetched while the processors are at the checks.
	scripts/setup test & setup=$$!; $(MAKE) --no-print-directory lint; checked=$$?; \
		wait $$setup && exit $$checked
	CARGO='$(CARGO)' scripts/test-all --workspace --locked --beside 'scripts/vm/run --short' \
		--beside '$(MAKE) --no-print-directory doc' --beside 'python3 -m unittest discover -s bench -t bench -p tests.py'

test-vm: ## trimbench in a virtual machine beside nvme-cli, hdparm, sg3-utils, LVM, mdadm and the host's images (ten minutes; VM=NAME: some cases)
	scripts/setup test
	$(CARGO) build --locked -p trimbench
	scripts/vm/run --table $(VM)

soak: ## The long counts (kills, races, repeats) that `make test` only samples
	scripts/setup test
	TRIMBENCH_SOAK=1 $(CARGO) test --profile soak --workspace --locked --no-fail-fast

bench: ## CPU per I/O of the engine beside fio, a simulated drive beside nbdkit's memory, and `inspect --all` on a large machine; figures in target/bench
	scripts/setup test
	$(CARGO) bench --locked -p trimbench-load --bench engine
	$(CARGO) bench --locked -p trimbench-lab --bench drive
	$(CARGO) bench --locked -p trimbench-diagnose --bench all

bench-extents: ## Sets of free ranges beside each other: time and memory; and queues that put discards in order (two minutes)
	$(CARGO) bench --locked -p trimbench-ssd --bench sets

bench-rm: ## What readers lose beside `trimbench rm` and `fstrim` at goals from 5 to 50 %, beside rm, a chunk with a sleep, and util-linux's fstrim, on PATH_TO_TEST and on simulated drives; with a limit for the latency; with two deleters, a drive that slows down, readers that come and go (50 minutes, nothing else running; BENCH_RM="--only '*/ext4/*' '*/xfs/*' '*/btrfs/*'": every drive and file system, three hours)
	scripts/setup test
	$(CARGO) build --release --locked -p trimbench
	bench/rm --path $(PATH_TO_TEST)
	bench/rm-lab $(BENCH_RM)
	bench/rm-latency
	bench/rm-luck
	bench/fstrim --path $(PATH_TO_TEST) $(BENCH_RM)

bench-names: ## A million small files removed by `trimbench rm -r` beside `rm -r` where nothing is paced: on tmpfs, and on ext4 in memory and over a file in /var/tmp (half an hour; BENCH_NAMES='--repeats 1': a fifth)
	scripts/setup test
	$(CARGO) build --release --locked -p trimbench
	bench/small --only '*/spread' '*/flat' $(BENCH_NAMES)

bench-small: ## Trees of small files removed by `trimbench rm -r` beside `rm -r` on eight file systems, idle; and what fio loses meanwhile on simulated drives, at 10 and 30 % (an hour; BENCH_SMALL='--repeats 1': a fifth)
	scripts/setup test
	$(CARGO) build --release --locked -p trimbench
	-bench/small $(BENCH_SMALL)
	bench/small-load $(BENCH_SMALL)

bench-db: ## What PostgreSQL loses while 8 GiB are deleted beside it on PATH_TO_TEST: rm, a chunk and a pause, `trimbench rm`; checkpoints off and on (half an hour; needs PostgreSQL, root)
	$(CARGO) build --release --locked -p trimbench
	bench/db --path $(PATH_TO_TEST) $(BENCH_DB)

bench-claim: ## How far the loss that `rm` and `fstrim` report is from fio's, on PATH_TO_TEST and on two simulated drives (20 minutes)
	scripts/setup test
	$(CARGO) build --release --locked -p trimbench
	bench/claim --path $(PATH_TO_TEST) $(BENCH_CLAIM)

lab: ## Drives of `trimbench lab` beside the ones they stand for: stalls by queue depth and file system, syncs, an array, fitted cards
	scripts/setup test
	$(CARGO) bench --locked -p trimbench --bench lab

man: ## Man pages and shell completions, from the argument definitions, into target/man and target/completions
	$(CARGO) run --quiet --locked -p trimbench --example generate -- target

clean: ## Remove everything that was built
	$(CARGO) clean
