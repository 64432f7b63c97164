"""`run`, `rm` and `fstrim` over layers: their counts beside what the host's images lost."""

import contextlib
import json
import time

import stacks
from cases import case, same
from cases.layers import disk

MIB = 1 << 20
SIZE = 192 * MIB


def near(what, ours, theirs, by=0.02):
    assert abs(ours - theirs) <= by * theirs, f"{what}: {ours / MIB:.1f} MiB, and {theirs / MIB:.1f} MiB"


@contextlib.contextmanager
def stack(guest, name):
    """A layer by its name: the top, the images below, and the copies of each byte."""
    layers = {
        "drive": lambda: (stacks.nothing(disk(guest, "spaces")), ["spaces"], 1),
        "two paths": lambda: (stacks.nothing(disk(guest, "paths")), ["paths"], 1),
        "dm-crypt": lambda: (stacks.luks(guest, disk(guest, "virtio"), "--allow-discards"), ["virtio"], 1),
        "LVM linear": lambda: (stacks.linear(guest, disk(guest, "spaces"), disk(guest, "virtio")),
                               ["spaces", "virtio"], 1),
        "dm-thin": lambda: (stacks.thin(guest, disk(guest, "spaces"), passdown=True), ["spaces"], 1),
        "md raid0": lambda: (stacks.md(guest, "raid0", disk(guest, "spaces"), disk(guest, "virtio")),
                             ["spaces", "virtio"], 1),
        "md raid1": lambda: (stacks.md(guest, "raid1", disk(guest, "spaces"), disk(guest, "virtio")),
                             ["spaces", "virtio"], 2),
    }
    made, images, copies = layers[name]()
    with made as top:
        yield top, images, copies


ALL = ["drive", "two paths", "dm-crypt", "LVM linear", "dm-thin", "md raid0", "md raid1"]


def filled(guest, mount, size=SIZE):
    """A file of this size in the mount, on its drives."""
    # A piece in memory, for making text is slow where the processor is emulated.
    guest.sh(f"""[ -e /tmp/piece ] || yes trimbench | dd bs=1M count=16 iflag=fullblock of=/tmp/piece
        for i in $(seq {size // (16 * MIB)}); do cat /tmp/piece; done >{mount}/old; sync""")
    return f"{mount}/old"


def settled(guest, images):
    """Bytes that the images occupy once no discards have come for a second."""
    guest.sh("sync")
    last, still = guest.used(*images), 0
    while still < 10:
        time.sleep(0.1)
        now = guest.used(*images)
        last, still = now, still + 1 if now == last else 0
    return last


def told(guest, command, seconds=300):
    """What a command of trimbench writes with `--json` about the one file system that it freed."""
    done = guest.json(f"trimbench {command} --quiet --json /tmp/told.json >&2; cat /tmp/told.json", seconds)
    assert len(done["file_systems"]) == 1, done
    found = done["file_systems"][0]
    return found.get("trim", found)


def removed(guest, name, kind="xfs", options="discard"):
    """`rm` of a file over a layer: both counts are those of the host. XFS discards just what it
    frees; ext4 goes on to the next block in use."""
    with stack(guest, name) as (top, images, copies), stacks.mounted(guest, top, kind, options) as mount:
        file = filled(guest, mount)
        before = guest.used(*images)
        done = told(guest, f"rm {file}")
        lost = before - settled(guest, images)
        compare(f"{kind} on {name}", "rm", done, lost, copies)


def compare(what, command, measured, lost, copies):
    near(f"{what}, host's images by bytes freed", lost, SIZE * copies)
    near(f"{what}, {command}'s count by the host's", measured["discarded_bytes"] * copies, lost)
    same(what, f"{command} discards ±2 %", True, "host's images", True)


@case(short=True)
def rm_on_a_mirror_counts_each_byte_once(guest):
    removed(guest, "md raid1")


