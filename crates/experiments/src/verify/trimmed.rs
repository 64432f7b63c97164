//! The content of space that a file system freed and trimmed, on the device below it.
//!
//! Only places are read that held data of this test and hold none now.

use std::fs::File;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use ssd::extents::Extents;

use crate::verify::block::{BLOCK, Identity};
use crate::verify::check::{MOST, read_past_cache};
use crate::verify::report::Trimmed;
use crate::verify::shared::Shared;
use crate::verify::slot::Slot;
use linux::files::Aligned;

/// So many freed places are read, and at most [`MOST`] blocks of each.
const PLACES: usize = 2000;

/// Reads the places that were freed last.
///
/// # Errors
/// Where the device can't be opened: it needs root.
pub(crate) fn read(shared: &Shared<'_>, slots: &[Slot], device: &Path) -> std::io::Result<Trimmed> {
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let device = File::from(rustix::fs::open(device, flags, Mode::empty())?);
    let (mut first, mut second) = (Aligned::new(MOST * BLOCK), Aligned::new(MOST * BLOCK));
    let mut found = Trimmed::default();
    // Space that holds data again, or of which a later freeing was read, is left out.
    let mut left_out = Extents::new();
    for slot in slots {
        let places = shared.place.on_device(slot, 0..Slot::offset(slot.length));
        for (_, place) in places {
            left_out.insert(place);
        }
    }
    for freed in shared.discards.of_ours(PLACES) {
        let Some((file, offset)) = freed.held else {
            continue;
        };
        if shared.is_over() {
            break;
        }
        let whole = freed.range.start;
        let parts: Vec<_> = left_out.gaps(freed.range).collect();
        for part in parts {
            let length = (part.end - part.start).min((MOST * BLOCK) as u64) as usize;
            let (data, again) = (first.get(length), second.get(length));
            left_out.insert(part.clone());
            let (Ok(()), Ok(())) = (
                read_past_cache(&device, data, part.start),
                read_past_cache(&device, again, part.start),
            ) else {
                continue;
            };
            let own = Identity {
                volume: shared.volume,
                file,
                generation: 0,
                offset: offset + (part.start - whole),
            };
            found.count(data, Some(again), own);
        }
    }
    Ok(found)
}
