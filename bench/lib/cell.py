"""A simulated drive with a file system and a size of extents: the cells of rm-lab, rm-latency, rm-luck and fstrim.

Drives are slowed and have a read latency of their own, so that this machine never limits the reads. Where it can be, the
file's space is allocated and never written, which ext4 and btrfs discard all the same: gigabytes take no memory and no time.
"""

import shlex

from .judge import Machine, judge, rows
from .places import MIB, Drive, extents

# Profile; how many times slower, and how many extents cost readers half a second: with 128 MiB, with 1 MiB.
DRIVES = {
    "870-evo": ("samsung-870-evo-2tb", (8, 48), (16, 64)),
    "t500": ("crucial-t500-2tb", (8, 40), (8, 64)),
    "980-pro": ("samsung-980-pro-1tb", (10, 200), (10, 400)),
    "vertex-2": ("ocz-vertex-2", (1, 24), (1, 24)),
}
PHI = {"980-pro": 0.2}
# XFS doesn't discard what was never written: there the file is smaller and the drive slower by so much.
WRITTEN = {"870-evo": 1.2, "t500": 1.25, "980-pro": 6, "vertex-2": 1}
# A commit of btrfs discards blocks of its trees, which takes as long as any small discard. Where one is so slow that a few of
# them fill an interval, no pace can hold the interval. So drives are so many times less slow there; with 1 MiB, where a commit
# has as many of these as of the file's, not slow at all. A drive that serves reads beside its discards isn't slowed down by
# these; thousands of them in a second would be more than this machine's processors can do.
TREES = 4
# How long the drives' reads take: far from what this machine can do at depth 8, and from a discard.
READ_US = 1200
WRITES = ["read.parallelism=32", "write.latency=20us", "write.per_mib=0ns/MiB", "flush.latency=20us"]
MOUNTS = {"ext4": ("ext4", "discard"), "xfs": ("xfs", "discard"), "btrfs": ("btrfs", "discard=sync"), "btrfs-async": ("btrfs", "discard=async")}
# btrfs waits two minutes before it discards with discard=async, and then has a pace of its own.
ASYNC_DRAIN = "400s"
SIZES = {"128M": 128 * MIB, "1M": MIB}
ALL = [f"{drive}/{fs}/{size}" for size in SIZES for drive in DRIVES for fs in MOUNTS]


class Cell:
    """`with Cell(bench, "t500/ext4/128M", times) as cell`: mounted, with what costs readers so many half seconds to delete."""

    def __init__(self, bench, name, times=1.0):
        self.bench, self.name = bench, name
        self.mount = self.judge_at = bench.home / "cell"
        self.drive, self.fs, self.size = name.split("/")
        self.profile, large, small = DRIVES[self.drive]
        self.slower, extents_ = large if self.size == "128M" else small
        self.extent, self.extents = SIZES[self.size], round(extents_ * times)
        self.phi = PHI.get(self.drive, 1.0)
        if self.fs == "btrfs":
            faster = self.slower if self.size == "1M" and self.drive not in PHI else min(TREES, self.slower)
            self.slower, self.extents = self.slower / faster, self.extents * faster
        # Where discards come minutes later, the judge has to know how many bytes it waits for.
        self.own = self.fs in ("xfs", "btrfs-async") or self.size == "1M"
        if self.own and self.size == "128M":
            self.slower *= WRITTEN[self.drive]
            self.extents = round(self.extents / WRITTEN[self.drive])
        self.machine = Machine()

    def __enter__(self):
        self.up(self.extents * (self.extent + MIB) * 2 + (4 << 30), *MOUNTS[self.fs])
        return self

    def up(self, size, fs, options):
        latency = min(READ_US, 800 * self.slower) / self.slower
        self.lab = Drive(self.profile, size=int(size), slower=self.slower, fs=fs, mount=self.mount, options=options,
                         settings=[f"read.latency={latency}us", *WRITES]).up()

    def __exit__(self, *_):
        self.lab.down()

    def file(self, gap=64 << 10):
        """The file to delete, beside the judge's own small file."""
        extents(self.mount / "victim", self.mount / "spacer", self.extents, self.extent, gap)

    def undisturbed(self, case, options=""):
        return self.machine.undisturbed(lambda: self.run(case, options))

    def run(self, case, options):
        """One run of the judge: of plain rm, of no deletion, or of `trimbench rm` with these options."""
        if case == "none":
            return self.judged(case)
        if self.fs.startswith("btrfs") and self.own:
            # On free space in pieces a second file's extents would be far shorter; and what the last run freed may be
            # discarded in this one.
            self.lab.down()
            self.__enter__()
        deleter = "rm" if case == "plain" else f'"$TRIMBENCH" rm --quiet {options}'
        victim, size = "", ["--size", self.extents * self.extent, "--set", f"extent-size={self.size}"]
        if not self.own:
            self.file()
            victim, size = self.mount / "victim", ["--size", "1M"]
        script = f'{deleter} {victim} "$0"'
        if case == "plain" and self.fs == "btrfs":
            # Up to a minute later it discards block groups that have become empty once more, all at once. That is brought
            # forward, or rm would have half of its cost. Its cleaner takes several commits to begin.
            script += f"; for i in 1 2 3 4 5 6 7 8; do btrfs filesystem sync {self.mount}; sleep 0.2; done"
        return self.judged(case, script, *size)

    foreground = ("--depth", "8")

    def judged(self, case, script=None, *size):
        """The judge's run of a script that ends with the deletion of `$0`; without one, of no deletion."""
        how = ["--delete", "none", "--baseline", "9s"]
        if script:
            how = [*size, "--baseline", "3s", "--recovery", "1s", "--delete", f"sh -c {shlex.quote(script)} {{}}"]
        late = self.fs == "btrfs-async" and script
        run = judge(self.bench.note(f"{self.name}-{case}.jsonl"), self.judge_at, "--settle", "1s", "--set", "foreground.size=64M", *how,
                    *(["--set", f"drain-limit={ASYNC_DRAIN}"] if late else []), foreground=self.foreground)
        return run.beside_discards() if late else run


def measure_goals(bench, cell, goals, more=""):
    """Adds the rows of a cell: without a goal, without a deletion, and at each goal in percent."""
    with cell:
        cases = bench.turns(["plain", "none", *map(str, goals)], cell.name)
        runs = [(case, cell.undisturbed(case, f"--slowdown {case}% {more}")) for case in cases]
    for row in rows(cell.name, runs, cell.phi, cell.drive == "980-pro"):
        bench.add(**row)
