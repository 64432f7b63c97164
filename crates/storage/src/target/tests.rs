//! Targets of recorded trees, and of this machine.

use std::fs;

use super::*;
use testkit::Machine;

const SPACE: Space = Space {
    size_bytes: 1 << 40,
    available_bytes: 1 << 39,
    block_bytes: 4096,
};

fn at(machine: &Machine, path: &str) -> Description {
    let sys = SysRoot::at(machine.root());
    let mount = Mount::of_in(&sys, path).unwrap();
    describe_mount(&sys, Path::new(path), mount, SPACE)
}

fn on_vda(options: &str, discard_max: u64) -> Description {
    let machine = Machine::new(&format!(
        "1 0 254:0 / / rw,noatime - ext4 /dev/vda {options}\n"
    ));
    machine.device("pci/vda", "254:0", Some(discard_max));
    at(&machine, "/srv")
}

#[test]
fn discard_on_is_all_there_is_to_say() {
    let on = on_vda("rw,discard", 1 << 30);
    assert_eq!(on.target.discard, DiscardSetting::On);
    assert_eq!(on.warnings, []);
    assert_eq!(on.target.mount.as_deref(), Some("/"));
    assert_eq!(on.target.source.as_deref(), Some("/dev/vda"));
    assert_eq!(on.target.options, ["rw", "noatime", "discard"]);
    assert_eq!(on.target.available_bytes, Some(1 << 39));
}

#[test]
fn says_why_no_discards_will_come() {
    let off = on_vda("rw", 1 << 30);
    assert_eq!(off.target.discard, DiscardSetting::Off);
    assert!(
        off.warnings[0].to_string().contains("without discard"),
        "{:?}",
        off.warnings
    );
    let deaf = on_vda("rw,discard", 0);
    assert_eq!(deaf.target.discard, DiscardSetting::Unsupported);
    assert!(
        deaf.warnings[0].to_string().contains("vda takes none"),
        "{:?}",
        deaf.warnings
    );
}

#[test]
fn says_where_discards_stop() {
    let machine = Machine::new("1 0 253:0 / / rw - ext4 /dev/mapper/root rw,discard\n");
    machine.device("pci/sda", "8:0", Some(1 << 30));
    machine.device("virtual/block/dm-0", "253:0", Some(0));
    machine.write("sys/devices/virtual/block/dm-0/dm/name", "root\n");
    machine.slave("virtual/block/dm-0", "pci/sda");
    let crypt = at(&machine, "/");
    assert_eq!(crypt.target.discard, DiscardSetting::Unsupported);
    let note = crypt.warnings[0].to_string();
    assert!(
        note.contains("dm-0") && note.contains("allow_discards"),
        "{note}"
    );
}

#[test]
fn memory_takes_no_discards() {
    let memory = at(
        &Machine::new("1 0 0:25 / /dev/shm rw - tmpfs tmpfs rw\n"),
        "/dev/shm",
    );
    assert_eq!(memory.target.discard, DiscardSetting::Unsupported);
    assert!(memory.devices.is_empty() && memory.warnings[0].to_string().contains("in memory"));
}

#[test]
fn the_network_cant_be_told() {
    let nfs = at(
        &Machine::new("1 0 0:25 / /n rw - nfs4 host:/export rw\n"),
        "/n",
    );
    assert_eq!(nfs.target.discard, DiscardSetting::Unknown);
    assert_eq!(nfs.warnings.len(), 2, "{:?}", nfs.warnings);
}

#[test]
fn an_overlay_is_judged_by_its_upper_file_system() {
    let machine = Machine::new(
        "1 0 254:0 / / rw - ext4 /dev/vda rw,discard\n2 1 0:50 / /m rw - overlay overlay rw,upperdir=/up\n",
    );
    machine.device("pci/vda", "254:0", Some(1 << 30));
    let overlay = at(&machine, "/m");
    assert_eq!(overlay.target.discard, DiscardSetting::On);
    assert!(
        overlay.warnings[0].to_string().contains("overlay"),
        "{:?}",
        overlay.warnings
    );
}

#[test]
fn describes_a_raw_device() {
    let machine = Machine::new("");
    machine.device("pci/sda", "8:0", Some(1 << 30));
    let raw = describe_device_in(&SysRoot::at(machine.root()), Path::new("/dev/sda")).unwrap();
    assert_eq!(raw.target.discard, DiscardSetting::On);
    assert_eq!(
        (raw.target.size_bytes, raw.target.available_bytes),
        (1 << 30, None)
    );
    assert!(raw.mount.is_none());
    let not = describe_device_in(
        &SysRoot::at(machine.root()),
        Path::new("/proc/self/mountinfo"),
    )
    .unwrap_err();
    assert!(matches!(not, TargetError::NotADevice(_)));
}

#[test]
fn describes_the_directory_of_this_test() {
    let here = describe(".").unwrap();
    let mount = here.mount.unwrap();
    assert!(here.target.size_bytes > 0);
    assert_eq!(here.target.fs.as_deref(), Some(mount.fs.as_str()));
    assert!(
        describe("/no/such")
            .unwrap_err()
            .to_string()
            .contains("/no/such")
    );
}

#[test]
fn discards_that_destroy_data_are_refused_and_a_crash_is_warned_of() {
    let machine = Machine::new("1 0 259:9 / /srv rw - ext4 /dev/md5p1 rw\n");
    machine.device("virtual/block/md5", "9:5", Some(1 << 30));
    machine.device("virtual/block/md5/md5p1", "259:9", None);
    let raid = |level: &str, drive: &str, kernel: &str| {
        machine.write("sys/devices/virtual/block/md5/md/level", level);
        machine.write("proc/sys/kernel/osrelease", &format!("{kernel}\n"));
        machine.device(&format!("pci/{drive}"), "8:0", Some(1 << 30));
        machine.slave("virtual/block/md5", &format!("pci/{drive}"));
        let harm = at(&machine, "/srv").unless_harmful("/srv", "use fstrim(8)");
        fs::remove_dir_all(machine.root().join("sys/devices/virtual/block/md5/slaves")).unwrap();
        fs::remove_file(machine.root().join("sys/dev/block/8:0")).unwrap();
        fs::remove_file(machine.root().join("sys/class/block").join(drive)).unwrap();
        match harm {
            Ok(fault) => fault.map(|fault| fault.to_string()),
            Err(harm) => Some(harm.to_string()),
        }
    };
    for (level, drive, kernel, begin, end) in [
        (
            "raid10",
            "sda",
            "6.12.9-arch1-1",
            "md5 is raid10",
            "bugs/2117395",
        ),
        (
            "raid10",
            "nvme1n1",
            "5.8.0-32-generic",
            "/srv: md5 is raid10",
            "bugs/1907262. If this kernel's changelog names the fix, use fstrim(8)",
        ),
        (
            "raid0",
            "sdb",
            "3.10.0-123.el7.x86_64",
            "/srv: md5 is raid0",
            "not-that-solid. If this kernel's changelog names the fix, use fstrim(8)",
        ),
    ] {
        let said = raid(level, drive, kernel).unwrap();
        assert!(said.starts_with(begin) && said.ends_with(end), "{said}");
    }
    assert_eq!(raid("raid0", "nvme1n1", "3.10.0-123.el7.x86_64"), None);
    assert_eq!(raid("raid0", "sdb", "4.2.0"), None);
    assert_eq!(raid("raid10", "sdb", "6.15.2"), None);
}
