//! A file's allocated parts, read from the file system as they are needed.

use std::fs::File;

use linux::files::{FileError, FileExtent, extents_within};

use super::cutting::{Cutting, Piece, Tail};

/// The bytes of the file that one look covers: a file in the smallest fragments has two million
/// extents in them.
const WINDOW: u64 = 8 << 30;

/// The longest look in bytes. A look that finds only a hole is followed by one twice as long.
const WIDEST: u64 = 1 << 40;

/// The parts of a file that are still to be freed, taken from its tail.
#[derive(Debug)]
pub(super) struct Remains {
    tail: Tail,
    /// All from this offset on is in `tail`.
    floor: u64,
    window: u64,
    cutting: Cutting,
}

impl Remains {
    /// Reads the tail of a file of `length` bytes, of which `allocated` are allocated. Parts
    /// allocated beyond the end come first.
    pub(super) fn of(
        file: &File,
        length: u64,
        allocated: u64,
        cutting: Cutting,
    ) -> Result<Remains, FileError> {
        let mut remains = Remains {
            tail: Tail::default(),
            floor: length.next_multiple_of(cutting.block),
            window: WINDOW,
            cutting,
        };
        // The kernel refuses offsets that no file can have.
        match extents_within(file, remains.floor, i64::MAX as u64) {
            Ok(beyond) => remains.tail.prepend(&beyond, remains.floor, &cutting),
            // Where extents can't be told (FAT), it is taken to be one.
            Err(FileError::Extents(_)) => {
                let one = FileExtent {
                    start: 0,
                    length: remains.floor.min(allocated),
                    physical: 0,
                    shared: false,
                    on_disk: true,
                    inline: false,
                    unwritten: false,
                };
                remains.tail.prepend(&[one], 0, &cutting);
                remains.floor = 0;
            }
            Err(error) => return Err(error),
        }
        Ok(remains)
    }

    /// Returns the next truncation, which costs at most `most` bytes. Without `may_cut` it frees
    /// whole extents only, and is `None` if the next extent is larger.
    pub(super) fn next(
        &mut self,
        file: &File,
        most: u64,
        may_cut: bool,
    ) -> Result<Option<Piece>, FileError> {
        self.look(file, most)?;
        Ok(self.tail.take(most, may_cut, &self.cutting))
    }

    /// Returns whether nothing is left.
    pub(super) fn is_empty(&mut self, file: &File) -> Result<bool, FileError> {
        self.look(file, 1)?;
        Ok(self.tail.bytes() == 0)
    }

    /// Returns where the last known part ends for which discards come; 0 without one.
    pub(super) fn end(&self) -> u64 {
        self.tail.end()
    }

    /// Returns the mean size in bytes of the known parts for which discards come: the usual size of
    /// a discard.
    pub(super) fn usual_extent(&self) -> Option<u64> {
        self.tail.usual_part()
    }

    fn look(&mut self, file: &File, want: u64) -> Result<(), FileError> {
        while self.floor > 0 && self.tail.bytes() < want {
            let mut floor = self.floor.saturating_sub(self.window);
            let extents = extents_within(file, floor, self.floor)?;
            match extents.first() {
                None => self.window = (self.window * 2).min(WIDEST),
                // Not through an extent, where the file system tells it whole.
                Some(first) => {
                    floor = floor.min(first.start);
                    self.window = WINDOW;
                }
            }
            self.tail.prepend(&extents, floor, &self.cutting);
            self.floor = floor;
        }
        Ok(())
    }
}
