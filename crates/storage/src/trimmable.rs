//! Which of many file systems are trimmed, as fstrim(8) chooses.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use linux::SysRoot;
use linux::fstab::{Entry, noted_options};
use linux::mounts::{self, Mount, MountError};
use record::units::names::quoted;

use crate::devices;

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

/// Why it is unknown which file systems to trim.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SelectError {
    #[error("what is mounted is unknown: {0}")]
    Mounts(#[from] MountError),
    #[error(
        "cannot read {}: {}; name a table that can be read",
        quoted(path),
        without_number(source)
    )]
    Table { path: PathBuf, source: io::Error },
}

/// The table of what is to be mounted.
pub const FSTAB: &str = "/etc/fstab";

/// The table of what is mounted.
pub const MOUNTED: &str = "/proc/self/mountinfo";

/// Of the entries of a table those that are mounted, writable, reached by their paths, and on
/// devices that take discards. They aren't marked `X-fstrim.notrim` and have one of these types;
/// each file system comes once. `files`: tables with colons between them, of which
/// the first counts that has an entry. `types`: names with commas between them; `no`
/// before the list or a name excludes.
///
/// # Errors
/// If the list of mounts or all tables can't be read. A machine
/// without an fstab has an empty one.
pub fn select(files: &str, types: Option<&str>) -> Result<Vec<Selected>, SelectError> {
    let sys = SysRoot::host();
    let mounts = mounts::list(&sys)?;
    select_in(&sys, &mounts, files, types)
}

/// [`select`] of the mounts of any tree.
///
/// # Errors
/// If none of the tables can be read.
pub fn select_in(
    sys: &SysRoot,
    mounts: &[Mount],
    files: &str,
    types: Option<&str>,
) -> Result<Vec<Selected>, SelectError> {
    let root = || {
        mounts
            .iter()
            .rfind(|mount| mount.mount_point == Path::new("/"))
    };
    let entries = &listed(files, &|file| std::fs::read(sys.path(file)), &root)?;
    let utab = std::fs::read(sys.path("/run/mount/utab")).unwrap_or_default();
    let noted = |target: &PathBuf| noted_options(&utab, target);
    let visible = |mount: &Mount| match sys.is_host() {
        true => is_visible(mount),
        false => is_on_top(mounts, mount),
    };
    let takes = |mount: &Mount| takes_discards(sys, mount);
    Ok(chosen(entries, types, mounts, &noted, &visible, &takes))
}

/// The entries of the first table that has any. `read`: what is in a file.
///
/// Skips tables that can't be read, as fstrim(8) does, and fails if none can.
fn listed<'a>(
    files: &str,
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
    root: &dyn Fn() -> Option<&'a Mount>,
) -> Result<Vec<Entry>, SelectError> {
    let (mut readable, mut failed) = (false, None);
    for file in files.split(':').filter(|file| !file.is_empty()) {
        let text = match read(file) {
            Ok(text) => text,
            Err(error) if file == FSTAB && error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => {
                let path = PathBuf::from(file);
                failed.get_or_insert(SelectError::Table { path, source });
                continue;
            }
        };
        readable = true;
        let mut entries = linux::fstab::parse(&text);
        // One that lists nothing but swap space counts, too.
        if entries.is_empty() {
            continue;
        }
        // The root file system is trimmed even where fstab doesn't list it.
        if file == FSTAB && !entries.iter().any(|entry| entry.target == Path::new("/")) {
            entries.extend(root().cloned().map(Entry::from));
        }
        return Ok(entries);
    }
    match failed {
        Some(error) if !readable => Err(error),
        _ => Ok(Vec::new()),
    }
}

