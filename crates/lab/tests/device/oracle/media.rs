//! The two that are compared: the drive, and a plain file that does the same.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use rustix::fs::{FallocateFlags, OFlags, fallocate};

use super::step::{SECTOR, Step, What};

/// Memory as direct I/O wants it.
#[derive(Debug, Default)]
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    const ALIGN: usize = 4096;

    pub(super) fn of(&mut self, len: u64) -> &mut [u8] {
        let len = usize::try_from(len).unwrap();
        if self.0.len() < len + Buffer::ALIGN {
            self.0.resize(len + Buffer::ALIGN, 0);
        }
        let skip = self.0.as_ptr().align_offset(Buffer::ALIGN);
        &mut self.0[skip..skip + len]
    }
}

/// The block device, opened both ways.
#[derive(Debug)]
pub(super) struct Drive {
    direct: File,
    buffered: File,
}

impl Drive {
    pub(super) fn open(device: &Path) -> Drive {
        let open = |flags: OFlags| {
            let mut options = OpenOptions::new();
            options.read(true).write(true);
            options.custom_flags(flags.bits().cast_signed());
            options.open(device).unwrap()
        };
        Drive {
            direct: open(OFlags::DIRECT),
            buffered: open(OFlags::empty()),
        }
    }

    pub(super) fn read(&self, direct: bool, at: u64, into: &mut [u8]) -> io::Result<()> {
        let file = if direct { &self.direct } else { &self.buffered };
        file.read_exact_at(into, at)
    }

    /// Does a step that isn't a read; `data` is what a write writes.
    pub(super) fn change(&self, step: &Step, data: &[u8]) -> io::Result<()> {
        let range = &step.range;
        match step.what {
            What::ReadDirect | What::ReadBuffered => unreachable!("reads change nothing"),
            What::WriteDirect => self.direct.write_all_at(data, range.start),
            What::WriteBuffered => self.buffered.write_all_at(data, range.start),
            What::Flush => self.buffered.sync_all(),
            What::Discard => linux::block::discard(&self.buffered, range),
            What::ZeroOut => linux::block::zero_out(&self.buffered, range),
            What::Punch => {
                let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let len = range.end - range.start;
                Ok(fallocate(&self.buffered, punch, range.start, len)?)
            }
        }
    }
}

/// The plain file, and a mark for each sector: how often a change of it began or ended. The mark is
/// odd during a change. So a reader beside the writers knows which sectors of its data must be
/// right.
#[derive(Debug)]
pub(super) struct Oracle {
    file: File,
    marks: Vec<AtomicU64>,
}

impl Oracle {
    pub(super) fn new(size: u64) -> Oracle {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        Oracle {
            file,
            marks: (0..size / SECTOR).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub(super) fn read(&self, at: u64, into: &mut [u8]) {
        self.file.read_exact_at(into, at).unwrap();
    }

    pub(super) fn write(&self, at: u64, data: &[u8]) {
        self.file.write_all_at(data, at).unwrap();
    }

    /// Before the drive is asked to change a range, and after both have.
    pub(super) fn mark(&self, range: &Range<u64>) {
        for mark in self.of(range) {
            mark.fetch_add(1, SeqCst);
        }
    }

    pub(super) fn marks(&self, range: &Range<u64>) -> Vec<u64> {
        self.of(range)
            .iter()
            .map(|mark| mark.load(SeqCst))
            .collect()
    }

    fn of(&self, range: &Range<u64>) -> &[AtomicU64] {
        let sectors = range.start / SECTOR..range.end.div_ceil(SECTOR);
        &self.marks[sectors.start as usize..sectors.end as usize]
    }
}
