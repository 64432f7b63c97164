//! Stacks of recorded machines.

use std::path::Path;

use super::*;
use linux::mounts::Mount;
use linux::space::Space;
use testkit::Machine;

const GIB: u64 = 1 << 30;

fn stack(machine: &Machine, path: &str) -> Stack {
    let sys = SysRoot::at(machine.root());
    let space = Space {
        size_bytes: GIB,
        available_bytes: GIB,
        block_bytes: 4096,
    };
    let mount = Mount::of_in(&sys, path).unwrap();
    let found = crate::describe_mount(&sys, Path::new(path), mount, space);
    Stack::of(&sys, &found, &linux::dm::tables(&sys).unwrap())
}

fn dm(machine: &Machine, index: u32, label: &str, uuid: &str, max: u64) -> String {
    let place = format!("virtual/block/dm-{index}");
    machine.device(&place, &format!("253:{index}"), Some(max));
    machine.write(&format!("sys/devices/{place}/dm/name"), label);
    machine.write(&format!("sys/devices/{place}/dm/uuid"), uuid);
    place
}

fn shape(stack: &Stack) -> Vec<(&str, LayerKind, Effect)> {
    let layers = stack.layers.iter();
    layers
        .map(|layer| (layer.name.as_str(), layer.kind.clone(), layer.effect))
        .collect()
}

#[test]
fn luks_under_lvm_stops_discards() {
    let machine = Machine::new("1 0 253:1 / / rw - ext4 /dev/mapper/vg-root rw,discard\n");
    machine.device("pci/nvme/nvme0/nvme0n1", "259:0", Some(2 << 40));
    machine.device("pci/nvme/nvme0/nvme0n1/nvme0n1p3", "259:3", None);
    let crypt = dm(&machine, 0, "luks", "CRYPT-LUKS2-00ff-luks", 0);
    machine.write(
        &format!("sys/devices/{crypt}/queue/discard_max_hw_bytes"),
        "0\n",
    );
    machine.slave(&crypt, "pci/nvme/nvme0/nvme0n1/nvme0n1p3");
    let volume = dm(&machine, 1, "vg-root", "LVM-abc", 0);
    machine.write(
        &format!("sys/devices/{volume}/queue/discard_max_hw_bytes"),
        "0\n",
    );
    machine.slave(&volume, &crypt);
    let found = stack(&machine, "/");
    assert_eq!(
        shape(&found),
        [
            ("dm-1", LayerKind::Linear, Effect::Stops),
            ("dm-0", LayerKind::Crypt, Effect::Stops),
            ("nvme0n1p3", LayerKind::Partition, Effect::Passes),
            ("nvme0n1", LayerKind::Drive, Effect::Passes),
        ]
    );
    assert!(found.layers[1].why.contains("allow_discards"), "{found:#?}");
    assert!(found.layers[0].why.contains("nothing below"), "{found:#?}");
    assert!(!found.open && found.stops_at.as_deref() == Some("dm-0"));
}

#[test]
fn a_thin_pool_without_passdown_is_known_by_its_table() {
    let machine = Machine::new("1 0 253:3 / / rw - xfs /dev/mapper/vg-thin rw,discard\n");
    machine.device("pci/virtio1/block/vdb", "254:16", Some(GIB));
    let data = dm(&machine, 0, "vg-pool_tdata", "LVM-abc-tdata", GIB);
    machine.slave(&data, "pci/virtio1/block/vdb");
    let pool = dm(&machine, 2, "vg-pool-tpool", "LVM-abc-tpool", GIB);
    machine.slave(&pool, &data);
    let thin = dm(&machine, 3, "vg-thin", "LVM-def", 64 << 20);
    machine.slave(&thin, &pool);
    let found = stack(&machine, "/");
    assert!(found.open);
    assert_eq!(found.layers[0].kind, LayerKind::Thin);
    assert_eq!(found.layers[1].kind, LayerKind::ThinPool);
    machine.write(
        "dmsetup-table",
        "vg-pool-tpool: 0 8 thin-pool 253:1 253:0 128 0 1 no_discard_passdown\n\
         vg-thin: 0 8 thin 253:2 1\n",
    );
    let found = stack(&machine, "/");
    assert_eq!(found.stops_at.as_deref(), Some("dm-2"));
    assert!(found.layers[1].why.contains("no_discard_passdown"));
}

#[test]
fn a_thin_pool_that_only_frees_is_known_by_its_limit() {
    let machine = Machine::new("1 0 253:3 / / rw - xfs /dev/mapper/vg-thin rw,discard\n");
    machine.device("pci/virtio1/block/vdb", "254:16", Some(GIB));
    let pool = dm(&machine, 2, "vg-pool-tpool", "LVM-abc-tpool", 0);
    machine.slave(&pool, "pci/virtio1/block/vdb");
    let thin = dm(&machine, 3, "vg-thin", "LVM-def", 64 << 20);
    machine.slave(&thin, &pool);
    let found = stack(&machine, "/");
    assert_eq!(found.stops_at.as_deref(), Some("dm-2"));
    assert!(found.layers[1].why.contains("no_discard_passdown"));
}

