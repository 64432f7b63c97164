"""Layers over the guest's drives, each taken down when its `with` ends."""

import contextlib

from here import Trouble


@contextlib.contextmanager
def luks(guest, device, *options):
    """dm-crypt with LUKS2. Options such as `--allow-discards`."""
    guest.sh(f"printf key | cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 "
             f"--pbkdf-force-iterations 1000 {device} -\n"
             f"printf key | cryptsetup open {device} luks --key-file - {' '.join(options)}")
    with _torn_down(guest, f"cryptsetup close luks; wipefs -aq {device}"):
        yield "/dev/mapper/luks"


@contextlib.contextmanager
def linear(guest, *devices):
    """A volume of LVM over some drives."""
    guest.sh(f"lvm vgcreate -qq vg {' '.join(devices)}; lvm lvcreate -qq -Wn -n lv -l 100%FREE vg")
    with _torn_down(guest, f"lvm vgremove -qq -f vg; lvm pvremove -qq -f {' '.join(devices)}"):
        yield "/dev/mapper/vg-lv"


@contextlib.contextmanager
def thin(guest, device, *, passdown):
    """A thin volume as large as its drive; its pool has blocks of 64 KiB."""
    discards = "passdown" if passdown else "nopassdown"
    guest.sh(f"lvm vgcreate -qq vg {device}\n"
             f"lvm lvcreate -qq -Zn --type thin-pool -c 64k --discards {discards} -n pool -l 90%FREE vg\n"
             f"lvm lvcreate -qq -Wn -n lv -V 1800M --thinpool pool vg 2>/dev/null")
    with _torn_down(guest, f"lvm vgremove -qq -f vg; lvm pvremove -qq -f {device}"):
        yield "/dev/mapper/vg-lv"


@contextlib.contextmanager
def md(guest, level, *devices, parity_discards=None):
    """An array. `parity_discards` sets devices_handle_discard_safely before it is assembled."""
    if parity_discards is not None:
        guest.sh("modprobe raid456; echo " + ("Y" if parity_discards else "N") +
                 " >/sys/module/raid456/parameters/devices_handle_discard_safely")
    bitmap = "" if level == "raid0" else "--bitmap=none"
    guest.sh(f"mdadm --create /dev/md0 --quiet --run --assume-clean --metadata=1.2 {bitmap} "
             f"--level={level} --raid-devices={len(devices)} {' '.join(devices)}")
    with _torn_down(guest, f"mdadm --quiet --stop /dev/md0; mdadm --quiet --zero-superblock {' '.join(devices)}"):
        yield "/dev/md0"


@contextlib.contextmanager
def bcache(guest, backing, cache):
    """A drive cached by another."""
    guest.sh(f"modprobe bcache; make-bcache --wipe-bcache -B {backing} -C {cache}\n"
             f"for one in {backing} {cache}; do echo $one >/sys/fs/bcache/register || true; done\n"
             "for i in $(seq 100); do [ -e /dev/bcache0 ] && break; sleep 0.1; done")
    stop = ("echo 1 >/sys/block/bcache0/bcache/detach; sleep 1; echo 1 >/sys/block/bcache0/bcache/stop\n"
            "for one in /sys/fs/bcache/*-*/stop; do echo 1 >$one; done; sleep 1\n"
            f"wipefs -aq {backing}; wipefs -aq {cache}")
    with _torn_down(guest, stop):
        yield "/dev/bcache0"


@contextlib.contextmanager
def mounted(guest, device, kind="ext4", options="discard", size=""):
    """A new file system, mounted on /mnt. mkfs discards nothing, so that only the test does.
    `size`: of an ext4 or XFS that doesn't take the whole device, e.g. `320m`."""
    make = {
        "ext4": "mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 -J size=16",
        "xfs": "mkfs.xfs -q -f -K",
        "btrfs": "mkfs.btrfs -q -f -K",
        "f2fs": "mkfs.f2fs -q -f -t 0",
        "exfat": "mkfs.exfat",
    }[kind]
    if kind == "ext4":
        options += ",noinit_itable"
    elif size:
        size = f"-d size={size}"
    guest.sh(f"{make} {device} {size} >/dev/null; mount -t {kind} -o {options} {device} /mnt; sync")
    with _torn_down(guest, f"umount /mnt; wipefs -aq {device}"):
        yield "/mnt"


@contextlib.contextmanager
def _torn_down(guest, script):
    """Takes down in any case; an error of its own counts only if the test had none."""
    try:
        yield
    except BaseException:
        guest.run(script)
        raise
    done = guest.run("set -e\n" + script)
    if done.code:
        raise Trouble(f"cannot take down: {script}\n{done.out}{done.err}")


@contextlib.contextmanager
def nothing(device):
    """A drive as it is."""
    yield device
