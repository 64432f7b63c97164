//! Advice on machines as people reported them: layers, hosts, bridges, trimmers, copies.

use super::*;
use crate::inspect::prove::Counted;
use storage::stack::Effect;

#[test]
fn the_layer_to_mend_is_the_lowest_that_takes_no_discards() {
    // LUKS that allows them, over a RAID6 that does not.
    let machine = Machine::new("1 0 253:0 / / rw - ext4 /dev/dm-0 rw,discard\n");
    machine.device("virtual/block/md0", "9:0", Some(0));
    set(
        &machine,
        "virtual/block/md0",
        "queue/discard_max_hw_bytes",
        "0",
    );
    set(&machine, "virtual/block/md0", "md/level", "raid6");
    for (index, name) in ["nvme0", "nvme1"].iter().enumerate() {
        let place = format!("pci/nvme/{name}/{name}n1");
        machine.device(&place, &format!("259:{index}"), Some(GIB));
        set(&machine, &place, "queue/discard_max_hw_bytes", "1073741824");
        machine.slave("virtual/block/md0", &place);
    }
    dm(
        &machine,
        0,
        "root",
        "CRYPT-LUKS2-1-root",
        0,
        "virtual/block/md0",
    );
    let found = inspected(&machine, None);
    assert_eq!(found.stacks[0].stops_at.as_deref(), Some("md0"));
    let inert = finding(&machine, "option-inert");
    assert!(inert.remedy.as_ref().unwrap().contains("md0"), "{inert:?}");
    finding(&machine, "raid5-off");
    assert!(!ids(&machine).contains(&"luks-blocks"));
    // The members take none, either: then they are the lowest.
    set(
        &machine,
        "pci/nvme/nvme0/nvme0n1",
        "queue/discard_max_bytes",
        "0",
    );
    set(
        &machine,
        "pci/nvme/nvme0/nvme0n1",
        "queue/discard_max_hw_bytes",
        "0",
    );
    set(
        &machine,
        "pci/nvme/nvme1/nvme1n1",
        "queue/discard_max_bytes",
        "0",
    );
    set(
        &machine,
        "pci/nvme/nvme1/nvme1n1",
        "queue/discard_max_hw_bytes",
        "0",
    );
    let found = inspected(&machine, None);
    assert_eq!(found.stacks[0].stops_at.as_deref(), Some("nvme0n1"));
}

#[test]
fn a_virtual_drive_without_discard_needs_its_host_changed() {
    let place = "pci/host2/target2:0:0/2:0:0:0/block/sda";
    for (vendor, model, host) in [
        ("VMware", "Virtual disk", "ESXi"),
        ("QEMU", "QEMU HARDDISK", "discard=unmap"),
        ("Msft", "Virtual Disk", "Hyper-V"),
        ("ATA", "VBOX HARDDISK", "VBoxManage"),
    ] {
        let machine = Machine::new("1 0 8:0 / / rw - ext4 /dev/sda rw,discard\n");
        machine.device(place, "8:0", Some(0));
        set(&machine, place, "queue/discard_max_hw_bytes", "0");
        set(&machine, place, "device/vendor", vendor);
        set(&machine, place, "device/model", model);
        let found = finding(&machine, "host-blocks");
        assert!(found.remedy.as_ref().unwrap().contains(host), "{found:?}");
        assert!(found.cost.contains("host"), "{found:?}");
        assert!(finding(&machine, "option-inert").cost.contains("host"));
    }
}

