//! Everything that uses a block device, as far as `/proc` and `/sys` tell.
//!
//! Opening with `O_EXCL` is the last word. This module says by whom a device is used. It also knows
//! the users that make no claim. These are loop devices over it, or beside it over one file, and
//! processes that have it open for writing or mapped.

use std::fs;
use std::path::{Path, PathBuf};

use record::units::names;

use linux::SysRoot;
use linux::limit::whole;
use linux::loop_device::{self, Backing};
use linux::mounts::{self, DeviceNumber, MountError};
use linux::sysroot::{entries, line};

/// Names a user of a device, of what it is a part of, or of one of its parts; `None` if there is
/// none.
pub(super) fn used(sys: &SysRoot, name: &str) -> Result<Option<String>, MountError> {
    let names = with_overlapping(sys, name);
    let numbers = numbers(sys, &names);
    let is_ours = |name: &str| names.iter().any(|ours| ours == name);

    // The source is a text that whoever mounts chooses: a FUSE file system may name any device.
    for mount in mounts::list(sys)? {
        if numbers.contains(&mount.device) {
            let at = names::shown(&mount.mount_point);
            return Ok(Some(format!("{} is mounted at {at}", mount.source)));
        }
    }
    for swap in swaps(&sys.text("/proc/swaps").unwrap_or_default()) {
        if sys.device_at(&swap).as_deref().is_some_and(is_ours) {
            return Ok(Some(format!("{} is swap space", names::shown(&swap))));
        }
    }
    for name in &names {
        if let Some(holder) = entries(&sys.class(name).join("holders")).first() {
            return Ok(Some(format!("{name} is part of {holder}")));
        }
    }
    if let Some(elsewhere) = mounted_elsewhere(sys, &names, &numbers) {
        return Ok(Some(elsewhere));
    }
    for file_system in entries(&sys.path("/sys/fs/btrfs")) {
        let devices = sys.path("/sys/fs/btrfs").join(file_system).join("devices");
        if let Some(name) = entries(&devices).iter().find(|name| is_ours(name)) {
            return Ok(Some(format!("{name} is part of a mounted btrfs")));
        }
    }
    let own: Vec<Backing> = names.iter().filter_map(|name| backing(sys, name)).collect();
    for other in entries(&sys.path("/sys/class/block")) {
        let file = read(&sys.class(&other).join("loop/backing_file"));
        if file.is_empty() || is_ours(&other) {
            continue;
        }
        let same = backing(sys, &other).is_some_and(|other| {
            let is_over = other.device.is_some_and(|device| numbers.contains(&device));
            is_over || own.iter().any(|own| own.shares_bytes_with(&other))
        });
        if same || sys.device_at(&file).as_deref().is_some_and(is_ours) {
            let file = names::shown(&file);
            return Ok(Some(format!("{other} is a loop device over {file}, too")));
        }
    }
    Ok(None)
}

/// Names a process in another mount namespace in which one of these devices is still mounted.
fn mounted_elsewhere(sys: &SysRoot, names: &[String], numbers: &[DeviceNumber]) -> Option<String> {
    let proc = sys.path("/proc");
    let mut seen = vec![fs::read_link(proc.join("self/ns/mnt")).ok()?];
    for pid in entries(&proc) {
        let own = proc.join(&pid);
        match fs::read_link(own.join("ns/mnt")) {
            Ok(namespace) if !seen.contains(&namespace) => seen.push(namespace),
            _ => continue,
        }
        let mounts = mounts::parse(&fs::read(own.join("mountinfo")).unwrap_or_default());
        let at = mounts.iter().find(|mount| {
            // btrfs has a number of its own, and only its source names the device.
            let named = mount.fs == "btrfs" && mount.device.is_anonymous();
            let source = named
                .then(|| sys.device_at(Path::new(&mount.source)))
                .flatten();
            numbers.contains(&mount.device) || source.is_some_and(|name| names.contains(&name))
        });
        if let Some(mount) = at {
            let program = read(&own.join("comm"));
            return Some(format!(
                "{} is mounted at {} in the mount namespace of {program} (pid {pid})",
                mount.source,
                names::shown(&mount.mount_point)
            ));
        }
    }
    None
}

/// Returns a process that has the device, what it is a part of, or one of its parts open for
/// writing or mapped.
pub(super) fn opened(sys: &SysRoot, name: &str) -> Option<String> {
    let numbers = numbers(sys, &with_overlapping(sys, name));
    linux::tasks::opener(&numbers).map(|opener| match sys.device_name(opener.device) {
        Some(part) if part != name => format!("{opener}, as {part}"),
        _ => opener.to_string(),
    })
}

fn numbers(sys: &SysRoot, names: &[String]) -> Vec<DeviceNumber> {
    let number_of = |name: &String| DeviceNumber::parse(&read(&sys.class(name).join("dev")));
    names.iter().filter_map(number_of).collect()
}

