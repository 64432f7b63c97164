//! Deletes subvolumes and snapshots of btrfs.
//!
//! The kernel frees a deleted subvolume in the background, at its own pace, which nothing can slow
//! down. So large files of a writable subvolume that no other one shares are emptied before, as the
//! pacer allows, once the subvolume is in a trash. The next subvolumes wait until the kernel has
//! freed the last ones and the goal allows more. Where nothing is paced, nothing waits.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

use linux::files::extents_within;
use linux::mounts::Mount;
use linux::subvolume::{Kept, Subvolume};
use record::units::names::quoted;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::{Item, Remover};
use crate::event::Problem;
use crate::rm::places::frees;
use crate::rm::trash::Trash;
use crate::rm::tree::{At, Enter, Entry, Kind, Left, Root, Trail, Visit, walk};
use crate::volume::LARGE;
use crate::{Result, directory};

impl Remover<'_> {
    /// Deletes a subvolume. Returns whether its name is gone.
    pub(super) fn subvolume(&mut self, item: &Item<'_>, found: &Subvolume) -> Result<bool> {
        let (parent, path) = (item.parent, item.path);
        let opened = At::of(parent).and_then(|at| Ok((at, directory::reopen(parent)?)));
        let (at, on) = match opened {
            Ok(opened) => opened,
            Err(errno) => return self.stays(path, Problem::System(errno)),
        };
        let hear = &mut |event: crate::Event<'_>| self.dialogue.hear(event);
        self.volumes.note_full_speed(at, hear);
        self.volumes.prepare(at, &self.current, hear)?;
        if let Some(trash) = item.trash.filter(|_| !found.read_only) {
            self.begun = true;
            self.large_files(item, trash)?;
        }
        let hear = &mut |event: crate::Event<'_>| self.dialogue.hear(event);
        let deleted = match self.volumes.of(at.device) {
            Some(volume) => volume.delete_subvolume(found, path, found.exclusive(&on), hear)?,
            None => found.delete(&on),
        };
        match deleted {
            Ok(()) => self.dialogue.gone(path, true),
            Err(error) => return self.stays(path, refused(&error)),
        }
        Ok(true)
    }

    /// Empties and removes the large files that only this subvolume has.
    fn large_files(&mut self, item: &Item<'_>, trash: &Trash) -> Result<()> {
        let root = Root {
            parent: item.parent,
            name: item.name,
            one_file_system: true,
            files_first: true,
        };
        let mut visit = LargeFiles {
            remover: self,
            trash,
        };
        walk(&root, &mut Trail::new(item.path), &mut visit).map(drop)
    }
}

/// Explains why the kernel does not delete a subvolume.
fn refused(error: &std::io::Error) -> Problem {
    match Errno::from_io_error(error) {
        Some(Errno::PERM) => Problem::Words(
            "the kernel refuses, as for the default subvolume, one that is being sent, or one with a \
             swap file in use"
                .to_owned(),
        ),
        Some(errno) => Problem::System(errno),
        None => Problem::Words(crate::error::words(error)),
    }
}

/// Removes large files, and nothing else.
struct LargeFiles<'r, 'a> {
    remover: &'r mut Remover<'a>,
    trash: &'r Trash,
}

impl Visit for LargeFiles<'_, '_> {
    fn enter(&mut self, _: At<'_>, _: &Trail) -> Result<Enter> {
        self.remover.dialogue.step()?;
        Ok(Enter::Yes)
    }

    fn name(&mut self, at: At<'_>, entry: Entry<'_>, trail: &Trail) -> Result<bool> {
        self.remover.dialogue.step()?;
        if entry.kind != Kind::Other && is_large_and_unshared(at.fd, entry.name) {
            let path = trail.of(entry.name);
            self.remover.name(at, entry.name, &path, Some(self.trash))?;
        }
        Ok(true)
    }

    fn leave(&mut self, _: BorrowedFd<'_>, _: &CStr, _: &Trail) -> Result<Left> {
        Ok(Left::Done)
    }

    fn failed(&mut self, _: Option<BorrowedFd<'_>>, _: &CStr, _: &Trail, _: Errno) -> Result<bool> {
        Ok(true)
    }

    fn removed(&self) -> u64 {
        self.remover.names()
    }
}

/// Returns whether a file is large and no snapshot or other file shares any of it.
fn is_large_and_unshared(at: BorrowedFd<'_>, name: &CStr) -> bool {
    let stat = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| frees(&stat) >= LARGE)
        && directory::open(at, name).is_ok_and(|file| {
            extents_within(&file, 0, u64::MAX)
                .is_ok_and(|extents| extents.iter().all(|extent| !extent.shared))
        })
}

/// Returns why a subvolume is not deleted, if `btrfs subvolume delete` would refuse it, or would leave
/// a mount without its files. `parent`: the open directory that it is in. `has_mounts`: something is
/// mounted in it.
pub(in crate::rm) fn kept(
    subvolume: &Subvolume,
    parent: BorrowedFd<'_>,
    has_mounts: bool,
) -> Option<String> {
    if let Some(mount) = mounted(subvolume, parent) {
        let mount = quoted(mount);
        return Some(format!(
            "the subvolume is mounted at {mount}: unmount it first"
        ));
    }
    if has_mounts {
        return Some("something is mounted in the subvolume: unmount that first".to_owned());
    }
    let on = directory::reopen(parent).ok()?;
    match subvolume.kept(on).ok()?? {
        Kept::Contains(name) => {
            let name = quoted(name);
            Some(format!(
                "it contains the subvolume {name}: remove that first"
            ))
        }
        Kept::Default => Some(
            "it is the default subvolume: choose another first (btrfs subvolume set-default)"
                .to_owned(),
        ),
    }
}

/// Returns where a subvolume of the file system of an open directory is mounted, or a part of it.
fn mounted(subvolume: &Subvolume, on: BorrowedFd<'_>) -> Option<PathBuf> {
    let own = Mount::of(format!("/proc/self/fd/{}", on.as_raw_fd())).ok()?;
    let option = format!("subvolid={}", subvolume.id);
    let mounts = linux::mounts::list(&linux::SysRoot::host()).ok()?;
    let mut mounts = mounts.into_iter();
    mounts
        .find(|mount| mount.device == own.device && mount.super_options.contains(&option))
        .map(|mount| mount.mount_point)
}