#[test]
fn a_usb_bridge_is_named_with_its_rule() {
    let place = "pci/usb3/3-2/3-2:1.0/host4/target4:0:0/4:0:0:0/block/sdc";
    let machine = Machine::new("1 0 8:32 / /usb rw - ext4 /dev/sdc rw,discard\n");
    machine.device(place, "8:32", Some(0));
    set(&machine, place, "queue/discard_max_hw_bytes", "0");
    set(&machine, "pci/usb3/3-2", "idVendor", "152d");
    set(&machine, "pci/usb3/3-2", "idProduct", "0578");
    set(
        &machine,
        "pci/usb3/3-2/3-2:1.0/host4/target4:0:0/4:0:0:0/scsi_disk/4:0:0:0",
        "provisioning_mode",
        "full",
    );
    let remedy = |machine: &Machine| finding(machine, "usb-lbpme").remedy.unwrap();
    let found = finding(&machine, "usb-lbpme");
    assert!(found.what.contains("152d:0578"), "{found:?}");
    assert_eq!(found.evidence[0].value, "full");
    assert!(remedy(&machine).starts_with("if sg_vpd -p lbpv /dev/sdc prints LBPU=1: a udev rule"));
    assert!(remedy(&machine).contains("ATTRS{idVendor}==\"152d\", ATTRS{idProduct}==\"0578\""));
    let page = |flags: u8| {
        machine.write("identify/sdc/scsi-b2", "");
        let path = machine.root().join("identify/sdc/scsi-b2");
        std::fs::write(path, [0, 0xb2, 0, 4, 0, flags, 0, 0]).unwrap();
    };
    page(0x80);
    assert!(remedy(&machine).starts_with("a udev rule"));
    page(0);
    assert!(remedy(&machine).contains("another bridge"));
}

#[test]
fn notrim_in_fstab_is_named() {
    let machine = nvme("xfs", "rw");
    timer(
        &machine,
        "/sbin/fstrim --listed-in /etc/fstab:/proc/self/mountinfo",
        true,
    );
    machine.write(
        "etc/fstab",
        "/dev/nvme0n1 / xfs noatime,X-fstrim.notrim 0 0\n",
    );
    let found = finding(&machine, "timer-misses-mount");
    assert!(found.what.contains("X-fstrim.notrim"), "{found:?}");
    assert!(found.remedy.unwrap().starts_with("remove X-fstrim.notrim"));
    assert!(found.evidence.iter().all(|one| !one.value.is_empty()));
    machine.write("etc/fstab", "/dev/nvme0n1 / xfs noatime 0 0\n");
    assert_eq!(ids(&machine), [""; 0]);
}

#[test]
fn cron_lines_that_only_a_shell_can_read_raise_no_warning() {
    let machine = nvme("ext4", "rw");
    machine.write(
        "etc/cron.d/trim",
        "0 3 * * 0 root for m in /a /; do fstrim $m; sleep 1; done\n",
    );
    assert_eq!(ids(&machine), [""; 0]);
    machine.write(
        "etc/cron.d/trim",
        "0 3 * * 0 root for m in /a /b; do fstrim $m; done\n",
    );
    assert_eq!(ids(&machine), ["timer-misses-mount"]);
    machine.write(
        "etc/cron.d/trim",
        "0 3 * * 0 root lsblk -o M | xargs -n1 fstrim \"$X\"\n",
    );
    assert_eq!(ids(&machine), [""; 0]);
    let found = inspected(&machine, None);
    assert!(found.policy.trimmers[0].covers_unknown);
    for line in [
        "lsblk -rno MOUNTPOINT | grep ^/ | xargs -n1 fstrim -v",
        "cat /etc/trim | xargs -I% sh -c 'fstrim %'",
        "parallel fstrim ::: $(cat /etc/trim)",
        "find /srv /mnt -mindepth 1 -maxdepth 1 -execdir fstrim {} +",
        "find / -maxdepth 1 -exec ionice -c 3 fstrim {} \\; -print",
        "for d in /mnt/*; do fstrim $d; done",
        "bash -lc 'awk \"{print \\$2}\" /etc/fstab | xargs -L1 fstrim'",
    ] {
        machine.write("etc/cron.d/trim", &format!("0 3 * * 0 root {line}\n"));
        assert_eq!(ids(&machine), [""; 0], "{line}");
        let page = page(&machine);
        assert!(
            page.contains("fstrim of mounts chosen at run time"),
            "{page}"
        );
    }
    // A script that a line starts.
    machine.write("etc/cron.d/trim", "0 3 * * 0 root /opt/trim-all\n");
    machine.write(
        "opt/trim-all",
        "#!/bin/sh\nfor m in / /home\ndo\n  fstrim -v $m\ndone\n",
    );
    assert_eq!(ids(&machine), [""; 0]);
}

