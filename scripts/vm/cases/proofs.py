"""`inspect --prove` beside the host's own count of the bytes that left its image files."""

import contextlib

import stacks
from cases import case, inspected, same
from cases.layers import disk

PROBE = 64 << 20


def proven(guest, mount, images, expected, *, copies=1.0, stops_at=None):
    """Proves on a mount; `images` are those on which the host counts."""
    guest.sh("sync")
    before = guest.used(*images)
    proof = inspected(guest, f"--prove {mount}")["proof"]
    guest.sh("sync")
    kept = guest.used(*images) - before
    what = " ".join([mount_kind(guest, mount), *images])
    assert proof["result"] == expected, f"{what}: {proof}"
    # The host still holds the probe unless its blocks were punched; the rest is the file system's.
    share = 1 - kept / (PROBE * copies)
    arrives = expected in ("arrives", "counted")
    same(what, f"--prove {expected}", arrives, "host's images", share > 0.9)
    assert arrives or share < 0.1, f"{what}: {expected}, and the host lost {share:.0%}"
    if stops_at:
        same(what, "stops at", proof["stops_at"], "dmsetup, mdadm", stops_at)
    return proof


def mount_kind(guest, mount):
    return guest.sh(f"awk '$2 == \"{mount}\" {{print $3}}' /proc/self/mounts").split()[0]


def on_drive(guest, name, expected, kind="ext4", options="discard"):
    with stacks.mounted(guest, disk(guest, name), kind, options) as mount:
        return proven(guest, mount, [name], expected)


@case(short=True)
def a_host_that_acts_on_trim_and_one_that_ignores_it(guest):
    on_drive(guest, "scsi", "arrives")
    on_drive(guest, "scsi-ignore", "ignored")


@case(short=True)
def trim_through_two_paths_is_counted_once(guest):
    proof = on_drive(guest, "paths", "arrives")
    drive = proof["layers"][-1]
    assert 0.98 < drive["share"] < 1.1, proof


@case
def every_drive(guest):
    for name, expected in (("spaces", "arrives"), ("space4k", "arrives"), ("sata", "arrives"), ("virtio", "arrives"),
                           ("uas", "arrives"), ("usb", "not-sent"), ("sata-no-trim", "not-sent"),
                           ("virtio-off", "not-sent")):
        on_drive(guest, name, expected)


@case
def every_file_system(guest):
    for kind, options in (("xfs", "discard"), ("btrfs", "discard"), ("f2fs", "discard"),
                          ("ext4", "nodiscard"), ("xfs", "nodiscard")):
        on_drive(guest, "spaces", "arrives", kind, options)
    # exFAT doesn't report where a file lies.
    on_drive(guest, "spaces", "counted", "exfat")


@case
def through_dm_crypt(guest):
    device = disk(guest, "virtio")
    with stacks.luks(guest, device, "--allow-discards") as top, stacks.mounted(guest, top) as mount:
        proven(guest, mount, ["virtio"], "arrives")
    with stacks.luks(guest, device) as top, stacks.mounted(guest, top) as mount:
        proven(guest, mount, ["virtio"], "not-sent")


@case
def through_lvm(guest):
    with stacks.linear(guest, disk(guest, "spaces"), disk(guest, "virtio")) as top, \
            stacks.mounted(guest, top) as mount:
        proven(guest, mount, ["spaces", "virtio"], "arrives")


@case
def through_thin_pools(guest):
    for passdown in (True, False):
        with stacks.thin(guest, disk(guest, "spaces"), passdown=passdown) as top, \
                stacks.mounted(guest, top) as mount:
            proven(guest, mount, ["spaces"], "arrives" if passdown else "stops")


@case
def through_md(guest):
    members = ["spaces", "virtio", "scsi"]
    for level, count, copies, safe in (("raid0", 2, 1, None), ("raid1", 2, 2, None), ("raid5", 3, 1.5, False),
                                       ("raid5", 3, 1.5, True)):
        names = members[:count]
        with stacks.md(guest, level, *(disk(guest, name) for name in names), parity_discards=safe) as top, \
                stacks.mounted(guest, top) as mount:
            proven(guest, mount, names, "not-sent" if safe is False else "arrives", copies=copies)


@case
def through_bcache(guest):
    with contextlib.ExitStack() as stack:
        top = stack.enter_context(stacks.bcache(guest, disk(guest, "scsi"), disk(guest, "spaces")))
        mount = stack.enter_context(stacks.mounted(guest, top))
        proven(guest, mount, ["scsi"], "arrives")