fn backing(sys: &SysRoot, name: &str) -> Option<Backing> {
    loop_device::backing(&sys.path("/dev").join(name))
}

/// Whether writing is switched off. Opening such a device for writing works all the same.
pub(super) fn is_read_only(sys: &SysRoot, name: &str) -> bool {
    read(&sys.class(name).join("ro")) == "1"
}

/// Why data on one device may be on the other as well, to be read after their names; `None` if
/// they are two devices.
pub fn shared_medium(sys: &SysRoot, paths: [&Path; 2]) -> Option<String> {
    let names = paths.map(|path| sys.device_at(path));
    let [Some(one), Some(other)] = &names else {
        return None;
    };
    if overlap(sys, one, other) {
        return Some("are one device, or one is a part of the other".to_owned());
    }
    let drives = [one, other].map(|name| whole(sys, name).unwrap_or_else(|| name.clone()));
    if drives[0] == drives[1] {
        return None;
    }
    if let Some(wwid) = shared_wwid(sys, &drives) {
        return Some(format!("are two paths to one drive ({wwid})"));
    }
    let [Some(one), Some(other)] = paths.map(loop_device::backing) else {
        return None;
    };
    let on_parts = || {
        let names = [one.device, other.device].map(|number| sys.device_name(number?));
        matches!(&names, [Some(one), Some(other)] if one != other && overlap(sys, one, other))
    };
    if one.shares_bytes_with(&other) || on_parts() {
        let file = loop_device::backing_file(paths[0]).unwrap_or_default();
        return Some(format!(
            "are loop devices over one file ({})",
            names::shown(file)
        ));
    }
    None
}

/// The identity that two drives have in common, because both are paths to one.
fn shared_wwid(sys: &SysRoot, drives: &[String; 2]) -> Option<String> {
    let [first, second] = drives.each_ref().map(|name| {
        let places = ["device/wwid", "wwid"].map(|place| read(&sys.class(name).join(place)));
        places.into_iter().find(|wwid| !wwid.is_empty())
    });
    first.filter(|first| Some(first) == second.as_ref())
}

/// Whether two devices are one, or one is a partition of the other. Two partitions of one drive
/// are two devices.
fn overlap(sys: &SysRoot, one: &str, other: &str) -> bool {
    let drives = [one, other].map(|name| whole(sys, name));
    one == other
        || drives[0] == drives[1] && drives.iter().flatten().any(|d| d == one || d == other)
}

/// The device and all that its bytes are part of. These are its partitions, the drive that it is a
/// partition of, and the same of the device that a loop device is made of.
fn with_overlapping(sys: &SysRoot, name: &str) -> Vec<String> {
    let mut names = with_partitions(sys, name);
    names.extend(whole(sys, name).filter(|whole| whole != name));
    let below: Vec<String> = names
        .iter()
        .filter_map(|name| sys.device_name(backing(sys, name)?.device?))
        .collect();
    for below in below {
        names.extend(with_overlapping(sys, &below));
    }
    names
}

/// The device and, of a whole one, its partitions.
fn with_partitions(sys: &SysRoot, name: &str) -> Vec<String> {
    let directory = sys.class(name);
    let mut names = vec![name.to_owned()];
    names.extend(
        entries(&directory)
            .into_iter()
            .filter(|entry| directory.join(entry).join("partition").exists()),
    );
    names
}

/// The paths in `/proc/swaps`, which has a heading and escapes like `mountinfo`'s.
fn swaps(text: &str) -> Vec<PathBuf> {
    text.lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .map(|path| mounts::path_from(path.as_bytes()))
        .collect()
}

