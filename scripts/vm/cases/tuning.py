"""`tune` on a drive whose discards cost an operation each: its plan, its counts, and the settings it leaves."""

import contextlib
import time

import stacks
from cases import case, same
from cases.layers import disk

MIB = 1 << 20
SIZE = 192
#: The limit that the drive has before, and the one that is tried beside it.
BEFORE, OTHER = MIB, 16 * MIB


def limit(guest, name, bytes_=None):
    """The drive's `discard_max_bytes`; sets it first if `bytes_` is given."""
    file = f"/sys/block/{guest.devices[name]}/queue/discard_max_bytes"
    if bytes_ is not None:
        guest.sh(f"echo {bytes_} >{file}")
    return int(guest.sh(f"cat {file}"))


def option(guest):
    """The mount's options."""
    return guest.sh("grep ' /mnt ' /proc/self/mounts").split()[3]


@contextlib.contextmanager
def tuned(guest, name, before=BEFORE):
    """A drive with an ext4 and this limit; afterwards it has its own again."""
    own = limit(guest, name)
    with stacks.mounted(guest, disk(guest, name)) as mount:
        limit(guest, name, before)
        try:
            yield mount
        finally:
            limit(guest, name, own)


def command(mount, *options):
    return f"trimbench tune {mount} --set size={SIZE}M --set policies=online --set limits=1M,16M {' '.join(options)}"


@case
def tune_sets_the_limit_that_costs_fewer_discards(guest):
    with tuned(guest, "slow") as mount:
        options = option(guest)
        told = guest.json(command(mount, "--set repeats=2 --for 10m --apply "
                                  "--json /tmp/tune.json >/tmp/told; cat /tmp/tune.json"), 600)
        for point in told["points"]:
            least = SIZE * MIB // point["limit_bytes"]
            assert least <= point["discards"]["median"] <= 1.3 * least + 3, point
            # ext4 goes on to the next block in use, so a run may discard what the one before left free.
            assert 1 <= point["discard_bytes"]["median"] / (SIZE * MIB) <= 1.3, point
        # Sixteen times as many discards, each an operation: no noise hides that.
        assert told["advice"]["set"] == {"limit_bytes": OTHER, "policy": "online"}, told["advice"]
        same("scsi, 150 operations/s", "tune's limit", OTHER, "sysfs", limit(guest, "slow"))
        assert option(guest) == options, option(guest)
        rule = guest.sh("cat /tmp/told; rm /tmp/told")
        assert f'KERNEL=="{guest.devices["slow"]}", ATTR{{queue/discard_max_bytes}}="{OTHER}"' in rule, rule


@case(short=True)
def a_killed_tune_puts_the_limit_back(guest):
    with tuned(guest, "slow", OTHER) as mount:
        options = option(guest)
        guest.sh(f"{command(mount, '--set repeats=1')} >/tmp/tune.log 2>&1 & echo $! >/tmp/pid\n"
                 "disown")
        file = f"/sys/block/{guest.devices['slow']}/queue/discard_max_bytes"
        # The first trial has the present limit or the other one; the second the other.
        guest.sh(f"for i in $(seq 1200); do [ $(cat {file}) = {BEFORE} ] && break; sleep 0.1; done\n"
                 f"[ $(cat {file}) = {BEFORE} ] || {{ cat /tmp/tune.log; exit 1; }}\nkill -9 $(cat /tmp/pid)", 150)
        end = time.monotonic() + 60
        while limit(guest, "slow") != OTHER and time.monotonic() < end:
            time.sleep(0.2)
        same("scsi, 150 operations/s", "limit after kill -9 of tune", OTHER, "sysfs", limit(guest, "slow"))
        assert option(guest) == options, option(guest)
        # Its files go with the next run, as docs/files.md has it.
        guest.sh(f"trimbench run --dry-run {mount} >/dev/null; rm -rf {mount}/.trimbench-*; sync")
