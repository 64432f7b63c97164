//! Trees as kernels show them, rebuilt in a temporary directory.

use record::{AtaTrim, DeviceKind};

use super::*;
use testkit::Machine;

const MIB: u64 = 1 << 20;

fn shape(tree: &DeviceTree) -> Vec<(&str, DeviceKind, u32, bool)> {
    tree.devices
        .iter()
        .map(|device| (device.name.as_str(), device.kind, device.level, device.leaf))
        .collect()
}

fn tree_at(machine: &Machine, path: &str) -> DeviceTree {
    let sys = SysRoot::at(machine.root());
    under_mount(&sys, &Mount::of_in(&sys, path).unwrap())
}

fn nvme(machine: &Machine, index: u32) -> String {
    let place = format!("pci/nvme{index}/nvme{index}n1");
    machine.device(&place, &format!("259:{index}"), Some(128 * MIB));
    machine.write(
        &format!("sys/devices/pci/nvme{index}/model"),
        "CT2000T500SSD8      \n",
    );
    machine.write(
        &format!("sys/devices/pci/nvme{index}/firmware_rev"),
        "P8CR002 \n",
    );
    machine.link(
        &format!("sys/devices/{place}/device"),
        &format!("sys/devices/pci/nvme{index}"),
    );
    place
}

#[test]
fn a_partition_stands_for_its_drive() {
    let machine = Machine::new("1 0 259:5 / / rw - ext4 /dev/nvme0n1p2 rw,discard\n");
    let drive = nvme(&machine, 0);
    machine.device(&format!("{drive}/nvme0n1p2"), "259:5", None);
    let tree = tree_at(&machine, "/home");
    assert_eq!(
        shape(&tree),
        [("nvme0n1p2", DeviceKind::Partition, 0, true)]
    );
    let device = &tree.devices[0];
    assert_eq!(device.model.as_deref(), Some("CT2000T500SSD8"));
    assert_eq!(device.firmware.as_deref(), Some("P8CR002"));
    assert_eq!(device.size_bytes, 1 << 30);
    assert_eq!(device.discard.max_bytes, 128 * MIB);
    assert_eq!(device.discard.max_hw_bytes, 4_294_966_784);
    assert_eq!(
        (
            device.discard.granularity_bytes,
            device.discard.max_segments
        ),
        (512, 256)
    );
    assert_eq!(device.rotational, Some(false));
    assert_eq!(device.scheduler.as_deref(), Some("none"));
}

#[test]
fn an_ata_drive_tells_how_trim_is_sent() {
    let machine = Machine::new(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw,discard\n2 1 8:16 / /mnt rw - ext4 /dev/sdb rw\n",
    );
    let ports = "pci0000:00/0000:00:17.0";
    let first = format!("{ports}/ata3/host2/target2:0:0/2:0:0:0/block/sda");
    machine.device(&first, "8:0", Some(128 * MIB));
    machine.device(&format!("{first}/sda1"), "8:1", None);
    // The third behind a port multiplier.
    let second = format!("{ports}/ata4/host3/target3:2:0/3:2:0:0/block/sdb");
    machine.device(&second, "8:16", Some(128 * MIB));
    for (name, word) in [
        ("dev3.0", "forced_unqueued"),
        ("dev3.1", "queued"),
        ("dev4.2.0", "queued"),
        ("dev4.0", "unsupported"),
    ] {
        machine.write(
            &format!("sys/class/ata_device/{name}/trim"),
            &format!("{word}\n"),
        );
    }
    let trim = |path: &str| tree_at(&machine, path).devices[0].discard.ata_trim;
    assert_eq!(trim("/"), Some(AtaTrim::ForcedUnqueued));
    assert_eq!(trim("/mnt"), Some(AtaTrim::Queued));
    machine.write("sys/class/ata_device/dev3.0/trim", "a new word\n");
    assert_eq!(trim("/"), None);
}

#[test]
fn raid0_over_two_drives() {
    let machine = Machine::new("1 0 9:0 / / rw - xfs /dev/md0 rw,discard\n");
    let (one, two) = (nvme(&machine, 0), nvme(&machine, 1));
    machine.device("virtual/block/md0", "9:0", Some(128 * MIB));
    machine.write("sys/devices/virtual/block/md0/md/level", "raid0\n");
    machine.write("sys/devices/virtual/block/md0/queue/scheduler", "none\n");
    machine.slave("virtual/block/md0", &one);
    machine.slave("virtual/block/md0", &two);
    let tree = tree_at(&machine, "/");
    assert_eq!(
        shape(&tree),
        [
            ("md0", DeviceKind::Md, 0, false),
            ("nvme0n1", DeviceKind::Disk, 1, true),
            ("nvme1n1", DeviceKind::Disk, 1, true),
        ]
    );
    assert_eq!(tree.devices[0].below, ["nvme0n1", "nvme1n1"]);
    assert_eq!(
        (&tree.devices[0].scheduler, &tree.devices[0].model),
        (&None, &None)
    );
    assert!(tree.discards_reach_a_leaf());
}