#[test]
fn a_device_of_ceph_or_zfs_is_named_with_its_switch() {
    let machine = Machine::new("1 0 0:50 / /tank rw - zfs tank rw\n");
    machine.device(NVME, "259:0", Some(GIB));
    machine.write("run/udev/data/b259:0", "E:ID_FS_TYPE=ceph_bluestore\n");
    let users = inspected(&machine, None).policy.users;
    let told: Vec<(Option<&str>, &str)> = users
        .iter()
        .map(|one| (one.device.as_deref(), one.switch.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (Some("nvme0n1"), "ceph config get osd bdev_enable_discard"),
            (None, "zpool get autotrim tank"),
        ]
    );
}

#[test]
fn a_lun_that_reports_no_rotation_rate_does_not_turn() {
    let place = "pci/host7/rport-7:0-1/target7:0:1/7:0:1:0/block/sdd";
    let machine = Machine::new("1 0 8:48 / / rw - xfs /dev/sdd rw\n");
    machine.device(place, "8:48", Some(GIB));
    set(&machine, place, "queue/discard_max_hw_bytes", "1073741824");
    set(&machine, place, "queue/rotational", "1");
    assert_eq!(ids(&machine), ["nothing-trims"]);
    // It turns if its page says so.
    machine.write(&format!("sys/devices/{place}/device/vpd_pgb1"), "");
    let page = machine
        .root()
        .join(format!("sys/devices/{place}/device/vpd_pgb1"));
    std::fs::write(page, [0, 0xb1, 0, 0x3c, 0x1c, 0x20, 0, 0]).unwrap();
    assert_eq!(ids(&machine), [""; 0]);
}

#[test]
fn a_device_that_has_linux_default_flag_does_not_turn() {
    for (place, name) in [
        ("virtual/block/loop3", "loop3"),
        ("pci/usb2/2-1/host6/target6:0:0/6:0:0:0/block/sdb", "sdb"),
        ("virtual/block/nbd0", "nbd0"),
    ] {
        let line = format!("1 0 7:3 / / rw - ext4 /dev/{name} rw,discard\n");
        let machine = Machine::new(&line);
        machine.device(place, "7:3", Some(GIB));
        set(&machine, place, "queue/rotational", "1");
        assert!(!ids(&machine).contains(&"hdd-trimmed"), "{name}");
    }
}

#[test]
fn paths_of_one_lun_have_one_note() {
    let machine = Machine::new("1 0 253:0 / / rw - xfs /dev/dm-0 rw,discard\n");
    let names = ["sda", "sdb", "sdc", "sdd"];
    let place = |index: usize| {
        format!(
            "pci/host{index}/target/{index}:0:0:0/block/{}",
            names[index]
        )
    };
    for index in 0..4 {
        machine.device(&place(index), &format!("8:{}", 16 * index), Some(32 << 20));
        set(
            &machine,
            &place(index),
            "queue/discard_max_hw_bytes",
            "33554432",
        );
    }
    dm(&machine, 0, "lun", "mpath-3600", 32 << 20, &place(0));
    (1..4).for_each(|index| machine.slave("virtual/block/dm-0", &place(index)));
    let found = inspected(&machine, None).findings;
    let capped: Vec<&str> = found
        .iter()
        .filter(|one| one.id == "trim-capped")
        .map(|one| one.subject.as_str())
        .collect();
    assert_eq!(capped, ["sda, sdb, sdc, sdd"]);
}

#[test]
fn a_name_with_a_slash_is_one_name_with_a_path_that_exists() {
    let machine = Machine::new("1 0 104:1 / / rw - ext4 /dev/cciss/c0d0p1 rw,discard\n");
    let place = "pci/cciss!c0d0";
    machine.device(place, "104:0", Some(0));
    machine.device(&format!("{place}/cciss!c0d0p1"), "104:1", None);
    set(&machine, place, "queue/discard_max_hw_bytes", "4194304");
    let found = inspected(&machine, None);
    let names: Vec<&str> = found
        .stacks
        .iter()
        .flat_map(|one| &one.layers)
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["cciss/c0d0p1", "cciss/c0d0"]);
    let off = finding(&machine, "disabled-at-runtime");
    for one in &off.evidence {
        let file = machine
            .root()
            .join(&one.file[1..])
            .to_string_lossy()
            .replace("/sys/block/", "/sys/class/block/");
        assert!(std::path::Path::new(&file).exists(), "{file}");
    }
}