#[test]
fn the_drives_below_bcache_are_drives() {
    let machine = Machine::new("1 0 252:0 / / rw - xfs /dev/bcache0 rw,discard\n");
    machine.device("virtual/block/bcache0", "252:0", Some(GIB));
    for (place, number) in [
        ("pci/nvme/nvme0/nvme0n1", "259:0"),
        ("pci/ata1/host0/block/sda", "8:0"),
    ] {
        machine.device(place, number, Some(GIB));
        machine.slave("virtual/block/bcache0", place);
        machine.write(&format!("sys/devices/{place}/bcache/x"), "");
    }
    machine.link(
        "sys/devices/virtual/block/bcache0/bcache",
        "sys/devices/pci/ata1/host0/block/sda/bcache",
    );
    let kinds: Vec<LayerKind> = stack(&machine, "/")
        .layers
        .into_iter()
        .map(|one| one.kind)
        .collect();
    assert_eq!(
        kinds,
        [LayerKind::Bcache, LayerKind::Drive, LayerKind::Drive]
    );
}

#[test]
fn an_array_splits_and_one_with_parity_says_its_parameter() {
    let machine = Machine::new("1 0 9:0 / / rw - xfs /dev/md0 rw,discard\n");
    for index in 0..3 {
        let place = format!("pci/nvme/nvme{index}/nvme{index}n1");
        machine.device(&place, &format!("259:{index}"), Some(GIB));
    }
    machine.device("virtual/block/md0", "9:0", Some(GIB));
    machine.write("sys/devices/virtual/block/md0/md/level", "raid0\n");
    for index in 0..3 {
        machine.slave(
            "virtual/block/md0",
            &format!("pci/nvme/nvme{index}/nvme{index}n1"),
        );
    }
    let found = stack(&machine, "/");
    assert_eq!(found.layers[0].effect, Effect::Reshapes);
    assert!(found.open && found.drives().count() == 3);
    let queue = "sys/devices/virtual/block/md0";
    machine.write(&format!("{queue}/md/level"), "raid5\n");
    machine.write(&format!("{queue}/queue/discard_max_bytes"), "0\n");
    machine.write(&format!("{queue}/queue/discard_max_hw_bytes"), "0\n");
    machine.write(
        "sys/module/raid456/parameters/devices_handle_discard_safely",
        "N\n",
    );
    let found = stack(&machine, "/");
    assert_eq!(found.layers[0].why, "devices_handle_discard_safely is N");
    assert_eq!(found.stops_at.as_deref(), Some("md0"));
}

#[test]
fn ext4_without_a_journal_discards_within_the_call() {
    let machine = Machine::new("1 0 254:0 / / rw - ext4 /dev/vda rw,discard\n");
    machine.device("pci/virtio1/block/vda", "254:0", Some(GIB));
    let when = || stack(&machine, "/").file_system.unwrap().when;
    for (task, said) in [("71\n", "commit"), ("<none>\n", "within the call")] {
        machine.write("sys/fs/ext4/vda/journal_task", task);
        assert!(when().contains(said), "{task}: {}", when());
    }
}

#[test]
fn a_file_on_a_mount_without_discard_ends_the_way() {
    let mounts = "1 0 254:0 / / rw - ext4 /dev/vda rw\n2 1 7:3 / /m rw - btrfs /dev/loop3 rw,discard=async\n";
    let machine = Machine::new(mounts);
    machine.device("pci/virtio1/block/vda", "254:0", Some(GIB));
    machine.device("virtual/block/loop3", "7:3", Some(GIB));
    machine.write(
        "sys/devices/virtual/block/loop3/loop/backing_file",
        "/srv/disk.img\n",
    );
    machine.write("sys/fs/btrfs/1-2/discard/discardable_bytes", "4096\n");
    machine.link(
        "sys/fs/btrfs/1-2/devices/loop3",
        "sys/devices/virtual/block/loop3",
    );
    let found = stack(&machine, "/m");
    assert_eq!(found.stops_at.as_deref(), Some("loop3"));
    let mounted = found.file_system.unwrap();
    assert_eq!(mounted.pending.unwrap().bytes, Some(4096));
    assert!(mounted.when.contains("120 s"));
    machine.write(
        "proc/self/mountinfo",
        &mounts.replace("/dev/vda rw", "/dev/vda rw,discard"),
    );
    let found = stack(&machine, "/m");
    assert!(found.open && found.layers[0].effect == Effect::Reshapes);
}

#[test]
fn a_limit_that_is_switched_off_says_what_the_device_takes() {
    let machine = Machine::new("1 0 259:0 / / rw - ext4 /dev/nvme0n1 rw,discard\n");
    machine.device("pci/nvme/nvme0/nvme0n1", "259:0", Some(0));
    let found = stack(&machine, "/");
    assert!(
        found.layers[0].why.starts_with("switched off"),
        "{found:#?}"
    );
}

#[test]
fn an_overlay_sends_what_its_upper_file_system_sends() {
    let machine = Machine::new(
        "1 0 254:0 / / rw - ext4 /dev/vda rw,discard\n\
         2 1 0:40 / /o rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w\n",
    );
    machine.device("pci/virtio1/block/vda", "254:0", Some(GIB));
    let found = stack(&machine, "/o");
    assert_eq!(
        found.file_system.as_ref().unwrap().sends,
        DiscardSetting::On
    );
    assert!(found.open && found.trims_online());
}
