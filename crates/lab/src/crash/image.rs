//! From a log and a state to a file with the drive's contents.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ioctl_ficlone, open};

use super::read::{Recorded, What};
use super::states::{Landed, State, Torn};
use crate::store;

/// The durable contents of a drive, moved forward through its log.
pub(super) struct Image<'a> {
    log: &'a Recorded,
    /// The log's writes and discards.
    changes: Vec<&'a What>,
    file: File,
    /// The number of them that are in the file.
    applied: usize,
    unit: Torn,
}

impl<'a> Image<'a> {
    /// An empty drive, in a file without a name in a directory.
    pub(super) fn new(log: &'a Recorded, unit: Torn, dir: &Path) -> io::Result<Image<'a>> {
        let file = nameless(dir)?;
        file.set_len(log.size)?;
        Ok(Image {
            log,
            changes: log.records.iter().filter(|what| what.is_change()).collect(),
            file,
            applied: 0,
            unit,
        })
    }

    /// Makes a file with a state's contents, without a name in a directory. States come in order.
    pub(super) fn of(&mut self, state: &State, dir: &Path) -> io::Result<File> {
        while self.applied < state.durable.min(self.changes.len()) {
            self.apply(&self.file, self.applied, Landed::Whole)?;
            self.applied += 1;
        }
        let file = nameless(dir)?;
        copy_data(&self.file, &file)?;
        for (n, landed) in state.landed.iter().enumerate() {
            self.apply(&file, state.durable + n, *landed)?;
        }
        Ok(file)
    }

    fn apply(&self, file: &File, change: usize, landed: Landed) -> io::Result<()> {
        let part = |len: u64| match landed {
            Landed::Lost => 0,
            Landed::Whole => len,
            Landed::Part(units) => len.min(u64::from(units) * u64::from(self.unit)),
        };
        match self.changes.get(change) {
            Some(What::Wrote { at, len, data }) => {
                let mut buffer = vec![0; part(*len) as usize];
                self.log.file.read_exact_at(&mut buffer, *data)?;
                file.write_all_at(&buffer, *at)
            }
            Some(What::Zeroed { at, len }) if part(*len) > 0 => {
                Ok(store::punch(file, &(*at..*at + *len))?)
            }
            _ => Ok(()),
        }
    }
}

/// A file that vanishes with its last user, also if this process is killed.
pub(super) fn nameless(dir: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(File::from(open(dir, flags, Mode::RUSR | Mode::WUSR)?))
}

/// Makes `to` hold what `from` does: sharing its space where the file system can (Btrfs, XFS),
/// else by copying its data and leaving out its holes.
fn copy_data(from: &File, to: &File) -> io::Result<()> {
    if ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    let size = from.metadata()?.len();
    to.set_len(size)?;
    let mut buffer = vec![0; 1 << 20];
    for Range { start, end } in store::data(from, size)? {
        for at in (start..end).step_by(buffer.len()) {
            let len = (end - at).min(buffer.len() as u64) as usize;
            from.read_exact_at(&mut buffer[..len], at)?;
            to.write_all_at(&buffer[..len], at)?;
        }
    }
    Ok(())
}