#[test]
fn a_kernel_with_a_fault_of_md_is_named_with_its_source() {
    let raid = |level: &str, kernel: &str| {
        let machine = array(level, GIB);
        machine.write("proc/sys/kernel/osrelease", &format!("{kernel}\n"));
        let found = inspected(&machine, None).findings;
        let fault = found.into_iter().find(|one| one.id == "md-discard-fault");
        fault.map(|one| one.cost)
    };
    let source = |level, kernel| raid(level, kernel).unwrap();
    assert!(source("raid10", "6.8.0-60-generic").contains("bugs/2117395"));
    assert!(source("raid10", "6.14.11").contains("bugs/2117395"));
    assert!(source("raid10", "5.4.0-56-generic").contains("bugs/1907262"));
    // Drives of SATA and SCSI alone: NVMe keeps a discard's address elsewhere.
    let over = |drive: &str| {
        let machine = array("linear", GIB);
        machine.write("proc/sys/kernel/osrelease", "3.10.0-327.el7.x86_64\n");
        let place = format!("pci/ata1/{drive}");
        machine.device(&place, "8:32", Some(GIB));
        machine.slave("virtual/block/md0", &place);
        let found = inspected(&machine, None).findings;
        let fault = found.into_iter().find(|one| one.id == "md-discard-fault");
        fault.map(|one| one.cost)
    };
    assert!(over("sdc").unwrap().contains("algolia"));
    assert_eq!(over("nvme9n1"), None);
    for (level, kernel) in [
        ("raid10", "6.15.0"),
        ("raid10", "6.6.1"),
        ("raid10", "5.4.0-90-generic"),
        ("raid1", "6.8.0"),
        ("raid0", "6.8.0"),
    ] {
        assert_eq!(raid(level, kernel), None, "{level} {kernel}");
    }
}

#[test]
fn where_discards_do_harm_no_finding_asks_for_any() {
    let on = |options: &str| {
        let machine = array("raid10", GIB);
        let line = format!("1 0 9:0 / /srv rw - ext4 /dev/md0 {options}\n");
        machine.write("proc/self/mountinfo", &line);
        machine.write("sys/fs/ext4/md0/journal_task", "123\n");
        machine.write("proc/sys/kernel/osrelease", "6.13.4-arch1\n");
        machine
    };
    for options in ["rw", "rw,discard"] {
        let machine = on(options);
        assert_eq!(ids(&machine), ["md-discard-fault"]);
        machine.write(
            "etc/fstab",
            "/dev/md0 /srv ext4 X-fstrim.notrim,discard 0 0\n",
        );
        assert_eq!(ids(&machine), ["md-discard-fault"]);
    }
    // Discards of the array are switched off, and LUKS above it passes none.
    let machine = on("rw,discard");
    set(
        &machine,
        "virtual/block/md0",
        "queue/discard_max_bytes",
        "0",
    );
    assert_eq!(ids(&machine), [""; 0]);
    let machine = on("rw");
    let line = "1 0 253:0 / / rw - xfs /dev/dm-0 rw,discard\n";
    machine.write("proc/self/mountinfo", line);
    dm(
        &machine,
        0,
        "root",
        "CRYPT-LUKS2-1-root",
        0,
        "virtual/block/md0",
    );
    assert_eq!(ids(&machine), ["md-discard-fault"]);
    // Another mount, whose remedy leaves the array alone.
    let machine = on("rw");
    machine.device("pci/nvme/nvme7/nvme7n1", "259:7", Some(GIB));
    machine.write(
        "proc/self/mountinfo",
        "1 0 259:7 / / rw - ext4 /dev/nvme7n1 rw\n2 1 9:0 / /srv rw - ext4 /dev/md0 rw\n",
    );
    let remedy = finding(&machine, "nothing-trims").remedy.unwrap();
    assert!(
        remedy.starts_with("trimbench fstrim --install-timer /;"),
        "{remedy}"
    );
    // A kernel with the fix.
    machine.write("proc/sys/kernel/osrelease", "6.15.1\n");
    let remedy = finding(&machine, "nothing-trims").remedy.unwrap();
    assert!(remedy.contains("enable --now fstrim.timer"), "{remedy}");
}

