//! Mount namespaces where the kernel lists none (before Linux 6.12): those of all threads, and
//! those that a mount or a descriptor keeps.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, OFlags};
use rustix::io::Errno;

use super::Unknown;
use super::inside::MountId;
use super::look::{Entry, Look};
use crate::mounts::{self, Mount};
use crate::tasks;

/// Namespaces by the numbers that their links show: `mnt:[4026531832]`.
struct Older<'l, 'a> {
    look: &'l mut Look<'a>,
    seen: HashSet<u64>,
    /// Namespaces that are mounted somewhere and couldn't be opened there.
    missed: HashSet<u64>,
    examined: u64,
}

/// Looks at the mounts of all namespaces. Returns their number.
///
/// # Errors
/// Why they aren't known.
pub(super) fn look(look: &mut Look<'_>) -> Result<u64, Unknown> {
    let mut older = Older {
        look,
        seen: HashSet::new(),
        missed: HashSet::new(),
        examined: 0,
    };
    for pid in tasks::processes() {
        let mut first = true;
        for thread in tasks::threads(pid) {
            let task = PathBuf::from(format!("{pid}/task/{}", thread.tid));
            older.link(&task.join("ns/mnt"))?;
            // Threads have one table of descriptors, as a rule.
            if std::mem::take(&mut first) || !tasks::shares_descriptors(pid, thread.tid) {
                older.descriptors(&task.join("fd"))?;
            }
        }
    }
    match older.missed.is_subset(&older.seen) {
        true => Ok(older.examined),
        false => Err(Unknown::Namespace(Errno::NOENT)),
    }
}

impl Older<'_, '_> {
    /// Looks into a namespace that a link of `/proc` leads to, unless it was seen.
    fn link(&mut self, path: &Path) -> Result<(), Unknown> {
        self.look.spend()?;
        let inside = self.look.inside;
        let Some(text) = there(inside.link(path))? else {
            return Ok(());
        };
        let Some(number) = number(&text).filter(|number| !self.seen.contains(number)) else {
            return Ok(());
        };
        match there(inside.open_proc(path, OFlags::RDONLY))? {
            Some(namespace) => self.namespace(&namespace, number),
            None => Ok(()),
        }
    }

    /// Looks into the namespaces that the descriptors of a thread keep.
    fn descriptors(&mut self, directory: &Path) -> Result<(), Unknown> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let Some(opened) = there(self.look.inside.open_proc(directory, flags))? else {
            return Ok(());
        };
        for entry in Dir::new(opened)?.flatten() {
            let name = entry.file_name().to_bytes();
            if !name.starts_with(b".") {
                self.link(&directory.join(OsStr::from_bytes(name)))?;
            }
        }
        Ok(())
    }

    /// Looks at the mounts of a namespace, and into those that are mounted there.
    fn namespace(&mut self, namespace: &OwnedFd, number: u64) -> Result<(), Unknown> {
        self.seen.insert(number);
        self.look.inside.enter(namespace)?;
        let text = self.look.inside.mountinfo()?;
        let mut kept = Vec::new();
        for line in text.split(|&byte| byte == b'\n') {
            self.look.spend()?;
            let Some(mount) = mounts::parse(line).pop() else {
                continue;
            };
            self.examined += 1;
            kept.extend(self.kept(&mount));
            // Only an overlay has this option.
            if let Some(path) = mount.super_option("upperdir") {
                let upper = self.look.upper_at(Path::new(path), &mount.mount_point);
                self.look.overlay(mount.device, upper);
                self.look.inside.enter(namespace)?;
            }
            let entry = entry(mount);
            if self.look.may_be_it(&entry) {
                self.look.part(&entry);
            }
        }
        for (namespace, number) in kept {
            if !self.seen.contains(&number) {
                self.namespace(&namespace, number)?;
            }
        }
        Ok(())
    }

    /// Opens a namespace that is mounted in the one that was entered.
    fn kept(&mut self, mount: &Mount) -> Option<(OwnedFd, u64)> {
        let number = number(mount.root.to_str()?)?;
        let opened = self.look.inside.namespace_at(&mount.mount_point, number);
        if opened.is_none() {
            self.missed.insert(number);
        }
        opened.map(|opened| (opened, number))
    }
}

fn entry(mount: Mount) -> Entry {
    Entry {
        id: MountId::Reused(mount.id),
        device: mount.device,
        root: mount.root,
        point: mount.mount_point,
    }
}

fn number(link: &str) -> Option<u64> {
    let number = link.strip_prefix("mnt:[")?.strip_suffix(']')?;
    number.parse().ok()
}

/// Returns `None` for what belongs to a task that has ended.
fn there<T>(found: Result<T, Errno>) -> Result<Option<T>, Unknown> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}
