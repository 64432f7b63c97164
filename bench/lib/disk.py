"""What a disk has done, by its statistics in /sys."""

import os
import pathlib
import time

from .programs import call

SECTOR = 512


class Disk:
    """The disk of a path, or a block device."""

    def __init__(self, path):
        path = pathlib.Path(path)
        if not path.is_block_device():
            # The number of a file on btrfs is no disk's.
            path = pathlib.Path(call("findmnt", "-no", "SOURCE", "-T", path).strip().split("[")[0])
        number = path.stat().st_rdev
        self.stat = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat")

    def fields(self):
        return [int(field) for field in self.stat.read_text().split()]

    def moved(self):
        """Bytes written, and bytes read."""
        fields = self.fields()
        return fields[6] * SECTOR, fields[2] * SECTOR

    def discarded(self):
        """Bytes discarded."""
        return self.fields()[13] * SECTOR

    def silence(self, quiet_s=1.0, until=0, limit_s=60):
        """Waits until no discard was done for so long, and `discarded` has come to `until`.

        Returns when the last discard was seen, None if none was. It gives up after `limit_s`.
        """
        began = changed = time.time()
        before, last = self.fields()[11], None
        while (now := time.time()) - began < limit_s:
            if (count := self.fields()[11]) != before:
                before, last, changed = count, now, now
            elif now - changed > quiet_s and self.discarded() >= until:
                break
            time.sleep(0.002)
        return last
