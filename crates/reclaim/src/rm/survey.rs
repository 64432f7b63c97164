//! Surveys how much there is to free, and on which file system, before it is freed.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::Path;

use linux::subvolume::Subvolume;
use rustix::fs::{Access, AtFlags, FileType};
use rustix::io::Errno;

use super::places::Argument;
use super::remover::kept;
use super::volumes::Volumes;
use crate::event::{Listener, Reporter};
use crate::rm::tree::{At, Enter, Entry, Kind, Left, Root, Trail, Visit, walk};
use crate::{Progress, Result, directory};

/// Adds up what a name holds, a directory with all that is in it. Returns how many names that are.
/// It removes nothing and fails at nothing: the removal reports what can't be examined. With
/// `anticipate`, the volumes may begin to observe their devices meanwhile.
///
/// # Errors
/// [`ReclaimError::Interrupted`] if `listener` ends it.
pub(super) fn survey(
    name: &Surveyed<'_>,
    volumes: &mut Volumes,
    anticipate: bool,
    listener: &mut Listener<'_>,
) -> Result<u64> {
    let parent = name.parent;
    let Ok(stat) = rustix::fs::statat(parent, name.name, AtFlags::SYMLINK_NOFOLLOW) else {
        return Ok(0);
    };
    let device = directory::device(parent);
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        // A file's own number may be another: that of a file mounted there, or below an overlay.
        volumes.add(parent, device.unwrap_or(stat.st_dev), &stat);
        return Ok(1);
    }
    if is_added(parent, name.name, volumes) {
        return Ok(1);
    }
    let mut survey = Survey {
        volumes: Some(volumes),
        anticipated: device.filter(|_| anticipate).map(|device| (device, parent)),
        listener,
        protected: None,
        names: 0,
        reporter: Reporter::default(),
    };
    let root = Root {
        parent,
        name: name.name,
        one_file_system: name.one_file_system,
        files_first: false,
    };
    walk(&root, &mut Trail::new(name.path), &mut survey)?;
    Ok(survey.names)
}

/// Adds what only a subvolume has, where quotas count it, if a name is a subvolume.
fn is_added(parent: BorrowedFd<'_>, name: &CStr, volumes: &mut Volumes) -> bool {
    let found = Subvolume::at(parent, name);
    let found = found.filter(|found| kept(found, parent, false).is_none());
    let (Some(found), Some(device)) = (found, directory::device(parent)) else {
        return false;
    };
    let exclusive = directory::reopen(parent).ok();
    let exclusive = exclusive.and_then(|on| found.exclusive(on));
    volumes.add_subvolume(parent, device, exclusive);
    true
}

/// A name that is surveyed.
pub(super) struct Surveyed<'a> {
    /// The open directory that it is in.
    pub(super) parent: BorrowedFd<'a>,
    pub(super) name: &'a CStr,
    /// The path that the user gave.
    pub(super) path: &'a Path,
    /// Stop where another file system, or any other mount, begins.
    pub(super) one_file_system: bool,
}

/// Returns whether the user would be asked about any name in a tree.
///
/// # Errors
/// [`ReclaimError::Interrupted`] if `listener` ends it.
pub(super) fn would_ask(
    argument: &Argument,
    parent: BorrowedFd<'_>,
    listener: &mut Listener<'_>,
) -> Result<bool> {
    if !argument.is_directory() {
        return Ok(is_protected(parent, &argument.name));
    }
    let mut survey = Survey {
        volumes: None,
        anticipated: None,
        listener,
        protected: Some(false),
        names: 0,
        reporter: Reporter::default(),
    };
    let root = Root {
        parent,
        name: &argument.name,
        one_file_system: false,
        files_first: false,
    };
    walk(&root, &mut Trail::new(&argument.path), &mut survey)?;
    Ok(survey.protected == Some(true))
}

struct Survey<'a> {
    /// Files are added here as they are found.
    volumes: Option<&'a mut Volumes>,
    /// The device that may be observed early, and the directory that the tree is in, which stays.
    anticipated: Option<(u64, BorrowedFd<'a>)>,
    listener: &'a mut Listener<'a>,
    /// Look for names about which the user would be asked, and stop at the first. `None`: don't
    /// look.
    protected: Option<bool>,
    names: u64,
    reporter: Reporter,
}

/// Returns whether this user may not write to a name, by the same test as rm's.
pub(super) fn is_protected(directory: BorrowedFd<'_>, name: &CStr) -> bool {
    // A link has no permissions of its own, and nothing here follows one.
    let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
    matches!(
        rustix::fs::accessat(directory, name, Access::WRITE_OK, flags),
        Err(Errno::ACCESS)
    )
}

impl Survey<'_> {
    fn count(&mut self, at: At<'_>, name: &CStr, kind: Kind) -> Result<()> {
        self.names += 1;
        self.reporter.report(self.listener, Progress::default())?;
        if matches!(kind, Kind::File | Kind::Unknown)
            && let Some(volumes) = &mut self.volumes
            && let Ok(stat) = rustix::fs::statat(at.fd, name, AtFlags::SYMLINK_NOFOLLOW)
        {
            volumes.add(at.fd, at.device, &stat);
            if let Some((device, parent)) = self.anticipated
                && device == at.device
                && !volumes.anticipate(parent, device)
            {
                self.anticipated = None;
            }
        }
        if let Some(found) = &mut self.protected {
            *found |= kind != Kind::Other && is_protected(at.fd, name);
        }
        Ok(())
    }
}

impl Visit for Survey<'_> {
    fn enter(&mut self, at: At<'_>, _: &Trail) -> Result<Enter> {
        self.names += 1;
        self.reporter.report(self.listener, Progress::default())?;
        if let Some(found) = &mut self.protected {
            *found |= is_protected(at.fd, c".");
        }
        Ok(match self.protected {
            Some(true) => Enter::No,
            _ => Enter::Yes,
        })
    }

    fn name(&mut self, at: At<'_>, entry: Entry<'_>, _: &Trail) -> Result<bool> {
        self.count(at, entry.name, entry.kind)?;
        Ok(true)
    }

    fn whole(&mut self, parent: BorrowedFd<'_>, name: &CStr, _: &Trail) -> Result<Option<bool>> {
        let volumes = self.volumes.as_mut();
        let added = volumes.is_some_and(|volumes| is_added(parent, name, volumes));
        self.names += u64::from(added);
        Ok(added.then_some(true))
    }

    fn leave(&mut self, _: BorrowedFd<'_>, _: &CStr, _: &Trail) -> Result<Left> {
        Ok(Left::Done)
    }

    fn failed(
        &mut self,
        parent: Option<BorrowedFd<'_>>,
        name: &CStr,
        _: &Trail,
        _: Errno,
    ) -> Result<bool> {
        if let (Some(found), Some(parent)) = (&mut self.protected, parent) {
            *found |= is_protected(parent, name);
        }
        Ok(true)
    }

    fn removed(&self) -> u64 {
        0
    }
}
