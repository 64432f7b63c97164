//! A file's allocated parts, asked of the file system as they are needed.

use std::fs::File;

use linux::files::{FileError, FileExtent, extents_within};

use super::pieces::{Cutting, Piece, Tail};

/// Of the file, so much is looked at in one go: a file in the smallest
/// fragments has two million extents in it.
const WINDOW: u64 = 8 << 30;

/// Windows that are all hole grow up to this.
const WIDEST: u64 = 1 << 40;

/// What is still to be freed of a file, from its tail.
#[derive(Debug)]
pub(super) struct Remains {
    tail: Tail,
    /// All from here on is known.
    floor: u64,
    window: u64,
    cutting: Cutting,
}

impl Remains {
    /// Of a file of that length, with so many bytes allocated. What is allocated beyond
    /// it comes first.
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

    /// The next truncation, of at most so many bytes that cost something.
    /// Without `may_cut`, only of whole extents, and `None` if the next is larger.
    pub(super) fn next(
        &mut self,
        file: &File,
        most: u64,
        may_cut: bool,
    ) -> Result<Option<Piece>, FileError> {
        self.look(file, most)?;
        Ok(self.tail.take(most, may_cut, &self.cutting))
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&mut self, file: &File) -> Result<bool, FileError> {
        self.look(file, 1)?;
        Ok(self.tail.bytes() == 0)
    }

    /// Where what is known ends, but for what no discard comes for.
    pub(super) fn end(&self) -> u64 {
        self.tail.end()
    }

    /// The mean of what is known to be left: what a discard will usually have.
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