#[test]
fn a_partition_of_an_array_is_no_leaf() {
    let machine = Machine::new("1 0 259:9 / / rw - xfs /dev/md0p1 rw,discard\n");
    let one = nvme(&machine, 0);
    machine.device("virtual/block/md0", "9:0", Some(128 * MIB));
    machine.slave("virtual/block/md0", &one);
    machine.device("virtual/block/md0/md0p1", "259:9", None);
    assert_eq!(
        shape(&tree_at(&machine, "/")),
        [
            ("md0p1", DeviceKind::Partition, 0, false),
            ("nvme0n1", DeviceKind::Disk, 1, true),
        ]
    );
}

#[test]
fn discards_stop_at_a_closed_crypt() {
    let machine = Machine::new("1 0 253:0 / / rw - ext4 /dev/mapper/root rw,discard\n");
    let drive = nvme(&machine, 0);
    let partition = format!("{drive}/nvme0n1p3");
    machine.device(&partition, "259:6", None);
    machine.device("virtual/block/dm-0", "253:0", Some(0));
    machine.write("sys/devices/virtual/block/dm-0/dm/name", "root\n");
    machine.slave("virtual/block/dm-0", &partition);
    let tree = tree_at(&machine, "/");
    assert_eq!(
        shape(&tree),
        [
            ("dm-0", DeviceKind::Dm, 0, false),
            ("nvme0n1p3", DeviceKind::Partition, 1, true),
        ]
    );
    assert!(tree.any_leaf_discards() && !tree.discards_reach_a_leaf());
}

#[test]
fn a_loop_leads_to_the_device_of_its_file() {
    let machine = Machine::new(
        "1 0 254:0 / / rw - ext4 /dev/vda rw\n2 1 7:3 / /mnt rw - xfs /dev/loop3 rw,discard\n",
    );
    machine.device("pci/vda", "254:0", Some(1 << 30));
    machine.device("virtual/block/loop3", "7:3", Some(1 << 30));
    machine.write(
        "sys/devices/virtual/block/loop3/loop/backing_file",
        "/srv/disk.img\n",
    );
    let tree = tree_at(&machine, "/mnt");
    assert_eq!(
        shape(&tree),
        [
            ("loop3", DeviceKind::Loop, 0, false),
            ("vda", DeviceKind::Disk, 1, true)
        ]
    );
    assert!(
        tree.warnings[0].to_string().contains("only punch holes"),
        "{:?}",
        tree.warnings
    );
}

#[test]
fn a_loop_over_memory_or_a_deleted_file_is_a_leaf() {
    let machine = Machine::new(
        "1 0 0:25 / /dev/shm rw - tmpfs tmpfs rw\n2 1 7:3 / /mnt rw - xfs /dev/loop3 rw,discard\n",
    );
    machine.device("virtual/block/loop3", "7:3", Some(1 << 30));
    let backing = "sys/devices/virtual/block/loop3/loop/backing_file";
    machine.write(backing, "/dev/shm/disk.img\n");
    let tree = tree_at(&machine, "/mnt");
    assert_eq!(shape(&tree), [("loop3", DeviceKind::Loop, 0, true)]);
    assert_eq!(tree.warnings, []);
    machine.write(backing, "/dev/shm/disk.img (deleted)\n");
    let tree = tree_at(&machine, "/mnt");
    assert!(
        tree.devices[0].leaf && tree.warnings[0].to_string().contains("deleted"),
        "{:?}",
        tree.warnings
    );
}

#[test]
fn a_loop_over_a_simulated_drive_is_a_leaf_without_a_note() {
    for (source, notes) in [("trimbench-lab", 0), ("sshfs", 1)] {
        let machine = Machine::new(&format!(
            "1 0 0:25 / /run/lab rw - fuse.{source} {source} rw\n\
             2 1 7:3 / /mnt rw - xfs /dev/loop3 rw,discard\n"
        ));
        machine.device("virtual/block/loop3", "7:3", Some(1 << 30));
        machine.write(
            "sys/devices/virtual/block/loop3/loop/backing_file",
            "/run/lab/drive\n",
        );
        let tree = tree_at(&machine, "/mnt");
        assert!(tree.devices[0].leaf);
        assert_eq!(tree.warnings.len(), notes, "{:?}", tree.warnings);
    }
}

