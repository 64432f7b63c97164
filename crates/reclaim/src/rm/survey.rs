//! Surveys how much there is to free, and on which file system, before it is freed.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{Access, AtFlags, FileType};
use rustix::io::Errno;

use super::amounts::Amounts;
use super::arguments::Argument;
use super::remover::LARGE;
use crate::event::{Listener, Reporter};
use crate::reclaimer::Reclaimers;
use crate::rm::tree::{At, Enter, Entry, Kind, Left, Root, Trail, Visit, walk};
use crate::{Progress, ReclaimError};

/// Adds up what a name holds, a directory with all that is in it. Returns how many names that are.
/// It removes nothing and fails at nothing: the removal reports what can't be examined. It
/// announces to `reclaimers` what they will have to free.
///
/// # Errors
/// [`ReclaimError::Interrupted`] if `listener` ends it.
pub(super) fn survey(
    name: &Surveyed<'_>,
    amounts: &mut Amounts,
    reclaimers: Option<&mut dyn Reclaimers>,
    listener: &mut Listener<'_>,
) -> Result<u64, ReclaimError> {
    let parent = name.parent;
    let Ok(stat) = rustix::fs::statat(parent, name.name, AtFlags::SYMLINK_NOFOLLOW) else {
        return Ok(0);
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        amounts.add(parent, stat.st_dev, &stat);
        return Ok(1);
    }
    let device = rustix::fs::fstat(parent).map(|stat| stat.st_dev).ok();
    let mut survey = Survey {
        amounts,
        announced: reclaimers.map(|reclaimers| Announced {
            reclaimers,
            parent: device.map(|device| (device, parent)),
            last: None,
        }),
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

/// The work that was announced to the reclaimers.
struct Announced<'a> {
    reclaimers: &'a mut dyn Reclaimers,
    /// The directory that the tree is in, which stays, and its device.
    parent: Option<(u64, BorrowedFd<'a>)>,
    /// The device that was announced last, and whether a large file was.
    last: Option<(u64, bool)>,
}

impl Announced<'_> {
    /// Announces once what is found on a device, and again with the first large file.
    fn found(&mut self, amounts: &Amounts, device: u64) {
        if self.last == Some((device, true)) {
            return;
        }
        let large = amounts.holds(device, LARGE);
        let (Some((parent_device, parent)), amount) = (self.parent, amounts.of(device)) else {
            return;
        };
        let news = self.last != Some((device, large)) && amount.bytes >= LARGE;
        if news && parent_device == device {
            self.last = Some((device, large));
            self.reclaimers.anticipate(parent, amount, large);
        }
    }
}

/// Returns whether the user would be asked about any name in a tree.
///
/// # Errors
/// [`ReclaimError::Interrupted`] if `listener` ends it.
pub(super) fn would_ask(
    argument: &Argument,
    parent: BorrowedFd<'_>,
    listener: &mut Listener<'_>,
) -> Result<bool, ReclaimError> {
    if !argument.is_directory() {
        return Ok(is_protected(parent, &argument.name));
    }
    let mut survey = Survey {
        amounts: &mut Amounts::default(),
        announced: None,
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
    amounts: &'a mut Amounts,
    announced: Option<Announced<'a>>,
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
    fn count(&mut self, at: At<'_>, name: &CStr, kind: Kind) -> Result<(), ReclaimError> {
        self.names += 1;
        self.reporter.report(self.listener, Progress::default())?;
        if matches!(kind, Kind::File | Kind::Unknown)
            && let Ok(stat) = rustix::fs::statat(at.fd, name, AtFlags::SYMLINK_NOFOLLOW)
        {
            self.amounts.add(at.fd, at.device, &stat);
            if let Some(announced) = &mut self.announced {
                announced.found(self.amounts, at.device);
            }
        }
        if let Some(found) = &mut self.protected {
            *found |= kind != Kind::Other && is_protected(at.fd, name);
        }
        Ok(())
    }
}

impl Visit for Survey<'_> {
    fn enter(&mut self, at: At<'_>, _: &Trail) -> Result<Enter, ReclaimError> {
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

    fn name(&mut self, at: At<'_>, entry: Entry<'_>, _: &Trail) -> Result<bool, ReclaimError> {
        self.count(at, entry.name, entry.kind)?;
        Ok(true)
    }

    fn leave(&mut self, _: BorrowedFd<'_>, _: &CStr, _: &Trail) -> Result<Left, ReclaimError> {
        Ok(Left::Done)
    }

    fn failed(
        &mut self,
        parent: Option<BorrowedFd<'_>>,
        name: &CStr,
        _: &Trail,
        _: Errno,
    ) -> Result<bool, ReclaimError> {
        if let (Some(found), Some(parent)) = (&mut self.protected, parent) {
            *found |= is_protected(parent, name);
        }
        Ok(true)
    }

    fn removed(&self) -> u64 {
        0
    }
}
