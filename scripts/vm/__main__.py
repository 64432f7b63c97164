"""Runs trimbench in a virtual machine, on drives and layers that this machine lacks.

    scripts/vm/run [--short] [--list] [--shell] [--program FILE] [NAME…]

Each case compares what trimbench says with what other programs say of the same device, or with
the bytes that left the host's image files.
"""

import argparse
import importlib
import pathlib
import signal
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import cases
import initramfs
import kernel
from disks import DISKS
from here import TARGET, Gone, Trouble
from machine import Machine

GROUPS = ["drives", "layers", "proofs", "freeing", "tuning", "striped", "polling"]


def main():
    parser = argparse.ArgumentParser(prog="scripts/vm/run", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="only cases whose names contain one of these")
    parser.add_argument("--short", action="store_true", help="only the cases of `make test`")
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("--table", action="store_true", help="print all comparisons at the end")
    parser.add_argument("--shell", action="store_true", help="read commands for the guest from standard input")
    parser.add_argument("--program", type=pathlib.Path, default=TARGET / "debug/trimbench", help="the binary")
    asked = parser.parse_args()
    # So that the guest ends and its images go, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for group in GROUPS:
        importlib.import_module(f"cases.{group}")
    chosen = cases.chosen(asked.names, asked.short)
    if asked.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if not asked.program.exists():
        sys.exit(f"vm: {asked.program} is missing; run cargo build -p trimbench")
    began = time.monotonic()
    archive = initramfs.build(kernel.get(), asked.program)
    with Machine(kernel.get(), archive, DISKS) as guest:
        print(f"vm: up after {time.monotonic() - began:.1f} s", flush=True)
        if asked.shell:
            return shell(guest)
        failed = run(guest, chosen)
    if asked.table:
        print(cases.table())
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def run(guest, chosen):
    """Runs the cases; those that failed, or all if the guest is gone."""
    failed = []
    for case in chosen:
        began = time.monotonic()
        try:
            case.check(guest)
            word = "ok"
        except Exception as error:  # noqa: BLE001 - the next case runs all the same
            failed.append(case.name)
            word = "FAILED"
            if not isinstance(error, (AssertionError, Trouble)):
                traceback.print_exc()
            print(f"{case.name}: {error}", flush=True)
            if isinstance(error, Gone):
                return chosen
        print(f"vm {case.name} ... {word} ({time.monotonic() - began:.1f} s)", flush=True)
    return failed


def shell(guest):
    for line in sys.stdin:
        done = guest.run(line, 600)
        print(done.out + done.err + f"[{done.code}]", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Trouble as error:
        sys.exit(f"vm: {error}")
