# `make` alone lists the targets.

CARGO ?= cargo
# What `make run` tests, and how; these sizes take some minutes on most disks, and a quarter of
# the free space at most, and the 1 GiB that is read.
PATH_TO_TEST ?= .
RUN_SIZE = $(shell df -Pk $(PATH_TO_TEST) | awk 'NR == 2 { k = int($$4 / 4); print (k < 8388608 ? k : 8388608) "k" }')
RUN_OPTIONS ?= --size $(RUN_SIZE) --settle 20s --baseline 8s --recovery 8s
# How `build` builds, and where `install` puts it. TARGET is Rust's name of another machine.
LOCKED ?= --locked
PROFILE ?= release
TARGET ?=
CRATES ?= -p trimbench -p trimbench-capi
OBJCOPY ?= objcopy
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
BUILT = target/$(if $(TARGET),$(TARGET)/)$(PROFILE)
OLDEST_RUST = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

.DEFAULT_GOAL := help
.PHONY: help run build dist test-dist dist-check check lint doc quick test test-vm soak bench bench-extents bench-rm bench-names bench-small bench-db bench-claim lab man clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 17

# Without the optimization of the whole program, which takes two thirds of a release build.
run: ## Install what is missing, build, and test whether deleting stalls the current directory's disk (some minutes)
	@scripts/about-run '$(PATH_TO_TEST)' '$(RUN_SIZE)'
	@scripts/setup run
	@CARGO='$(CARGO)' scripts/build-shown build --profile soak --locked -p trimbench
	@target/soak/trimbench run $(RUN_OPTIONS) $(PATH_TO_TEST)

build: ## Build the program and the library for C, into target/release
	$(CARGO) build --profile $(PROFILE) $(LOCKED) $(if $(TARGET),--target $(TARGET)) $(CRATES)