/// The same, of what the machine says.
fn chosen(
    entries: &[Entry],
    types: Option<&str>,
    mounts: &[Mount],
    noted: &dyn Fn(&PathBuf) -> Vec<String>,
    visible: &dyn Fn(&Mount) -> bool,
    takes: &dyn Fn(&Mount) -> bool,
) -> Vec<Selected> {
    let mut seen = HashSet::new();
    let mut selected = Vec::new();
    for entry in entries {
        let meant = |mount: &&Mount| {
            mount.mount_point == entry.target
                && entry.mount.as_ref().is_none_or(|own| own.id == mount.id)
        };
        let not_this = |options: &[String]| options.iter().any(|option| option == NOT_THIS);
        let wanted = |mount: &&Mount| {
            !seen.contains(&mount.device)
                && mount.source.starts_with('/')
                && !mount.source.starts_with("//")
                && mount.fs != "autofs"
                && !mount.read_only()
                && !not_this(&entry.options)
                && !not_this(&noted(&entry.target))
                && types.is_none_or(|types| matches(&mount.fs, types))
                && visible(mount)
                && takes(mount)
        };
        // Of several that lie on one another only one is visible.
        let Some(mount) = mounts.iter().filter(meant).find(wanted) else {
            continue;
        };
        seen.insert(mount.device);
        selected.push(Selected {
            path: mount.mount_point.clone(),
            source: mount.source.clone(),
        });
    }
    selected
}

/// Whether its path leads to it: another may be mounted there, or over a directory
/// above it, and have a directory of the same name.
fn is_visible(mount: &Mount) -> bool {
    let path = &mount.mount_point;
    path.is_dir() && mounts::id_at(path).is_ok_and(|found| found == mount.id)
}

/// The same in a recorded tree: of several at one place the last is visible.
fn is_on_top(mounts: &[Mount], mount: &Mount) -> bool {
    let top = mounts
        .iter()
        .rfind(|one| one.mount_point == mount.mount_point);
    top.is_some_and(|top| top.id == mount.id)
}

/// The words of an error of the system, without its number.
fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn takes_discards(sys: &SysRoot, mount: &Mount) -> bool {
    let tree = devices::under_mount(sys, mount);
    tree.devices
        .iter()
        .any(|device| device.level == 0 && device.discard.max_bytes > 0)
}

