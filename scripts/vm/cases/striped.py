"""`suite --raid0` by md: its array beside lsblk and the kernel's files, and what a kill leaves of it."""

import json
import time

from cases import case, same
from cases.layers import disk

DRIVES = ["spaces", "virtio"]
#: A killed suite leaves a file system on the drives.
AGAIN = "--force"


def command(guest, *options):
    devices = " ".join(disk(guest, name) for name in DRIVES)
    return (f"trimbench suite --raid0 {devices} --destroy-data --cells ext4/nodiscard/discard,xfs/nodiscard/discard "
            f"--steps create,rm,fstrim --set repeats=1 --set files=4 --set size=32M --output /tmp/s.jsonl {' '.join(options)}")


def arrays(guest):
    return guest.sh("cd /sys/block; ls -d md* 2>/dev/null || true").split()


def until_created(guest, *options):
    """Starts a suite, and waits for its files on the first file system."""
    guest.sh(f"rm -f /tmp/s.jsonl; {command(guest, *options)} >/tmp/s.log 2>&1 & echo $! >/tmp/pid\ndisown")
    guest.sh("for i in $(seq 600); do grep -q '\"step\":\"create\"' /tmp/s.jsonl 2>/dev/null && exit; sleep 0.1; done\n"
             "cat /tmp/s.log; exit 1", 90)


def until_gone(guest):
    """Waits until neither array nor mount is there."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if not arrays(guest) and "/run/trimbench/suite" not in guest.sh("cat /proc/mounts"):
            return
        time.sleep(0.2)
    raise AssertionError(guest.sh("cat /proc/mdstat /proc/mounts; ls /run/trimbench/suite; cat /tmp/s.log"))


@case
def suite_stripes_by_md_and_leaves_no_array(guest):
    until_created(guest)
    (array,) = arrays(guest)
    tree = guest.json(f"lsblk --json --inverse /dev/{array}")["blockdevices"][0]
    below = sorted(device["name"] for device in tree["children"])
    same("md raid0", "suite's members", sorted(guest.devices[name] for name in DRIVES), "lsblk", below)
    files = guest.sh(f"cd /sys/block/{array}/md; cat level chunk_size metadata_version").split()
    same("md raid0", "suite's array", ["raid0", str(512 << 10), "none"], "sysfs", files)
    guest.sh("kill -9 $(cat /tmp/pid)")
    until_gone(guest)
    until_created(guest, AGAIN)
    guest.sh("kill $(cat /tmp/pid)")
    until_gone(guest)
    # A stopped suite leaves the drives blank.
    guest.sh(command(guest, "--dry-run"))
    # The watchers, too: the next command takes away what is left.
    until_created(guest)
    guest.sh("kill -9 $(cat /tmp/pid) $(grep -l trimbench-guard /proc/[0-9]*/comm | cut -d/ -f3)")
    time.sleep(1)
    assert arrays(guest), guest.sh("cat /proc/mdstat")
    guest.sh(command(guest, AGAIN, "--dry-run"))
    until_gone(guest)
    guest.sh(command(guest, AGAIN, ">&2; trimbench suite report /tmp/s.jsonl --format json >/tmp/s.json"), 300)
    until_gone(guest)
    told = guest.json("cat /tmp/s.json")
    assert told["head"]["drive"]["striping"] == "md", told["head"]["drive"]
    assert [cell["failures"] for cell in told["cells"]] == [[], []], told["cells"]
    trims = [line for line in map(json.loads, guest.sh("cat /tmp/s.jsonl").splitlines()) if line.get("step") == "fstrim"]
    assert len(trims) == 2, trims
    for trim in trims:
        # A single drive has 2 GiB.
        assert trim["outcome"]["done"]["discard_bytes"] > 2.5 * (1 << 30), trim
    # Blank again: no signature has to be named.
    guest.sh(command(guest, "--dry-run"))
