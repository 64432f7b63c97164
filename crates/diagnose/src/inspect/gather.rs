//! Collects the facts of an inspection.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use linux::SysRoot;
use linux::dm::Tables;
use linux::host::is_container;
use linux::mounts::{self, Mount};
use linux::space::Space;
use linux::sysroot::{entries, number};
use storage::drive::Drive;
use storage::stack::{LayerKind, Stack};
use storage::{Description, FileSystem, describe_device_in, describe_mount};

use super::{CryptLine, InspectError, Inspection, Missing, Options, Policy, SCHEMA, Scope};

/// The facts, without findings.
pub(super) fn gather(
    sys: &SysRoot,
    asked: &Scope,
    options: &Options,
) -> Result<Inspection, InspectError> {
    let mut missing = Vec::new();
    let mut miss = |what: &str, why: String| {
        missing.push(Missing {
            what: what.to_owned(),
            why,
        });
    };
    let mounts = mounts::list(sys).unwrap_or_else(|error| {
        miss("mounts", error.to_string());
        Vec::new()
    });
    if !sys.path("/sys/class/block").is_dir() {
        miss(
            "devices and their limits",
            "/sys is not there; mount it".to_owned(),
        );
    }
    if !sys.is_host() {
        copied(sys, &mounts, &mut miss);
    }
    if is_container(sys) {
        let why = "a container shows only its own; run trimbench inspect outside of it";
        miss("mounts and timers outside this container", why.to_owned());
    }
    let tables = match options.privileged || !sys.is_host() {
        true => linux::dm::tables(sys),
        false => Err(std::io::ErrorKind::PermissionDenied.into()),
    };
    let tables = tables.unwrap_or_else(|error| {
        // It matters only where there are such devices.
        if sys.devices().iter().any(|name| name.starts_with("dm-")) {
            miss(
                "tables of the device mapper (thin pools' passdown)",
                need(&error, options.privileged),
            );
        }
        Tables::new()
    });
    let mut origin = linux::host::origin(sys);
    let mut stack = |found: &Description| {
        origin.add(&found.target, &found.devices);
        Stack::of(sys, found, &tables)
    };
    let stacks = match asked {
        Scope::Path(path) => vec![of_path(sys, path, &mounts, &mut stack, &mut miss)?],
        Scope::All => all(sys, &mounts, &mut stack),
    };
    let drives = drives(sys, &stacks, options.privileged || !sys.is_host());
    for drive in &drives {
        if let Some(why) = &drive.pages_missing {
            miss(&format!("{}'s own pages", drive.name), why.clone());
        }
    }
    Ok(Inspection {
        schema: SCHEMA,
        origin,
        virtual_machine: drives.iter().any(Drive::is_virtual) || is_virtual(sys),
        policy: Policy::of(sys, &mounts, options.now),
        crypttab: crypttab(sys, &stacks),
        stacks,
        drives,
        proof: None,
        if_deleted: None,
        findings: Vec::new(),
        missing,
    })
}

fn need(error: &std::io::Error, is_root: bool) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied if is_root => {
            "root may not open /dev/mapper/control here; inspect on the host".to_owned()
        }
        std::io::ErrorKind::PermissionDenied => "they need root".to_owned(),
        _ => error.to_string(),
    }
}

/// Faults of a copy of another machine's files.
fn copied(sys: &SysRoot, mounts: &[Mount], miss: &mut impl FnMut(&str, String)) {
    const INSTEAD: &str =
        "copy with `trimbench inspect --collect FILE` there, or with cp -r, not tar";
    if mounts.is_empty() {
        let why = format!("proc/self/mountinfo of the copy is empty or missing; {INSTEAD}");
        miss("what is mounted where", why);
    }
    let is_padded = |name: &String| {
        let mut files = ["size", "dev", "queue/discard_max_bytes"].into_iter();
        let has_nul = |bytes: Vec<u8>| bytes.contains(&0);
        files.any(|file| fs::read(sys.class(name).join(file)).is_ok_and(has_nul))
    };
    if sys.devices().iter().any(is_padded) {
        let why = format!("files of sys end in NULs, at which trimbench cut them; {INSTEAD}");
        miss("whether the copy is complete", why);
    }
}

/// Makers of virtual machines, as firmware names them.
const HYPERVISORS: [&str; 7] = [
    "QEMU",
    "VMware",
    "innotek",
    "Xen",
    "Amazon EC2",
    "Google",
    "Microsoft Corporation",
];