@case(short=True)
def rm_on_a_drive_with_two_paths(guest):
    removed(guest, "two paths")


@case
def rm_over_each_layer(guest):
    for name in ALL:
        removed(guest, name)


@case
def rm_on_each_file_system(guest):
    # f2fs discards when it is idle: `rm` counts none that has not come.
    with stack(guest, "drive") as (top, images, _), stacks.mounted(guest, top, "f2fs") as mount:
        file = filled(guest, mount)
        before = guest.used(*images)
        done = told(guest, f"rm {file}")
        near("f2fs, freed by written", done["freed_bytes"], SIZE)
        lost = before - settled(guest, images)
        assert abs(done["discarded_bytes"] - lost) <= 0.02 * SIZE, (done["discarded_bytes"], lost)
        same("f2fs on drive", "rm's discards so far", True, "host's images", True)
    # btrfs discards what it frees twice, and blocks of its tree.
    with stack(guest, "drive") as (top, images, _), stacks.mounted(guest, top, "btrfs") as mount:
        file = filled(guest, mount)
        before = guest.used(*images)
        done = told(guest, f"rm {file}")
        near("btrfs, host's images by bytes freed", before - settled(guest, images), SIZE)
        near("btrfs, discards by bytes freed", done["discarded_bytes"] - done["discarded_again_bytes"], SIZE, 0.1)


@case
def fstrim_over_each_layer(guest):
    for name in ALL:
        with stack(guest, name) as (top, images, copies), \
                stacks.mounted(guest, top, "ext4", "nodiscard", "256M") as mount:
            guest.sh(f"rm {filled(guest, mount)}; sync")
            before = guest.used(*images)
            blocks, each = guest.sh(f"stat -f -c '%f %S' {mount}").split()
            done = told(guest, f"fstrim {mount}")
            lost = before - settled(guest, images)
            near(f"{name}, host's images by bytes freed", lost, SIZE * copies)
            # A thin volume passes down only what it has mapped: what was written.
            free = SIZE if name == "dm-thin" else int(blocks) * int(each)
            near(f"{name}, fstrim's count by free space", done["discarded_bytes"], free, 0.05)
            same(name, "fstrim discards ±2 %", True, "host's images", True)


@case
def fstrim_of_xfs_discards_nothing_twice(guest):
    """Whether this kernel cuts free extents (Linux 6.10) or trims each whole that a window touches."""
    with stack(guest, "drive") as (top, _, _), stacks.mounted(guest, top, "xfs", "nodiscard") as mount:
        guest.sh(f"rm {filled(guest, mount)}; sync")
        blocks, each = guest.sh(f"stat -f -c '%f %S' {mount}").split()
        done = told(guest, f"fstrim {mount}")
        near("XFS, fstrim's count by free space", done["discarded_bytes"], int(blocks) * int(each), 0.05)
        same("xfs on drive", "fstrim discards ±5 %", True, "statfs", True)


@case
def run_over_each_layer(guest):
    for name in ALL:
        with stack(guest, name) as (top, images, copies), stacks.mounted(guest, top, "xfs") as mount:
            before = guest.used(*images)
            options = (f"--size {SIZE} --set foreground.size=32M --settle 0s --baseline 2s --recovery 1s "
                       "--rate 50 --quiet --json -")
            with guest.peak(*images) as most:
                done = guest.run(f"trimbench run {options} {mount}", 300)
            assert done.code in (0, 1), done.err
            verdict = json.loads(done.out)
            assert verdict["deletion"]["bytes"] == SIZE, verdict["deletion"]
            near(f"{name}, run's count by bytes deleted", verdict["discard"]["bytes"], SIZE)
            lost = most[0] - settled(guest, images)
            near(f"{name}, host's images by bytes written", lost, (SIZE + 32 * MIB) * copies, 0.04)
            same(name, "run discards ±2 %", True, "host's images", True)
            assert before <= most[0]