#[test]
fn a_loop_may_be_over_a_device() {
    let machine = Machine::new("2 1 7:3 / /mnt rw - xfs /dev/loop3 rw\n");
    let drive = nvme(&machine, 0);
    machine.device("virtual/block/loop3", "7:3", Some(1 << 30));
    machine.write(
        "sys/devices/virtual/block/loop3/loop/backing_file",
        "/dev/nvme0n1\n",
    );
    assert!(!drive.is_empty());
    assert_eq!(shape(&tree_at(&machine, "/mnt")).len(), 2);
}

#[test]
fn btrfs_has_all_its_devices() {
    let machine = Machine::new("1 0 0:39 /@home /home rw - btrfs /dev/nvme1n1 rw,discard=async\n");
    let (one, two) = (nvme(&machine, 0), nvme(&machine, 1));
    machine.write("sys/fs/btrfs/features/acl", "0\n");
    machine.write("sys/fs/btrfs/0000/devices/sda", "");
    machine.link(
        "sys/fs/btrfs/077e/devices/nvme0n1",
        &format!("sys/devices/{one}"),
    );
    machine.link(
        "sys/fs/btrfs/077e/devices/nvme1n1",
        &format!("sys/devices/{two}"),
    );
    assert_eq!(
        shape(&tree_at(&machine, "/home/x")),
        [
            ("nvme0n1", DeviceKind::Disk, 0, true),
            ("nvme1n1", DeviceKind::Disk, 0, true)
        ]
    );
}

#[test]
fn shared_drives_come_once() {
    // Two partitions of one drive under one logical volume, and the volume twice in an array.
    let machine = Machine::new("1 0 9:0 / / rw - ext4 /dev/md0 rw\n");
    let one = nvme(&machine, 0);
    for (name, number) in [("dm-0", "253:0"), ("dm-1", "253:1")] {
        machine.device(&format!("virtual/block/{name}"), number, Some(MIB));
        machine.slave(&format!("virtual/block/{name}"), &one);
    }
    machine.device("virtual/block/md0", "9:0", Some(MIB));
    machine.slave("virtual/block/md0", "virtual/block/dm-0");
    machine.slave("virtual/block/md0", "virtual/block/dm-1");
    let tree = tree_at(&machine, "/");
    assert_eq!(tree.devices.len(), 4);
    assert_eq!(tree.leaves().count(), 1);
}

#[test]
fn devices_in_a_circle_end() {
    let machine = Machine::new("1 0 7:1 / /mnt rw - ext4 /dev/loop1 rw\n");
    machine.device("virtual/block/loop1", "7:1", Some(MIB));
    machine.write(
        "sys/devices/virtual/block/loop1/loop/backing_file",
        "/mnt/self.img\n",
    );
    assert_eq!(tree_at(&machine, "/mnt").devices.len(), 1);
}

#[test]
fn an_overlay_is_on_its_upper_directory() {
    let overlay =
        "2 1 0:50 / /merged rw - overlay overlay rw,lowerdir=/l,upperdir=/up/x,workdir=/w\n";
    let machine = Machine::new(&format!("1 0 254:0 / / rw - ext4 /dev/vda rw\n{overlay}"));
    machine.device("pci/vda", "254:0", Some(1 << 30));
    assert_eq!(
        shape(&tree_at(&machine, "/merged/y")),
        [("vda", DeviceKind::Disk, 0, true)]
    );
    let hidden = Machine::new(overlay);
    let tree = tree_at(&hidden, "/merged/y");
    assert!(
        tree.devices.is_empty() && tree.warnings[0].to_string().contains("overlay"),
        "{:?}",
        tree.warnings
    );
}

#[test]
fn a_device_must_be_known() {
    let machine = Machine::new("");
    nvme(&machine, 0);
    assert_eq!(
        under_device(&SysRoot::at(machine.root()), "nvme0n1")
            .unwrap()
            .devices
            .len(),
        1
    );
    let unknown = under_device(&SysRoot::at(machine.root()), "sdx").unwrap_err();
    assert!(unknown.to_string().contains("sdx"));
}