.PHONY: install install-library test-pure release-check
install: ## Install the program that `make build` built, its man pages (`make man`), units and data (DESTDIR, PREFIX)
	install -D -m 755 $(BUILT)/trimbench $(DESTDIR)$(PREFIX)/bin/trimbench
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	for section in 1 5; do install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$$section target/man/*.$$section; done
	install -D -m 644 target/completions/trimbench.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/trimbench
	install -D -m 644 target/completions/_trimbench $(DESTDIR)$(ZSHDIR)/_trimbench
	install -D -m 644 target/completions/trimbench.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/trimbench.fish
	for unit in crates/trimbench/systemd/*; do \
		sed 's#=/usr/bin/#=$(PREFIX)/bin/#' "$$unit" | install -m 644 /dev/stdin "$(DESTDIR)$(PREFIX)/lib/systemd/system/$${unit##*/}"; done
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/trimbench/profiles crates/ssd/profiles/*
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/trimbench/scenarios crates/bench/scenarios/*
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/trimbench LICENSE-MIT LICENSE-APACHE README.md

install-library: ## Install the library for C: header, shared and static library, pkg-config file, man page (LIBDIR)
	install -D -m 755 $(BUILT)/libtrimbench_throttle.so $(DESTDIR)$(LIBDIR)/libtrimbench_throttle.so.1
	ln -sf libtrimbench_throttle.so.1 $(DESTDIR)$(LIBDIR)/libtrimbench_throttle.so
	@# Without the compiler's own form of the code beside the code: three quarters of its size.
	$(OBJCOPY) --enable-deterministic-archives --strip-unneeded --remove-section=.llvmbc --remove-section=.llvmcmd \
		$(BUILT)/libtrimbench_throttle.a $(BUILT)/stripped.a
	install -D -m 644 $(BUILT)/stripped.a $(DESTDIR)$(LIBDIR)/libtrimbench_throttle.a
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	sed 's#@VERSION@#$(VERSION)#; s#@LIBDIR@#$(LIBDIR)#; s#@PREFIX@#$(PREFIX)#' deploy/packages/trimbench-throttle.pc \
		| install -m 644 /dev/stdin $(DESTDIR)$(LIBDIR)/pkgconfig/trimbench-throttle.pc
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include crates/capi/include/trimbench_throttle.h
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man3 crates/capi/man/trimbench_throttle.3

test-pure: ## The tests that need no root, device, network or tool: what packages run
	$(CARGO) test $(LOCKED) -p trimbench-record -p trimbench-judge -p trimbench-ssd -p trimbench-pace -p trimbench-formats

release-check: ## The checklist of CONTRIBUTING.md, "Releasing": versions, changelog, recipes, two builds compared, everything installed (an hour)
	scripts/release-check

dist: ## Source and vendor archives, packages, static programs, checksums and an SBOM, into target/dist (docs/install.md)
	scripts/setup dist
	scripts/dist

test-dist: ## Install, use, upgrade and remove what `make dist` built, in fresh roots; build the source in roots without a network (root, a quarter of an hour)
	scripts/setup dist
	scripts/test-dist

dist-check: ## Build what users install in two folders, and compare byte by byte (half an hour; DIST_ONLY='source sbom': seconds)
	scripts/setup dist
	scripts/dist-check $(if $(DIST_ONLY),--only $(DIST_ONLY))

check: lint doc ## Format, lints, documentation, floors, prose, figures, licences and advisories of the dependencies

lint:
	$(CARGO) fmt --all --check
	scripts/floors
	scripts/prose
	scripts/figures
	scripts/licences
	scripts/release-check --only version data
	scripts/advisories
	scripts/test-notes --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@if rustup run $(OLDEST_RUST) rustc --version; then rustup run $(OLDEST_RUST) cargo check --workspace --locked; \
		else echo 'SKIPPED: Rust $(OLDEST_RUST), the oldest that builds, is not here'; fi

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
	scripts/setup soak
	TRIMBENCH_SOAK=1 $(CARGO) test --profile soak --workspace --locked --no-fail-fast

bench: ## CPU per I/O of the engine beside fio, a simulated drive beside nbdkit's memory, and `inspect --all` on a large machine; figures in target/bench
	scripts/setup test
	$(CARGO) bench --locked -p trimbench-load --bench engine
	$(CARGO) bench --locked -p trimbench-lab --bench drive
	$(CARGO) bench --locked -p trimbench-diagnose --bench all

bench-extents: ## Queues that put discards in order, beside each other: what a text of 2008 compared
	$(CARGO) bench --locked -p trimbench-ssd --bench queues

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

bench-small: ## Trees of small files removed by `trimbench rm -r` beside `rm -r` on eight file systems, idle (an hour; BENCH_SMALL='--repeats 1': a fifth)
	scripts/setup test
	$(CARGO) build --release --locked -p trimbench
	bench/small $(BENCH_SMALL)

bench-db: ## What PostgreSQL, MariaDB and RocksDB lose while a file is deleted beside them on PATH_TO_TEST: rm, a chunk and a pause, `trimbench rm`; checkpoints off and on (45 minutes; needs them, sysbench, root)
	$(CARGO) build --release --locked -p trimbench
	bench/db --path $(PATH_TO_TEST) $(BENCH_DB)
	bench/servers --path $(PATH_TO_TEST)

bench-claim: ## How far the loss that `rm` and `fstrim` report is from fio's, on PATH_TO_TEST and on two simulated drives (20 minutes)
	scripts/setup test
	$(CARGO) build --release --locked -p trimbench
	bench/claim --path $(PATH_TO_TEST) $(BENCH_CLAIM)

lab: ## Drives of `trimbench lab` beside the ones they stand for: stalls by queue depth and file system, syncs, an array, fitted cards
	scripts/setup test
	$(CARGO) bench --locked -p trimbench --bench lab

man: ## Man pages and shell completions, from the argument definitions, into target/man and target/completions
	$(CARGO) run --quiet --profile $(PROFILE) $(LOCKED) -p trimbench --example generate -- target

clean: ## Remove everything that was built
	$(CARGO) clean