fn is_virtual(sys: &SysRoot) -> bool {
    let vendor = sys.text("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    HYPERVISORS.iter().any(|one| vendor.contains(one))
}

/// The stack under a path. A path whose mount is unknown has an empty one.
fn of_path(
    sys: &SysRoot,
    path: &Path,
    mounts: &[Mount],
    stack: &mut dyn FnMut(&Description) -> Stack,
    miss: &mut impl FnMut(&str, String),
) -> Result<Stack, InspectError> {
    let named = crate::watch::by_name(path);
    let path = if sys.is_host() { &named } else { path };
    if sys.is_host() {
        path.metadata().map_err(|source| InspectError::Path {
            path: path.to_owned(),
            source,
        })?;
    }
    if let Some(device) = sys.device_at(path) {
        // A mounted device is shown with its file system.
        let number = sys.attribute(&device, "dev").unwrap_or_default();
        let mut all = mounts.iter();
        let mount = all.find(|mount| mount.device.to_string() == number);
        return match mount {
            Some(mount) => Ok(of_mount(sys, mount, stack)),
            None => Ok(stack(&describe_device_in(sys, path)?)),
        };
    }
    match Mount::of_in(sys, path) {
        Ok(mount) => {
            let mut stack = of_mount(sys, &mount, stack);
            stack.path = path.to_string_lossy().into_owned();
            Ok(stack)
        }
        Err(_) if !sys.is_host() => {
            let why = "the copy's proc/self/mountinfo does not list it".to_owned();
            miss("the mount of the path", why);
            Ok(Stack::unknown(path))
        }
        Err(error) => {
            miss("the mount of the path", error.to_string());
            Ok(Stack::unknown(path))
        }
    }
}

fn of_mount(sys: &SysRoot, mount: &Mount, stack: &mut dyn FnMut(&Description) -> Stack) -> Stack {
    // How full it is plays no part, and asking may wait for a server.
    let space = Space {
        size_bytes: 0,
        available_bytes: 0,
        block_bytes: 4096,
    };
    let found = describe_mount(sys, &mount.mount_point, mount.clone(), space);
    let mut stack = stack(&found);
    if stack.layers.is_empty() {
        stack.warnings.extend(found.warnings);
    }
    stack
}

/// Each mounted file system on block devices once, then the drives that nothing uses.
fn all(
    sys: &SysRoot,
    mounts: &[Mount],
    stack: &mut dyn FnMut(&Description) -> Stack,
) -> Vec<Stack> {
    let mut seen = HashSet::new();
    let mut stacks = Vec::new();
    for mount in mounts {
        if !FileSystem::mounted(mount).is_on_devices(mount.read_only()) {
            continue;
        }
        // btrfs has numbers of no device, and one source for all its subvolumes.
        let identity = match mount.device.is_anonymous() {
            true => mount.source.clone(),
            false => mount.device.to_string(),
        };
        if mount.device.is_anonymous() && !mount.source.starts_with('/') || !seen.insert(identity) {
            continue;
        }
        let found = of_mount(sys, mount, stack);
        if !found.layers.is_empty() {
            stacks.push(found);
        }
    }
    let used: HashSet<String> = stacks
        .iter()
        .flat_map(|stack: &Stack| stack.layers.iter().map(|layer| layer.name.clone()))
        .collect();
    for name in unused(sys, &used) {
        let path = Path::new("/dev").join(&name);
        if let Ok(found) = describe_device_in(sys, &path) {
            stacks.push(stack(&found));
        }
    }
    stacks
}

/// Whole devices in no stack that have a size and nothing above or below them.
fn unused(sys: &SysRoot, used: &HashSet<String>) -> Vec<String> {
    const NO_DRIVES: [&str; 5] = ["zram", "ram", "sr", "fd", "loop"];
    let is_drive = |name: &String| {
        let own = sys.class(name);
        let has = |file: &str| own.join(file).exists();
        let is_empty = |folder: &str| entries(&own.join(folder)).is_empty();
        !used.contains(name)
            && !NO_DRIVES.iter().any(|prefix| name.starts_with(prefix))
            && !["partition", "dm", "md"].into_iter().any(has)
            && number::<u64>(&own.join("size")).is_some_and(|size| size > 0)
            && is_empty("holders")
            && is_empty("slaves")
    };
    sys.devices().into_iter().filter(is_drive).collect()
}

/// The drives at the bottom of the stacks, each once.
fn drives(sys: &SysRoot, stacks: &[Stack], ask: bool) -> Vec<Drive> {
    let mut seen = HashSet::new();
    let lowest = stacks.iter().flat_map(Stack::drives);
    let names = lowest.filter(|layer| seen.insert(layer.name.clone()));
    let mut drives: Vec<Drive> = Vec::new();
    for layer in names {
        drives.extend(Drive::of(sys, &layer.name, ask));
    }
    drives
}

/// The lines of crypttab for the encrypted devices of the stacks, each once.
fn crypttab(sys: &SysRoot, stacks: &[Stack]) -> Vec<CryptLine> {
    let table = linux::crypttab::parse(&sys.text("/etc/crypttab").unwrap_or_default());
    let mut found: Vec<CryptLine> = Vec::new();
    let layers = stacks.iter().flat_map(|stack| &stack.layers);
    for layer in layers.filter(|layer| layer.kind == LayerKind::Crypt) {
        let entry = table
            .iter()
            .find(|entry| Some(&entry.name) == layer.label.as_ref());
        let Some(entry) = entry else { continue };
        if found.iter().all(|one| one.line != entry.line) {
            found.push(CryptLine {
                device: layer.name.clone(),
                line: entry.line,
                allows_discards: entry.allows_discards(),
                with_discard: entry.with_discard(),
            });
        }
    }
    found
}
