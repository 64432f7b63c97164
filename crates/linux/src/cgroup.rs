//! Threads in control groups.
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