/// The page of a machine.
fn page(machine: &Machine) -> String {
    let look = crate::Look {
        width: 100,
        unicode: true,
        colour: false,
    };
    crate::inspect::text::page(&inspected(machine, None), false, look)
}

#[test]
fn trims_of_pools_miss_no_mount() {
    let machine = nvme("xfs", "rw");
    let text = |line: &str| {
        machine.write("etc/cron.d/trim", line);
        assert_eq!(ids(&machine), ["nothing-trims"], "{line}");
        page(&machine)
    };
    let page = text("0 2 * * 0 root /sbin/zpool trim -w data backup\n");
    assert!(
        page.contains("Sunday 02:00, zpool trim data backup\n"),
        "{page}"
    );
    let page =
        text("24 0 1-7 * * root [ -x /usr/lib/zfs-linux/trim ] && /usr/lib/zfs-linux/trim\n");
    assert!(page.contains("zpool trim\n"), "{page}");
    // A script that trims a mount, too, misses this one.
    machine.write("etc/cron.weekly/trim", "fstrim /srv\nzpool trim data\n");
    finding(&machine, "timer-misses-mount");
    let page = self::page(&machine);
    assert!(
        page.contains("zpool trim data and fstrim of /srv"),
        "{page}"
    );
}

#[test]
fn the_cost_of_no_trims_is_that_of_what_is_below() {
    let machine = |place: &str| {
        let name = place.rsplit('/').next().unwrap();
        let line = format!("1 0 8:48 / / rw - ext4 /dev/{name} rw\n");
        let machine = Machine::new(&line);
        machine.device(place, "8:48", Some(GIB));
        machine
    };
    let cost = |machine: &Machine| finding(machine, "nothing-trims").cost;
    let place = "pci/host7/session1/target7:0:0/7:0:0:0/block/sdd";
    let lun = machine(place);
    assert!(cost(&lun).starts_with("the drive keeps copying"));
    set(&lun, place, "queue/rotational", "1");
    assert!(cost(&lun).starts_with("the array keeps"));
    let guest = machine("pci/virtio3/block/vdb");
    assert!(cost(&guest).starts_with("the host's storage keeps"));
    // Two paths of flash.
    let flash = Machine::new("1 0 253:0 / / rw - xfs /dev/dm-0 rw\n");
    flash.device(place, "8:48", Some(GIB));
    dm(&flash, 0, "lun", "mpath-3600", GIB, place);
    assert!(cost(&flash).starts_with("the array keeps"));
}

#[test]
fn a_disk_of_xen_is_virtual() {
    let place = "vbd-51728/block/xvdb";
    let machine = Machine::new("1 0 202:16 / / rw - xfs /dev/xvdb rw,discard\n");
    machine.device(place, "202:16", Some(0));
    set(&machine, place, "queue/discard_max_hw_bytes", "0");
    let found = finding(&machine, "host-blocks");
    assert!(found.remedy.unwrap().contains("xl.cfg"));
    let inert = finding(&machine, "option-inert");
    assert!(inert.cost.contains("host"), "{inert:?}");
    assert!(inert.remedy.unwrap().starts_with("mend xvdb first"));
}

