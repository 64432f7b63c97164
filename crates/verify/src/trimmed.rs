//! The content of space that a file system freed and trimmed, on the device below it.
//!
//! Only places are read that held data of this test.

use std::fs::File;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::block::{self, BLOCK, SECTOR};
use crate::buffer::Aligned;
use crate::check::{MOST, read_past_cache};
use crate::report::Trimmed;
use crate::shared::Shared;

/// So many freed places are read, and at most [`MOST`] blocks of each.
const PLACES: usize = 2000;

/// Reads the places that were freed last.
///
/// # Errors
/// Where the device can't be opened: it needs root.
pub(crate) fn read(shared: &Shared<'_>, device: &Path) -> std::io::Result<Trimmed> {
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let device = File::from(rustix::fs::open(device, flags, Mode::empty())?);
    let (mut first, mut second) = (Aligned::new(MOST * BLOCK), Aligned::new(MOST * BLOCK));
    let mut found = Trimmed::default();
    for freed in shared.discards.of_ours(PLACES) {
        let Some((file, offset)) = freed.held else {
            continue;
        };
        if shared.is_over() {
            break;
        }
        let length = (freed.range.end - freed.range.start).min((MOST * BLOCK) as u64) as usize;
        let (data, again) = (first.get(length), second.get(length));
        let start = freed.range.start;
        let (Ok(()), Ok(())) = (
            read_past_cache(&device, data, start),
            read_past_cache(&device, again, start),
        ) else {
            continue;
        };
        let sectors = data.chunks_exact(SECTOR).zip(again.chunks_exact(SECTOR));
        for (index, (data, again)) in sectors.enumerate() {
            let at = offset + (index * SECTOR) as u64;
            let old = block::identify(data).is_some_and(|found| {
                (found.volume, found.file, found.offset) == (shared.volume, file, at)
            });
            let bytes = SECTOR as u64;
            found.read_bytes += bytes;
            *match (block::is_zero(data), old) {
                (true, _) => &mut found.zero_bytes,
                (_, true) => &mut found.old_data_bytes,
                _ => &mut found.other_bytes,
            } += bytes;
            if data != again {
                found.unstable_bytes += bytes;
            }
        }
    }
    Ok(found)
}
