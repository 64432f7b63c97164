//! Control groups: threads in them, and their directories.
//!
//! Version 1 has threads of a process in different groups, and a thread begins in the group of the
//! one that started it. So a thread that visits a group while it starts others puts those, and
//! nothing else, into it. Version 2 moves processes; its io controller knows no threads.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::mounts::Mount;

/// This thread in a group; in its former one again when this is dropped.
#[derive(Debug)]
#[must_use = "the thread goes back at once"]
pub struct Visit {
    back: PathBuf,
}

/// Whether threads of one process can be in different groups here: in version 1.
pub fn has_threads(group: &Path) -> bool {
    tasks(group).exists()
}

/// Why a group's pressure can't be watched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwatched {
    /// It is of version 1.
    #[error(
        "control groups of version 1 count no pressure; start the machine with version 2 \
         (systemd.unified_cgroup_hierarchy=1)"
    )]
    Version1,
    /// There is none of this name.
    #[error(
        "there is no such control group: it has none while it does not run (systemd-cgls lists all)"
    )]
    Missing,
    /// The kernel does not count.
    #[error("the kernel counts no pressure there: {0}; start it with psi=1")]
    NotCounted(String),
}

/// Where hierarchies are mounted: of version 2, and both of them beside those of version 1.
const ROOTS: [&str; 3] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/systemd",
];

/// Returns the directories of a group: `name` is a unit of systemd, or a path below /sys/fs/cgroup. Each
/// hierarchy may have one.
pub fn named(name: &str) -> Vec<PathBuf> {
    let unit = match name.contains('.') || name.contains('/') {
        true => name.to_owned(),
        false => format!("{name}.service"),
    };
    let inside = name
        .trim_start_matches("/sys/fs/cgroup")
        .trim_start_matches('/');
    let direct = ROOTS.iter().map(|root| Path::new(root).join(inside));
    let units = ROOTS
        .iter()
        .filter_map(|root| below(Path::new(root), &unit, 4));
    let all = direct.filter(|_| !inside.is_empty()).chain(units);
    all.filter(|directory| directory.join("cgroup.procs").is_file())
        .collect()
}

/// Returns a directory of this name, at most so deep.
fn below(directory: &Path, name: &str, depth: u32) -> Option<PathBuf> {
    let direct = directory.join(name);
    if direct.is_dir() {
        return Some(direct);
    }
    let deeper = depth.checked_sub(1)?;
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .find_map(|entry| below(&entry.path(), name, deeper))
}

/// Returns the directory of a group ([`named`]) whose pressure the kernel counts.
///
/// # Errors
/// [`Unwatched`].
pub fn watched(name: &str) -> Result<PathBuf, Unwatched> {
    let all = named(name);
    let is_v2 = |path: &&PathBuf| Mount::of(path).is_ok_and(|mount| mount.fs == "cgroup2");
    let Some(found) = all.iter().find(is_v2) else {
        return Err(match all.is_empty() {
            true => Unwatched::Missing,
            false => Unwatched::Version1,
        });
    };
    match crate::pressure::Pressure::of_group(found) {
        Ok(_) => Ok(found.clone()),
        Err(error) => Err(Unwatched::NotCounted(error.to_string())),
    }
}

/// Moves this thread into a group of version 1. Threads that it starts stay
/// there.
///
/// # Errors
/// The kernel's error: `EACCES` without the right to, `ENOENT` where there is no such group, or of
/// version 2.
pub fn visit(group: &Path) -> io::Result<Visit> {
    let mount = Mount::of(group).map_err(io::Error::other)?;
    let text = fs::read_to_string("/proc/thread-self/cgroup")?;
    let back = current(&text, &mount).unwrap_or_else(|| mount.mount_point.clone());
    // 0 is the thread that writes.
    fs::write(tasks(group), "0")?;
    Ok(Visit { back })
}

impl Drop for Visit {
    fn drop(&mut self) {
        // Its former group can only be gone if somebody removed it meanwhile.
        if fs::write(tasks(&self.back), "0").is_err()
            && let Some(above) = self.back.parent()
        {
            let _ = fs::write(tasks(above), "0");
        }
    }
}

/// Where a thread is in the hierarchy that is mounted so, by the text of its
/// `cgroup` file: `7:blkio:/path` (cgroups(7)).
fn current(text: &str, mount: &Mount) -> Option<PathBuf> {
    let path = text.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let ours = |c: &str| !c.is_empty() && mount.super_options.iter().any(|o| o == c);
        controllers.split(',').any(ours).then_some(path)
    })?;
    let below = Path::new(path).strip_prefix(&mount.root).ok()?;
    Some(mount.mount_point.join(below))
}

fn tasks(group: &Path) -> PathBuf {
    group.join("tasks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_its_name_at_any_depth() {
        let root = tempfile::tempdir().unwrap();
        let deep = root
            .path()
            .join("system.slice/system-db.slice/db@1.service");
        fs::create_dir_all(&deep).unwrap();
        assert_eq!(below(root.path(), "db@1.service", 4), Some(deep));
        assert_eq!(below(root.path(), "db@2.service", 4), None);
        assert_eq!(watched("db@2.service"), Err(Unwatched::Missing));
    }

    #[test]
    fn finds_where_a_thread_is() {
        let line = b"17 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n";
        let mut mount = crate::mounts::parse(line).remove(0);
        let text = "8:memory:/m\n7:name=systemd:/s\n6:blkio:/a/b\n0::/\n";
        let at = |mount: &Mount| current(text, mount);
        let root = Path::new("/sys/fs/cgroup/blkio");
        assert_eq!(at(&mount), Some(root.join("a/b")));
        // In a container the mount shows a part of the tree.
        mount.root = "/a".into();
        assert_eq!(at(&mount), Some(root.join("b")));
        mount.root = "/elsewhere".into();
        assert_eq!(at(&mount), None);
        mount.super_options = vec!["cpu".to_owned()];
        assert_eq!(at(&mount), None);
    }
}
