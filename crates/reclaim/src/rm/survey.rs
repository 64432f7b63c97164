//! How much there is to free, on which file system, before it is freed.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{Access, AtFlags, FileType};
use rustix::io::Errno;

use super::amounts::Amounts;
use super::arguments::Argument;
use crate::rm::tree::{At, Enter, Entry, Kind, Left, Root, Trail, Visit, walk};
use crate::watch::Beat;
use crate::{Progress, ReclaimError, Watch};

/// Adds up what a name holds, a directory with all that is in it. Returns how many
/// names that are. Removes nothing, and fails at nothing: what can't be looked at now
/// is told when it is to be removed.
///
/// # Errors
/// If somebody stops it.
pub(super) fn survey(
    parent: BorrowedFd<'_>,
    name: &CStr,
    path: &Path,
    one_file_system: bool,
    amounts: &mut Amounts,
    watch: &mut dyn Watch,
) -> Result<u64, ReclaimError> {
    let Ok(stat) = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return Ok(0);
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        amounts.add(parent, stat.st_dev, &stat);
        return Ok(1);
    }
    let mut survey = Survey {
        amounts,
        watch,
        protected: None,
        names: 0,
        beat: Beat::default(),
    };
    let root = Root {
        parent,
        name,
        one_file_system,
        files_first: false,
    };
    walk(&root, &mut Trail::new(path), &mut survey)?;
    Ok(survey.names)
}

/// Whether one would be asked about anything in a tree.
///
/// # Errors
/// If somebody stops it.
pub(super) fn would_ask(
    argument: &Argument,
    parent: BorrowedFd<'_>,
    watch: &mut dyn Watch,
) -> Result<bool, ReclaimError> {
    if !argument.is_directory() {
        return Ok(is_protected(parent, &argument.name));
    }
    let mut survey = Survey {
        amounts: &mut Amounts::default(),
        watch,
        protected: Some(false),
        names: 0,
        beat: Beat::default(),
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
    watch: &'a mut dyn Watch,
    /// Look for names that one would be asked about, and stop at the first.
    protected: Option<bool>,
    names: u64,
    beat: Beat,
}

/// Whether one may write to a name, as rm asks it.
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
        self.beat.tick(self.watch, &Progress::default())?;
        if matches!(kind, Kind::File | Kind::Unknown)
            && let Ok(stat) = rustix::fs::statat(at.fd, name, AtFlags::SYMLINK_NOFOLLOW)
        {
            self.amounts.add(at.fd, at.device, &stat);
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
        self.beat.tick(self.watch, &Progress::default())?;
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
