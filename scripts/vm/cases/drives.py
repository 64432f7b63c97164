"""What each drive says of itself, beside what other programs read from it."""

import json
import re

import stacks
from cases import case, inspected, same

#: The answer of `inspect --all`, by name: it is asked once.
DRIVES = {}


def drive_of(guest, name):
    """The kernel's name of a drive, and trimbench's words about it."""
    device = guest.devices[name]
    if not DRIVES:
        DRIVES.update((drive["name"], drive) for drive in inspected(guest, "--all")["drives"])
    assert device in DRIVES, f"inspect --all lacks {name}, {device}"
    return device, DRIVES[device]


def number(text, name):
    """The number after `name:` in the output of sg_vpd or sg_readcap."""
    found = re.search(rf"{re.escape(name)}\s*[:=]\s*(\w+)", text)
    return int(found[1], 0) if found else None


@case(short=True)
def limits_are_those_of_lsblk(guest):
    tree = guest.json("lsblk -D -b --json")["blockdevices"]
    theirs = {device["name"]: device for device in tree}
    for name, device in guest.devices.items():
        _, drive = drive_of(guest, name)
        same(name, "max", drive["limits"]["max_bytes"], "lsblk -D", theirs[device]["disc-max"])
        same(name, "granularity", drive["limits"]["granularity_bytes"], "lsblk -D", theirs[device]["disc-gran"])


@case(short=True)
def nvme_pages_are_those_of_nvme_cli(guest):
    for name in ("paths", "spaces", "space4k"):
        device, drive = drive_of(guest, name)
        ours = drive["nvme"]
        namespace = guest.json(f"nvme id-ns /dev/{device} -o json")
        # A drive with two paths is one device, and each of its controllers says the same.
        controller = guest.sh(f"""cd /sys/class/block/{device}/device
            for one in . nvme*; do [ -e $one/address ] && basename "$(readlink -f $one)" && break; done""").strip()
        identity = guest.json(f"nvme id-ctrl /dev/{controller} -o json")
        commands = guest.json(f"nvme nvm-id-ctrl /dev/{controller} -o json")
        blocks = 1 << namespace["lbafs"][namespace["flbas"] & 15]["ds"]

        def alike(fact, mine, theirs, peer):
            same(name, fact, mine, f"nvme {peer}", theirs)  # noqa: B023

        alike("firmware", drive["firmware"], identity["fr"].strip(), "id-ctrl")
        alike("Deallocate", ours["deallocate"], bool(identity["oncs"] & 4), "id-ctrl")
        alike("Write Zeroes", ours["write_zeroes"], bool(identity["oncs"] & 8), "id-ctrl")
        alike("DMRL", ours["max_ranges"], commands["dmrl"], "nvm-id-ctrl")
        alike("DMRSL", ours["max_range_blocks"], commands["dmrsl"], "nvm-id-ctrl")
        alike("DMSL", ours["max_blocks"], commands["dmsl"], "nvm-id-ctrl")
        alike("LBA size", ours["lba_bytes"], blocks, "id-ns")
        words = {0: "anything", 1: "zeros", 2: "ones"}
        alike("DLFEAT", ours["reads_as"], words[namespace["dlfeat"] & 7], "id-ns")
        alike("zeroes deallocate", ours["zeroes_deallocate"], bool(namespace["dlfeat"] & 8), "id-ns")
        alike("NPDG", ours["preferred_granularity_bytes"], (namespace["npdg"] + 1) * blocks, "id-ns")
        alike("NPDA", ours["preferred_alignment_bytes"], (namespace["npda"] + 1) * blocks, "id-ns")
        same(name, "limit by DMRSL", ours["linux_max_bytes"], "lsblk -D", drive["limits"]["max_hw_bytes"])
        life = guest.json(f"nvme smart-log /dev/{controller} -o json")
        alike("percentage used", drive["health"]["percentage_used"], int(life["percent_used"]), "smart-log")
        alike("media errors", drive["health"]["media_errors"], int(life["media_errors"]), "smart-log")
        # What was written since it was asked counts, too.
        written = drive["health"]["host_written_bytes"]
        assert 0 <= written <= int(life["data_units_written"]) * 512_000, (written, life)


@case(short=True)
def a_run_has_what_the_drive_counted(guest):
    device, drive = drive_of(guest, "spaces")
    life = drive["health"]["host_written_bytes"]
    with stacks.mounted(guest, f"/dev/{device}") as mount:
        options = ("--size 64M --set foreground.size=32M --settle 0s --baseline 1s --recovery 1s --rate 50 "
                   "--json /tmp/verdict")
        text = guest.run(f"trimbench run {options} {mount} 2>&1", 300).out
        ran = guest.json("cat /tmp/verdict")["target"]["drives"][0]
        theirs = int(guest.json(f"nvme smart-log /dev/{device} -o json")["data_units_written"]) * 512_000
    counted = ran["written"]["host_written_bytes"]
    assert ran["name"] == device and counted >= 96 << 20, ran
    # mkfs wrote before the run, and the mount after it.
    assert life <= ran["life"]["host_written_bytes"] and ran["life"]["host_written_bytes"] + counted <= theirs, (ran, theirs)
    assert ran["written"]["flash_written_bytes"] is None, ran
    assert "over its life" in text and "by its own count" in text, text
    same("spaces", "run counts the host's writes", True, "nvme smart-log", True)