fn read(path: &Path) -> String {
    line(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Machine;

    fn drive(mountinfo: &str) -> Machine {
        let machine = Machine::new(mountinfo);
        machine.device("pci/sdb", "8:16", Some(0));
        machine.device("pci/sdb/sdb1", "8:17", None);
        machine
    }

    fn use_of(machine: &Machine, name: &str) -> String {
        used(&SysRoot::at(machine.root()), name)
            .unwrap()
            .unwrap_or_default()
    }

    #[test]
    fn an_idle_drive_is_free() {
        let machine = drive("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
        assert_eq!(used(&SysRoot::at(machine.root()), "sdb").unwrap(), None);
    }

    #[test]
    fn a_mounted_partition_keeps_its_drive() {
        let machine = drive("1 0 8:17 / /data rw - ext4 /dev/sdb1 rw\n");
        for name in ["sdb", "sdb1"] {
            assert!(use_of(&machine, name).contains("mounted at /data"));
        }
    }

    #[test]
    fn a_mount_that_only_calls_itself_the_device_is_no_user() {
        for kind in ["fuse.sshfs", "tmpfs", "overlay"] {
            let machine = drive(&format!("1 0 0:40 / /data rw - {kind} /dev/sdb1 rw\n"));
            machine.write("dev/sdb1", "");
            assert_eq!(use_of(&machine, "sdb"), "", "{kind}");
        }
    }

    #[test]
    fn a_partition_is_in_use_where_its_drive_is() {
        let machine = drive("1 0 8:16 / /data rw - ext4 /dev/sdb rw\n");
        machine.write("sys/devices/pci/sdb/queue/rotational", "0\n");
        assert!(use_of(&machine, "sdb1").contains("mounted at /data"));
        let machine = drive("1 0 8:18 / /data rw - ext4 /dev/sdb2 rw\n");
        machine.device("pci/sdb/sdb2", "8:18", None);
        machine.write("sys/devices/pci/sdb/queue/rotational", "0\n");
        assert_eq!(
            use_of(&machine, "sdb1"),
            "",
            "another partition is another device"
        );
    }

    #[test]
    fn swap_holders_btrfs_and_loops_are_users() {
        let machine = drive("");
        machine.write(
            "proc/swaps",
            "Filename Type Size Used Priority\n/dev/sdb1 partition 1 0 -2\n",
        );
        assert!(use_of(&machine, "sdb").contains("swap"));

        let machine = drive("");
        machine.device("virtual/block/dm-0", "253:0", Some(0));
        machine.link(
            "sys/devices/pci/sdb/sdb1/holders/dm-0",
            "sys/devices/virtual/block/dm-0",
        );
        assert_eq!(use_of(&machine, "sdb"), "sdb1 is part of dm-0");

        let machine = drive("");
        machine.write("sys/fs/btrfs/077e/devices/sdb", "");
        assert!(use_of(&machine, "sdb").contains("btrfs"));

        let machine = drive("");
        machine.device("virtual/block/loop0", "7:0", Some(0));
        machine.write(
            "sys/devices/virtual/block/loop0/loop/backing_file",
            "/dev/sdb1\n",
        );
        assert!(use_of(&machine, "sdb").contains("loop0"));
    }

    #[test]
    fn a_mount_in_another_namespace_is_named_with_a_process_there() {
        let machine = drive("");
        machine.link("proc/self/ns/mnt", "mnt:[1]");
        machine.write("proc/77/comm", "postgres\n");
        machine.link("proc/77/ns/mnt", "mnt:[2]");
        let line = "1 0 8:17 / /var/lib/pg rw - xfs /dev/sdb1 rw\n";
        machine.write("proc/77/mountinfo", line);
        assert_eq!(
            use_of(&machine, "sdb"),
            "/dev/sdb1 is mounted at /var/lib/pg in the mount namespace of postgres (pid 77)"
        );
        machine.write(
            "proc/77/mountinfo",
            "1 0 0:44 / /var/lib/pg rw - btrfs /dev/sdb rw\n",
        );
        machine.write("dev/sdb", "");
        assert!(use_of(&machine, "sdb").contains("postgres (pid 77)"));
    }

    #[test]
    fn a_drive_overlaps_with_itself_and_its_partitions() {
        let machine = Machine::new("");
        machine.device("pci/sda", "8:0", Some(0));
        machine.device("pci/sda/sda1", "8:1", None);
        machine.device("pci/sda/sda2", "8:2", None);
        machine.device("pci/sdb", "8:16", Some(0));
        let sys = SysRoot::at(machine.root());
        for (one, other, overlaps) in [
            ("sda", "sda", true),
            ("sda", "sda1", true),
            ("sda2", "sda", true),
            ("sda1", "sda1", true),
            ("sda1", "sda2", false),
            ("sda", "sdb", false),
            ("sda1", "sdb", false),
        ] {
            assert_eq!(overlap(&sys, one, other), overlaps, "{one} {other}");
        }
    }

    #[test]
    fn two_paths_to_one_drive_share_its_medium() {
        let machine = Machine::new("");
        for (name, number) in [("sda", "8:0"), ("sdb", "8:16"), ("sdc", "8:32")] {
            machine.device(&format!("pci/{name}"), number, Some(0));
            machine.write(&format!("dev/{name}"), "");
        }
        for name in ["sda", "sdb"] {
            machine.write(&format!("sys/devices/pci/{name}/device/wwid"), "naa.5001\n");
        }
        let sys = SysRoot::at(machine.root());
        let of = |one: &str, other: &str| shared_medium(&sys, [Path::new(one), Path::new(other)]);
        assert!(of("/dev/sda", "/dev/sdb").unwrap().contains("naa.5001"));
        assert!(of("/dev/sda", "/dev/sda").unwrap().contains("one device"));
        assert_eq!(of("/dev/sda", "/dev/sdc"), None);
    }
}
