"""Drives, file systems and files. All of them go away when the bench ends, whichever way it ends."""

import contextlib
import os
import pathlib
import re
import tempfile
import time
import tomllib

from .programs import ROOT, TRIMBENCH, Failed, call, trimbench

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
DISCARD = {"ext4": "discard", "xfs": "discard", "btrfs": "discard=sync"}


class Drive:
    """A simulated drive of `trimbench lab`; with `fs` it is mounted at `mount`."""

    def __init__(self, profile, name="bench", size="4G", slower=1, fs=None, mount=None, options="discard", settings=()):
        self.name, self.mount = name, mount
        self.words = ["--profile", profile, "--size", size, "--slower", slower, *(word for one in settings for word in ("--set", one))]
        if fs:
            self.words += ["--fs", fs, "--mount", mount, "-o", options]

    def up(self):
        """Makes it; what an earlier one with the same name held is gone."""
        self.device = pathlib.Path(trimbench("lab", "up", self.name, *self.words).split()[0])
        return self

    def down(self):
        """Removes it. A process that lists mounts just then may have it for a moment."""
        for left in range(9, -1, -1):
            try:
                return self.lab("down", "--force")
            except Failed:
                if not left:
                    raise
                time.sleep(1)

    def lab(self, command, *words):
        return trimbench("lab", command, self.name, *words)

    def foreground(self, *words):
        """The command that runs another as this drive's foreground."""
        return [TRIMBENCH, "lab", "exec", self.name, "--", *words]

    def __enter__(self):
        return self.up()

    def __exit__(self, *_):
        self.down()


@contextlib.contextmanager
def folder(path):
    """A folder that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="trimbench-bench-", dir=pathlib.Path(path).resolve()) as found:
        pathlib.Path(found).chmod(0o755)
        yield pathlib.Path(found)


@contextlib.contextmanager
def loop(path, size, mkfs, options, direct="off"):
    """A file system on a loop device over a file in a folder of its own; its mount, and the file."""
    with folder(path) as home:
        image, mount = home / "image", home / "mnt"
        mount.mkdir()
        image.touch()
        os.truncate(image, size)
        device = call("losetup", "--find", "--show", f"--direct-io={direct}", image).strip()
        try:
            call(*mkfs, device)
            call("mount", "-o", options, device, mount)
            try:
                yield mount, image
            finally:
                call("umount", "--lazy", mount)
        finally:
            call("losetup", "-d", device)


def figure(profile, kind, key, default=0.0):
    """A figure of a profile's card; times in seconds, also those for each MiB."""
    value = tomllib.loads((ROOT / "crates/ssd/profiles" / f"{profile}.toml").read_text())[kind].get(key, {}).get("value", default)
    if not isinstance(value, str):
        return float(value)
    amount, unit = re.match(r"([\d.]+)(ns|us|ms|s)", value).groups()
    return float(amount) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]


def size_of(text):
    """Bytes of `8G`."""
    return int(float(text[:-1]) * (1 << "_KMGT".index(text[-1].upper()) * 10)) if text[-1].isalpha() else int(text)


def sync(path):
    call("sync", "-f", path)


def fill(path, size):
    """Writes random data, so that nothing below stores them in less, and keeps none of them in memory."""
    block = os.urandom(16 * MIB)
    with open(path, "wb", buffering=0) as file:
        while (left := size - file.tell()) > 0:
            file.write(block[:left])
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


def reserve(path, size):
    """Allocates and writes nothing. ext4 and btrfs discard that all the same, so it takes no memory on a simulated drive."""
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        os.fsync(file.fileno())
    return path


def extents(path, spacer, count, size, gap):
    """Allocates extents that don't touch each other: between two of them lies one of another file."""
    with open(path, "ab") as file, open(spacer, "ab") as between:
        for i in range(count):
            os.posix_fallocate(file.fileno(), i * size, size)
            os.posix_fallocate(between.fileno(), i * gap, gap)
    # The space that was reserved and isn't needed is discarded now.
    sync(path)


def tree(path, files, data, each=1000, every=1):
    """Makes a tree of files, so many in a directory; every n-th holds the data."""
    path.mkdir()
    for number in range(0, files, each):
        directory = path / f"{number:07}"
        directory.mkdir()
        opened = os.open(directory, os.O_RDONLY)
        for one in range(number, min(number + each, files)):
            file = os.open(f"file-{one}", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=opened)
            if one % every == 0:
                os.write(file, data)
            os.close(file)
        os.close(opened)
