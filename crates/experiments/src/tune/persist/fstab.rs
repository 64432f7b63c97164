//! The line of fstab that the user has to change, so that a mount keeps its option.

use std::fs;
use std::path::{Path, PathBuf};

use linux::SysRoot;
use linux::mounts::{self, Mount};
use storage::FileSystem;

use crate::tune::target::Target;

/// A change that fstab needs for the mount's option to outlast a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FstabChange {
    /// The file.
    pub path: PathBuf,
    /// The line, if there is one for the file system's own mount.
    pub line: Option<FstabLine>,
    /// The option that the line needs.
    pub option: &'static str,
    /// Whether the target is a bind mount, on whose line the option has no effect.
    pub is_bind: bool,
}

/// The change that fstab below `etc` needs for a file system that is to be mounted with
/// discard (`online`) or without; `None` where it needs none.
pub fn fstab_change(target: &Target, online: bool, etc: &Path) -> Option<FstabChange> {
    let text = text(etc);
    let own = own_place(&target.mount, &text);
    let is_bind = own.as_ref() != Some(&target.mount.mount_point);
    let option = match online {
        true => FileSystem::mounted(&target.mount).discard_option(),
        false => "nodiscard",
    };
    let line = own.and_then(|own| fstab_line(&text, &own, option));
    // Where nothing has changed now, what isn't said there is as the file system has it; and
    // which of its ways of discarding btrfs is to have for good was not compared.
    let contrary = if online { "nodiscard" } else { "discard" };
    let is_needed = match &line {
        _ if online != target.is_online() => true,
        Some(line) => line.is_with(contrary),
        None => false,
    };
    is_needed.then(|| FstabChange {
        path: etc.join("fstab"),
        line,
        option,
        is_bind,
    })
}

/// The mount point at which a remount changes the file system's own options: a bind mount
/// has only its own. The target's mount point where none can be seen from here.
pub fn remount_point(target: &Target, etc: &Path) -> PathBuf {
    own_place(&target.mount, &text(etc)).unwrap_or_else(|| target.mount.mount_point.clone())
}

/// The content of fstab; empty where there is none.
fn text(etc: &Path) -> String {
    let text = fs::read(etc.join("fstab")).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

/// Where the file system is mounted by itself, which its options belong to. A bind mount of
/// it, or of a part, has only its own. `None`: nowhere that can be seen from here.
fn own_place(mount: &Mount, fstab: &str) -> Option<PathBuf> {
    let is_own = |mount: &Mount| {
        // btrfs is mounted by itself with each of its subvolumes.
        let is_root = mount.root == Path::new("/") || FileSystem::mounted(mount).has_subvolumes();
        is_root && !is_bind(fstab, &mount.mount_point)
    };
    if is_own(mount) {
        return Some(mount.mount_point.clone());
    }
    let all = mounts::list(&SysRoot::host()).unwrap_or_default();
    all.into_iter()
        .find(|other| other.device == mount.device && is_own(other))
        .map(|own| own.mount_point)
}

/// A line of fstab, as it is and as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FstabLine {
    /// As it is.
    pub is: String,
    /// As it should be.
    pub should_be: String,
}

impl FstabLine {
    /// Whether it has an option now, whatever value that has.
    fn is_with(&self, option: &str) -> bool {
        let options = options_of(&self.is).unwrap_or_default();
        options.split(',').any(|one| name_of(one) == option)
    }
}

/// The line of a mount point with `discard`, `discard=sync` or `nodiscard`; `None` where fstab
/// has none, or where it says so already.
fn fstab_line(fstab: &str, mount_point: &Path, option: &str) -> Option<FstabLine> {
    let is = line_of(fstab, mount_point)?;
    let options = options_of(is)?;
    let mut wanted: Vec<&str> = options
        .split(',')
        .filter(|&one| !["nodiscard", "discard"].contains(&name_of(one)))
        .collect();
    wanted.push(option);
    let wanted = wanted.join(",");
    // The fourth field alone, and the line's own spaces.
    let offset = options.as_ptr() as usize - is.as_ptr() as usize;
    let should_be = format!("{}{wanted}{}", &is[..offset], &is[offset + options.len()..]);
    (should_be != is).then(|| FstabLine {
        is: is.to_owned(),
        should_be,
    })
}

