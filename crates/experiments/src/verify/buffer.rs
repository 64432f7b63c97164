//! Memory that direct I/O takes.

use crate::verify::block::BLOCK;

/// Bytes that begin at a multiple of a block.
#[derive(Debug)]
pub(crate) struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    pub(crate) fn new(length: usize) -> Aligned {
        let bytes = vec![0; length + BLOCK];
        let start = bytes.as_ptr().align_offset(BLOCK);
        Aligned { bytes, start }
    }

    pub(crate) fn get(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + length]
    }
}