/// As mount(8) reads `-t`: `no` before the list excludes all that it names, and
/// before a name that one, in a list of either kind.
fn matches(fs: &str, types: &str) -> bool {
    let (no, list) = match types.strip_prefix("no") {
        Some(list) => (true, list),
        None => (false, types),
    };
    for name in list.split(',') {
        if name == fs {
            return !no;
        }
        if name.strip_prefix("no") == Some(fs) {
            return false;
        }
    }
    no
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
        assert!(!matches("ext4", "noext4,noxfs") && !matches("xfs", "noext4,noxfs"));
        assert!(matches("btrfs", "noext4,noxfs"));
        assert!(matches("xfs", "noext4,btrfs") && matches("xfs", "xfs,noext4"));
        assert!(!matches("btrfs", "xfs,noext4"));
    }

    #[test]
    fn each_once_and_only_what_can_be_trimmed() {
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
        let on_top = |mount: &Mount| mount.id != 6;
        let all = |_: &Mount| true;
        let paths = |entries: &[Entry], types, noted: &dyn Fn(&PathBuf) -> Vec<String>| {
            let found = chosen(entries, types, &mounts, noted, &on_top, &all);
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
        let takes_none = chosen(&entries, None, &mounts, &none, &on_top, &|_| false);
        assert_eq!(takes_none, []);
    }

    #[test]
    fn what_its_path_does_not_lead_to_is_left() {
        let text = b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
            2 1 8:17 / /data/x rw - ext4 /dev/sdb1 rw\n\
            3 1 8:33 / /data rw - xfs /dev/sdc1 rw\n";
        let mounts = mounts::parse(text);
        let none = |_: &PathBuf| Vec::new();
        let all = |_: &Mount| true;
        let sources = |table: &[u8], visible: &dyn Fn(&Mount) -> bool| {
            let entries = linux::fstab::parse(table);
            let found = chosen(&entries, None, &mounts, &none, visible, &all);
            found.into_iter().map(|one| one.source).collect::<Vec<_>>()
        };
        let fstab = b"/dev/sdb1 /data/x ext4 rw\n";
        // The third is mounted over the directory in which the second is.
        let not_below = |mount: &Mount| mount.id != 2;
        assert_eq!(sources(text, &not_below), ["/dev/sda1", "/dev/sdc1"]);
        assert_eq!(sources(fstab, &not_below), [""; 0]);
        assert_eq!(sources(fstab, &all), ["/dev/sdb1"]);
    }

    #[test]
    fn the_visible_one_counts_whichever_is_listed_last() {
        let text = b"1 0 8:1 / /a rw - ext4 /dev/sda1 rw\n\
            2 1 8:2 / /a rw - ext4 /dev/sda2 rw\n";
        let mounts = mounts::parse(text);
        let none = |_: &PathBuf| Vec::new();
        for table in [&text[..], b"/dev/x /a auto rw\n"] {
            let entries = linux::fstab::parse(table);
            for (id, source) in [(1, "/dev/sda1"), (2, "/dev/sda2")] {
                let on_top = |mount: &Mount| mount.id == id;
                let found = chosen(&entries, None, &mounts, &none, &on_top, &|_| true);
                let sources: Vec<&str> = found.iter().map(|one| one.source.as_str()).collect();
                assert_eq!(sources, [source]);
            }
        }
    }

    #[test]
    fn a_mount_is_told_from_what_lies_at_its_path() {
        let proc = Mount::of("/proc/self").unwrap();
        assert!(is_visible(&proc));
        let elsewhere = |path: &str| Mount {
            mount_point: path.into(),
            ..proc.clone()
        };
        assert!(!is_visible(&elsewhere("/")));
        assert!(!is_visible(&elsewhere("/no/such")));
        assert!(!is_visible(&elsewhere("/proc/version")), "no directory");
    }

    #[test]
    fn a_table_of_swap_alone_is_the_one_that_counts() {
        let read = |file: &str| match file {
            FSTAB | "/swap" => Ok(b"UUID=1 none swap sw 0 0\n".to_vec()),
            "/comments" => Ok(b"# nothing\n\n".to_vec()),
            "/data" => Ok(b"/dev/sdb1 /data ext4 rw\n".to_vec()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let at_root = Mount::of("/").ok();
        let root = || at_root.as_ref();
        let targets = |files: &str| {
            let entries = listed(files, &read, &root).unwrap();
            let target = |entry: Entry| entry.target.display().to_string();
            entries.into_iter().map(target).collect::<Vec<_>>()
        };
        assert_eq!(targets("/swap:/data"), ["none"]);
        assert_eq!(targets("/missing::/comments:/data"), ["/data"]);
        // Of the machine's table the root file system is a part, if it can be told.
        let fstab = listed("/etc/fstab:/data", &read, &root).unwrap();
        let expected = at_root.clone().map(Entry::from);
        assert_eq!(fstab[1..], *expected.as_slice());
        // What isn't mounted at a path is never chosen.
        let mounts = mounts::parse(b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
        let none = |_: &PathBuf| Vec::new();
        let all = |_: &Mount| true;
        assert_eq!(chosen(&fstab[..1], None, &mounts, &none, &all, &all), []);
    }

    #[test]
    fn it_is_said_where_no_table_can_be_read() {
        let read = |file: &str| match file {
            "/comments" => Ok(b"# nothing\n\n".to_vec()),
            "/mine" => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let root = || None;
        for files in ["/none", "/none:/mine", ":/none:"] {
            let error = listed(files, &read, &root).unwrap_err().to_string();
            assert!(error.contains("'/none'"), "{files}: {error}");
        }
        // One that lists nothing can be read all the same, and no machine needs an fstab.
        for files in ["", "/comments", "/none:/comments", "/comments:/mine", FSTAB] {
            assert_eq!(listed(files, &read, &root).unwrap(), [], "{files}");
        }
    }
}