/// Whether fstab shows there what is mounted elsewhere (a bind mount). Options of the file
/// system have no effect on such a line.
fn is_bind(fstab: &str, mount_point: &Path) -> bool {
    let options = line_of(fstab, mount_point).and_then(options_of);
    let is_one = |option| option == "bind" || option == "rbind";
    options.unwrap_or_default().split(',').any(is_one)
}

/// The line of a mount point: the last one, should there be several.
fn line_of<'a>(fstab: &'a str, mount_point: &Path) -> Option<&'a str> {
    fstab.lines().rfind(|line| {
        let entries = linux::fstab::parse(line.as_bytes());
        entries.iter().any(|entry| entry.target == mount_point)
    })
}

/// An option without its value.
fn name_of(option: &str) -> &str {
    option.split_once('=').map_or(option, |(name, _)| name)
}

/// The fourth field of a line.
fn options_of(line: &str) -> Option<&str> {
    line.split_whitespace().nth(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_field_of_fstab_changes() {
        let fstab = "# /dev/x /data ext4 discard 0 0\nUUID=1  /data\text4\tdefaults,discard,noatime 0 2\n/dev/y / ext4 defaults 0 1\n";
        let fstab_line = |fstab: &str, at: &str, online| {
            let option = if online { "discard" } else { "nodiscard" };
            fstab_line(fstab, Path::new(at), option)
        };
        let line = fstab_line(fstab, "/data", false).unwrap();
        assert_eq!(
            line.should_be,
            "UUID=1  /data\text4\tdefaults,noatime,nodiscard 0 2"
        );
        assert_eq!(
            fstab_line(fstab, "/data", true).unwrap().should_be,
            "UUID=1  /data\text4\tdefaults,noatime,discard 0 2"
        );
        let root = fstab_line(fstab, "/", true).unwrap();
        assert_eq!(root.should_be, "/dev/y / ext4 defaults,discard 0 1");
        assert_eq!(fstab_line(&root.should_be, "/", true), None);
        assert_eq!(fstab_line(fstab, "/home", true), None);
        assert_eq!(fstab_line("x", "/", true), None);
        let spaced =
            fstab_line("/dev/x /my\\040data xfs discard 0 0\n", "/my data", false).unwrap();
        assert_eq!(spaced.should_be, "/dev/x /my\\040data xfs nodiscard 0 0");
    }

    #[test]
    fn a_line_has_options_with_and_without_values() {
        let fstab = "/dev/x /data btrfs compress=zstd,discard=async 0 0\n";
        let line = fstab_line(fstab, Path::new("/data"), "discard=sync").unwrap();
        assert_eq!(
            line.should_be,
            "/dev/x /data btrfs compress=zstd,discard=sync 0 0"
        );
        assert!(line.is_with("discard") && line.is_with("compress"));
        assert!(!line.is_with("nodiscard"));
        assert_eq!(
            fstab_line(&line.should_be, Path::new("/data"), "discard=sync"),
            None
        );
    }

    #[test]
    fn a_bind_mount_is_told_by_its_line() {
        let fstab = "/dev/x /data ext4 defaults 0 2\n/data/a\\040b /srv none ro,bind 0 0\n\
                     /data /all none rbind\n#/data /data none bind 0 0\n/dev/y /half ext4\n";
        let is = |at: &str| is_bind(fstab, Path::new(at));
        assert!(is("/srv") && is("/all"));
        assert!(!is("/data") && !is("/half") && !is("/none"));
    }
}