#[test]
fn copies_by_tar_are_read_as_far_as_they_are_true() {
    let machine = nvme("ext4", "rw,discard");
    let padded = |file: &str, text: &str| {
        let path = machine.root().join(format!("sys/devices/{NVME}/{file}"));
        std::fs::write(path, [text.as_bytes(), &[0; 4000]].concat()).unwrap();
    };
    padded("queue/discard_max_bytes", "134217728\n");
    padded("size", "2097152\n");
    let found = inspected(&machine, None);
    assert_eq!(found.stacks[0].layers[0].limits.max_bytes, 134_217_728);
    assert!(
        found
            .missing
            .iter()
            .any(|one| one.why.contains("--collect")),
        "{found:?}"
    );
    // Nothing but NULs is no 0.
    padded("queue/discard_max_bytes", "");
    let found = inspected(&machine, None);
    assert_eq!(found.stacks[0].layers[0].effect, Effect::Unknown);
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    assert_eq!(found.stacks[0].stops_at, None);
    machine.write("proc/self/mountinfo", "");
    let found = inspected(&machine, None);
    let empty = found
        .missing
        .iter()
        .find(|one| one.what.contains("mounted"));
    assert!(empty.unwrap().why.contains("mountinfo"), "{found:?}");
}

#[test]
fn a_proof_answers_the_note_that_asked_for_it() {
    let machine = Machine::new("1 0 254:0 / / rw - ext4 /dev/vda rw,discard\n");
    machine.device("pci/virtio1/block/vda", "254:0", Some(GIB));
    let note = |result: Outcome| {
        let proof = Proof {
            path: "/".to_owned(),
            probe_bytes: 64 << 20,
            fitrim: false,
            layers: vec![Counted {
                name: "vda".to_owned(),
                below: Vec::new(),
                top: true,
                bytes: Some(64 << 20),
                commands: 1,
                share: 1.0,
            }],
            raw: Some(Raw::default()),
            raw_missing: None,
            result,
            stops_at: None,
            summary: "what came of it".to_owned(),
            seconds: 0.5,
        };
        let found = proven(&machine, None, Some(proof)).findings;
        found
            .into_iter()
            .find(|one| one.id == "host-may-ignore")
            .unwrap()
    };
    assert!(
        finding(&machine, "host-may-ignore")
            .remedy
            .unwrap()
            .contains("--prove")
    );
    let arrived = note(Outcome::Arrives);
    assert!(
        arrived.what.contains("acts on discards: what came of it"),
        "{arrived:?}"
    );
    assert_eq!(arrived.remedy, None);
    let counted = note(Outcome::Counted);
    assert!(!counted.remedy.unwrap().contains("--prove"));
}

#[test]
fn what_discards_in_the_caller() {
    finding(&nvme("exfat", "rw,discard"), "discard-in-caller");
    assert_eq!(ids(&nvme("exfat", "rw")), ["nothing-trims"]);
    let plain = |options| {
        let machine = nvme("ext4", options);
        machine.write("sys/fs/ext4/nvme0n1/journal_task", "<none>\n");
        machine
    };
    assert_eq!(ids(&plain("rw,discard")), ["discard-in-caller"]);
    assert_eq!(ids(&plain("rw")), ["nothing-trims"]);
}

#[test]
fn quotas_of_btrfs_are_named() {
    let machine = nvme("btrfs", "rw,discard=async");
    machine.write("sys/fs/btrfs/0a1b/devices/nvme0n1", "");
    machine.write("sys/fs/btrfs/0a1b/qgroups/enabled", "1\n");
    machine.write("sys/fs/btrfs/0a1b/qgroups/mode", "qgroup\n");
    let found = finding(&machine, "btrfs-quotas");
    assert!(found.remedy.unwrap().contains("btrfs quota disable /"));
    machine.write("sys/fs/btrfs/0a1b/qgroups/mode", "squota\n");
    assert!(!ids(&machine).contains(&"btrfs-quotas"));
}

#[test]
fn every_rule_is_documented_and_has_a_test() {
    let page = include_str!("../../../../../../docs/inspect.md");
    let tests = concat!(
        include_str!("../tests.rs"),
        include_str!("advice.rs"),
        include_str!("life.rs")
    );
    // Only a real btrfs has deleted subvolumes: end-to-end tests have that rule.
    for (id, _) in RULES {
        assert!(
            page.contains(&format!("`{id}`")),
            "{id} is not in docs/inspect.md"
        );
        assert!(
            id == "btrfs-deleted" || tests.contains(&format!("\"{id}\"")),
            "{id} has no test"
        );
    }
}
