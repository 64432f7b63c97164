"""Each layer beside what dmsetup, mdadm and lsblk say of it, and the findings about it."""

import stacks
from cases import case, inspected, same


def disk(guest, name):
    return f"/dev/{guest.devices[name]}"


def looked_at(guest, top, findings, *, absent=(), device=None):
    """Inspects a device or mount; its layers by name, and the whole."""
    found = inspected(guest, device or top)
    ids = [one["id"] for one in found["findings"]]
    for wanted in findings:
        assert wanted in ids, f"{top}: no finding {wanted} among {ids}"
    for unwanted in absent:
        assert unwanted not in ids, f"{top}: finding {unwanted}"
    layers = {layer["name"]: layer for layer in found["stacks"][0]["layers"]}
    compare_tree(guest, layers)
    return layers, found


def compare_tree(guest, layers):
    """The limits and the tree of lsblk."""
    tree = guest.json("lsblk -D -b --json")["blockdevices"]
    known = {}

    def walk(devices, above):
        for device in devices:
            known.setdefault(device["name"], (device, set()))[1].update(above)
            walk(device.get("children", []), [device["name"]])

    walk(tree, [])
    for name, layer in layers.items():
        # lsblk knows devices of the mapper by their names.
        theirs = known.get(layer["label"] or name) or known[name]
        kind = layer["kind"] if isinstance(layer["kind"], str) else "md " + layer["kind"]["md"]
        same(kind, "max", layer["limits"]["max_bytes"], "lsblk -D", theirs[0]["disc-max"])
        same(kind, "granularity", layer["limits"]["granularity_bytes"], "lsblk -D", theirs[0]["disc-gran"])
        below = sorted(layers[one]["label"] or one for one in layer["below"])
        same(kind, "below", below, "lsblk", sorted(theirs[1]))


def target(guest, name):
    """A device's targets with their parameters, from dmsetup."""
    return guest.sh(f"dmsetup table {name}").split()


def only(layers, kind):
    found = [layer for layer in layers.values() if layer["kind"] == kind]
    assert len(found) == 1, f"{kind}: {[layer['kind'] for layer in layers.values()]}"
    return found[0]


@case(short=True)
def dm_crypt_blocks_discards_unless_it_is_allowed_to_pass_them(guest):
    for allowed in (False, True):
        options = ["--allow-discards"] if allowed else []
        with stacks.luks(guest, disk(guest, "virtio"), *options) as top:
            findings = [] if allowed else ["luks-blocks"]
            layers, found = looked_at(guest, top, findings, absent=["luks-blocks"] if allowed else [])
            crypt = only(layers, "crypt")
            table = target(guest, "luks")
            same("dm-crypt", "kind", crypt["kind"], "dmsetup table", table[2])
            same("dm-crypt", "passes", crypt["effect"] == "passes", "dmsetup table", "allow_discards" in table)
            status = guest.sh("cryptsetup status luks")
            same("dm-crypt", "passes", crypt["effect"] == "passes", "cryptsetup status", "discards" in status)
            same("dm-crypt", "open", found["stacks"][0]["open"], "dmsetup table", allowed)


@case(short=True)
def luks_over_lvm_stops_at_luks(guest):
    with stacks.linear(guest, disk(guest, "spaces")) as volume, stacks.luks(guest, volume) as top, \
            stacks.mounted(guest, top) as mount:
        layers, found = looked_at(guest, mount, ["luks-blocks", "option-inert"])
        stack = found["stacks"][0]
        same("LUKS over LVM", "stops at", stack["stops_at"], "dmsetup info", name_of(guest, "luks"))
        same("LVM linear", "kind", only(layers, "linear")["kind"], "dmsetup table", target(guest, "vg-lv")[2])
        print(guest.sh(f"trimbench inspect {mount}"), end="")


def name_of(guest, mapped):
    """The kernel's name of a device of the mapper."""
    return guest.sh(f"dmsetup info -c --noheadings -o blkdevname {mapped}").strip()


@case(short=True)
def a_thin_pool_passes_discards_down_if_its_table_says_so(guest):
    for passdown in (True, False):
        with stacks.thin(guest, disk(guest, "space4k"), passdown=passdown) as top:
            findings = ["thin-removed-lv"] if passdown else ["thin-no-passdown"]
            layers, _ = looked_at(guest, top, findings, absent=["thin-no-passdown"] if passdown else [])
            table = target(guest, "vg-pool-tpool")
            pool = only(layers, "thin-pool")
            same("thin pool", "kind", pool["kind"], "dmsetup table", table[2])
            same("thin pool", "passes down", pool["effect"] != "stops", "dmsetup table",
                 "no_discard_passdown" not in table)
            lvm = guest.sh("lvm lvs --noheadings -o discards vg/pool").strip()
            same("thin pool", "passes down", pool["effect"] != "stops", "lvs -o discards", lvm == "passdown")
            volume = only(layers, "thin")
            same("thin volume", "granularity", volume["limits"]["granularity_bytes"], "dmsetup table",
                 int(table[5]) * 512)


@case(short=True)
def arrays_of_md(guest):
    members = [disk(guest, name) for name in ("spaces", "virtio", "scsi")]
    for level, count, safe in (("raid0", 2, None), ("raid1", 2, None), ("raid5", 3, False), ("raid5", 3, True)):
        with stacks.md(guest, level, *members[:count], parity_discards=safe) as top:
            findings = {None: [], False: ["raid5-off"], True: ["raid5-splits"]}[safe]
            layers, found = looked_at(guest, top, findings)
            array = only(layers, {"md": level})
            detail = guest.sh("mdadm --detail --export /dev/md0")
            words = dict(line.split("=", 1) for line in detail.splitlines() if "=" in line)
            same(f"md {level}", "level", array["kind"]["md"], "mdadm --detail", words["MD_LEVEL"])
            same(f"md {level}", "members", len(array["below"]), "mdadm --detail", int(words["MD_DEVICES"]))
            if safe is not None:
                parameter = guest.sh("cat /sys/module/raid456/parameters/devices_handle_discard_safely").strip()
                same(f"md {level}", "passes", array["limits"]["max_bytes"] > 0, "module parameter", parameter == "Y")
                same(f"md {level}", "open", found["stacks"][0]["open"], "module parameter", safe)


@case
def bcache_over_two_drives(guest):
    with stacks.bcache(guest, disk(guest, "scsi"), disk(guest, "spaces")) as top:
        layers, _ = looked_at(guest, top, [])
        found = only(layers, "bcache")
        below = guest.sh("ls /sys/block/bcache0/slaves").split()
        same("bcache", "below", sorted(found["below"]), "/sys/block/bcache0/slaves", sorted(below))