@case(short=True)
def ata_pages_are_those_of_hdparm(guest):
    for name in ("sata", "sata-no-trim"):
        device, drive = drive_of(guest, name)
        # `hdparm -I` leaves TRIM out where a drive names an old standard, as QEMU's does.
        text = guest.sh(f"hdparm -I /dev/{device} 2>&1")
        dump = guest.sh(f"hdparm --Istdout /dev/{device} 2>&1")
        words = [int(word, 16) for word in re.findall(r"\b[0-9a-f]{4}\b", dump)]
        assert len(words) == 256, dump

        def alike(fact, mine, theirs, peer="hdparm --Istdout"):
            same(name, fact, mine, peer, theirs)  # noqa: B023

        alike("model", drive["ata"]["model"], re.search(r"Model Number:\s*(.*\S)", text)[1], "hdparm -I")
        alike("firmware", drive["ata"]["firmware"], re.search(r"Firmware Revision:\s*(.*\S)", text)[1], "hdparm -I")
        alike("TRIM (word 169)", drive["ata"]["trim"], bool(words[169] & 1))
        alike("payload blocks (word 105)", drive["ata"]["max_payload_blocks"], words[105])
        promise = {0x4020: "zeros", 0x4000: "deterministic"}.get(words[69] & 0x4020, "anything")
        alike("reads after TRIM (word 69)", drive["ata"]["reads_as"], promise)
        queued = guest.sh(f"cat /sys/class/ata_device/dev$(readlink /sys/block/{device} | sed 's|.*/ata\\([0-9]*\\)/.*|\\1|').0/trim")
        same(name, "trim", drive["limits"]["ata_trim"], "libata", queued.strip())
        assert drive["transport"] == "ata", drive


@case(short=True)
def scsi_pages_are_those_of_sg3_utils(guest):
    # `uas` and `usb` are the same drive behind two kinds of bridge.
    for name in ("scsi", "scsi-ignore", "uas", "usb"):
        device, drive = drive_of(guest, name)
        assert drive["transport"] == ("usb" if name in ("uas", "usb") else "virtio"), drive
        compare_scsi(guest, name, device, drive["scsi"])


def compare_scsi(guest, name, device, ours):
    """Compares READ CAPACITY(16), and the pages B0h and B2h where the drive has them."""
    capacity = guest.sh(f"sg_readcap -16 /dev/{device}")
    limits = guest.run(f"sg_vpd -p bl /dev/{device}").out
    provisioning = guest.run(f"sg_vpd -p lbpv /dev/{device}").out

    def flag(text, word):
        found = number(text, word)
        return None if found is None else bool(found)

    same(name, "LBPME", ours["lbpme"], "sg_readcap -16", flag(capacity, "lbpme"))
    for fact, key, word in (
        ("max UNMAP blocks", "max_unmap_blocks", "Maximum unmap LBA count"),
        ("max descriptors", "max_unmap_descriptors", "Maximum unmap block descriptor count"),
        ("granularity", "granularity_blocks", "Optimal unmap granularity"),
    ):
        same(name, fact, ours[key], "sg_vpd -p bl", number(limits, word))
    aligned = "Unmap granularity alignment valid: true" in limits
    alignment = number(limits, "Unmap granularity alignment") if aligned else None
    same(name, "alignment", ours["alignment_blocks"], "sg_vpd -p bl", alignment)
    for fact, key in (("LBPU", "unmap"), ("LBPWS", "write_same_16"), ("LBPWS10", "write_same_10"), ("LBPRZ", "lbprz")):
        same(name, fact, ours[key], "sg_vpd -p lbpv", flag(provisioning, f"({fact})"))


@case(short=True)
def scsi_debug_has_the_limits_that_it_was_given(guest):
    # Small limits, an alignment, and a promise of zeros.
    guest.sh("modprobe scsi_debug dev_size_mb=64 lbpu=1 lbpws=0 lbpws10=0 lbprz=1 unmap_max_blocks=2048 "
             "unmap_max_desc=4 unmap_granularity=16 unmap_alignment=8 sector_size=512 delay=0")
    try:
        device = guest.sh("for i in $(seq 100); do ls /sys/bus/pseudo/drivers/scsi_debug/adapter0/"
                          "host*/target*/*/block 2>/dev/null && break; sleep 0.1; done").strip()
        drive = inspected(guest, f"/dev/{device}")["drives"][0]
        compare_scsi(guest, "scsi_debug", device, drive["scsi"])
        given = {"max_unmap_blocks": 2048, "max_unmap_descriptors": 4, "granularity_blocks": 16,
                 "alignment_blocks": 8, "lbprz": True, "unmap": True, "write_same_16": False}
        for key, value in given.items():
            same("scsi_debug", key, drive["scsi"][key], "modprobe scsi_debug", value)
        same("scsi_debug", "max", drive["limits"]["max_bytes"], "modprobe scsi_debug", 2048 * 512)
    finally:
        guest.sh("for i in $(seq 50); do rmmod scsi_debug 2>/dev/null && break; sleep 0.1; done")


@case(short=True)
def two_paths_are_one_drive(guest):
    device, drive = drive_of(guest, "paths")
    paths = guest.sh(f"ls -d /sys/class/block/nvme*c*n* | wc -l")
    assert int(paths) == 2, paths
    subsystem = next(one for host in guest.json("nvme list-subsys -o json")
                     for one in host.get("Subsystems", [host]) if one.get("NQN", "").endswith("two"))
    same("paths", "paths", int(paths), "nvme list-subsys", len(subsystem["Paths"]))
    assert drive["transport"] == "nvme", json.dumps(drive)
