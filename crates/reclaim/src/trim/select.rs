//! Which of many file systems are trimmed: as fstrim(8) chooses.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use linux::SysRoot;
use linux::devices;
use linux::fstab::{Entry, noted_options};
use linux::mounts::{self, Mount, MountError};

/// Keeps a file system from being trimmed with others.
const NOT_THIS: &str = "X-fstrim.notrim";

/// One that can be trimmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// Where it is mounted.
    pub path: PathBuf,
    /// From what.
    pub source: String,
}

/// The table of what is to be mounted.
pub const FSTAB: &str = "/etc/fstab";

/// The table of what is mounted.
pub const MOUNTED: &str = "/proc/self/mountinfo";

/// Of the entries of a table those that are mounted, writable, on devices that
/// take discards, not marked `X-fstrim.notrim` and of these types; each file
/// system once. `files`: tables with colons between them, of which the first counts
/// that has an entry. `types`: names with commas between them; `no` before the
/// list or a name excludes.
///
/// # Errors
/// If it can't be told what is mounted.
pub fn select(files: &str, types: Option<&str>) -> Result<Vec<Selected>, MountError> {
    let sys = SysRoot::host();
    let mounts = mounts::list(&sys)?;
    let entries = &listed(files);
    let utab = std::fs::read(sys.path("/run/mount/utab")).unwrap_or_default();
    let noted = |target: &PathBuf| noted_options(&utab, target);
    let takes = |mount: &Mount| takes_discards(&sys, mount);
    Ok(chosen(entries, types, &mounts, &noted, &takes))
}

fn listed(files: &str) -> Vec<Entry> {
    for file in files.split(':').filter(|file| !file.is_empty()) {
        let Ok(text) = std::fs::read(file) else {
            continue;
        };
        let mut entries = linux::fstab::parse(&text);
        if entries.is_empty() {
            continue;
        }
        // The root file system is trimmed even where fstab doesn't list it.
        if file == FSTAB && !entries.iter().any(|entry| entry.target == Path::new("/")) {
            entries.extend(Mount::of("/").ok().map(Entry::from));
        }
        return entries;
    }
    Vec::new()
}

/// The same, of what the machine says.
fn chosen(
    entries: &[Entry],
    types: Option<&str>,
    mounts: &[Mount],
    noted: &dyn Fn(&PathBuf) -> Vec<String>,
    takes: &dyn Fn(&Mount) -> bool,
) -> Vec<Selected> {
    let mut seen = HashSet::new();
    let mut selected = Vec::new();
    for entry in entries {
        // The latest is on top of the others.
        let on_top = mounts
            .iter()
            .rfind(|mount| mount.mount_point == entry.target);
        let Some(mount) = on_top else { continue };
        let hidden = entry.mount.as_ref().is_some_and(|own| own.id != mount.id);
        let not_this = |options: &[String]| options.iter().any(|option| option == NOT_THIS);
        let wanted = !hidden
            && mount.source.starts_with('/')
            && !mount.source.starts_with("//")
            && mount.fs != "autofs"
            && !mount.read_only()
            && !not_this(&entry.options)
            && !not_this(&noted(&entry.target))
            && types.is_none_or(|types| matches(&mount.fs, types))
            && mount.mount_point.is_dir()
            && takes(mount);
        if wanted && seen.insert(mount.device) {
            selected.push(Selected {
                path: mount.mount_point.clone(),
                source: mount.source.clone(),
            });
        }
    }
    selected
}

fn takes_discards(sys: &SysRoot, mount: &Mount) -> bool {
    let tree = devices::under_mount(sys, mount);
    tree.devices
        .iter()
        .any(|device| device.level == 0 && device.discard.max_bytes > 0)
}

/// As mount(8) reads `-t`.
fn matches(fs: &str, types: &str) -> bool {
    let (no, list) = match types.strip_prefix("no") {
        Some(list) => (true, list),
        None => (false, types),
    };
    for name in list.split(',') {
        match name.strip_prefix("no") {
            Some(excluded) if excluded == fs => return no,
            _ if name == fs => return !no,
            _ => {}
        }
    }
    no || list.split(',').all(|name| name.starts_with("no"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_with_and_without_no() {
        assert!(matches("ext4", "ext4,xfs"));
        assert!(!matches("btrfs", "ext4,xfs"));
        assert!(!matches("ext4", "noext4,xfs") && !matches("xfs", "noext4,xfs"));
        assert!(matches("btrfs", "noext4,xfs"));
        assert!(!matches("ext4", "xfs,noext4"));
    }

    #[test]
    fn each_once_and_only_what_can_be_trimmed() {
        // Directories that every machine has.
        let text = b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
            2 1 8:2 / /usr ro - ext4 /dev/sda2 ro\n\
            3 1 8:1 /etc /etc rw - ext4 /dev/sda1 rw\n\
            4 1 0:9 / /proc rw - proc proc rw\n\
            5 1 8:3 / /dev rw - xfs /dev/sda3 rw\n\
            6 1 8:4 / /tmp rw - xfs /dev/sda4 rw\n\
            7 6 8:5 / /tmp rw - btrfs /dev/sda5 rw\n\
            8 1 0:8 / /var rw - cifs //host/share rw\n";
        let mounts = mounts::parse(text);
        let entries = linux::fstab::parse(text);
        let none = |_: &PathBuf| Vec::new();
        let all = |_: &Mount| true;
        let paths = |entries: &[Entry], types, noted: &dyn Fn(&PathBuf) -> Vec<String>| {
            let found = chosen(entries, types, &mounts, noted, &all);
            let path = |one: &Selected| one.path.display().to_string();
            found.iter().map(path).collect::<Vec<_>>()
        };
        assert_eq!(paths(&entries, None, &none), ["/", "/dev", "/tmp"]);
        assert_eq!(paths(&entries, Some("noxfs"), &none), ["/", "/tmp"]);
        let root = |target: &PathBuf| match target.parent() {
            None => vec![NOT_THIS.to_owned()],
            Some(_) => Vec::new(),
        };
        // The bind mount stands in for what isn't wanted under its own name.
        assert_eq!(paths(&entries, None, &root), ["/etc", "/dev", "/tmp"]);
        let fstab = linux::fstab::parse(b"/dev/sda1 / ext4 defaults\n/dev/sda9 /boot ext4 ro\n");
        assert_eq!(paths(&fstab, None, &none), ["/"]);
        assert_eq!(chosen(&entries, None, &mounts, &none, &|_| false), []);
    }
}
