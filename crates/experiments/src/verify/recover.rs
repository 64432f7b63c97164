//! Going on after a crash: checks what had been forced to the medium.

use std::ops::Range;

use crate::verify::block::{self, BLOCK, SECTOR};
use crate::verify::buffer::Aligned;
use crate::verify::check::{Checker, MOST, read_past_cache};
use crate::verify::place::Place;
use crate::verify::shared::Shared;
use crate::verify::slot::{Content, Slot};
use crate::verify::state::SlotState;

/// Generations that a crash may have used up since the last checkpoint.
const SPARE: u32 = 1 << 20;

/// Checks a slot against its state, and expects from now on what it holds. A frozen slot must be
/// as it was. Of another one each sector must be one of ours of this place, or empty.
pub(crate) fn recover(shared: &Shared<'_>, slot: &mut Slot, state: &SlotState) {
    let mut checker = Checker::new(shared);
    let files = matches!(shared.place, Place::Directory { .. });
    let blocks = state.blocks();
    let on_disk = match slot.file.metadata() {
        Ok(metadata) if files => metadata.len(),
        _ => Slot::offset(blocks),
    };
    slot.go_on(state.next);
    slot.frozen = true;
    if state.frozen {
        slot.map = state.map();
        slot.length = state.length;
        if on_disk < Slot::offset(slot.length) {
            checker.short(slot, on_disk);
            slot.length = (on_disk / BLOCK as u64) as usize;
        }
    } else {
        slot.map = vec![Content::Unknown.into(); blocks];
        slot.length = blocks.min((on_disk / BLOCK as u64) as usize);
    }
    for start in (0..slot.length).step_by(MOST) {
        if shared.is_over() {
            return;
        }
        checker.check(slot, start..slot.length.min(start + MOST));
    }
    if !state.frozen {
        let highest = adopt(slot, files);
        slot.go_on(state.next.max(highest) + SPARE);
    }
    slot.frozen = false;
}

/// Expects what the slot holds. Returns the highest generation in it.
fn adopt(slot: &mut Slot, files: bool) -> u32 {
    let mut buffer = Aligned::new(MOST * BLOCK);
    let mut highest = 0;
    for start in (0..slot.length).step_by(MOST) {
        let part: Range<usize> = start..slot.length.min(start + MOST);
        let bytes = buffer.get(part.len() * BLOCK);
        if read_past_cache(&slot.file, bytes, slot.base + Slot::offset(start)).is_err() {
            continue;
        }
        for (block, data) in part.zip(bytes.chunks_exact(BLOCK)) {
            let content = content(data, slot.number, Slot::offset(block), files);
            if let Content::Data(generation) = content {
                highest = highest.max(generation);
            }
            slot.set(block..block + 1, content);
        }
    }
    let end = slot.map.len();
    let rest = if files {
        Content::Zeros
    } else {
        Content::Unknown
    };
    slot.set(slot.length..end, rest);
    highest
}

/// The content of a block, if all of it was written at once.
fn content(data: &[u8], file: u32, offset: u64, files: bool) -> Content {
    if files && block::is_zero(data) {
        return Content::Zeros;
    }
    let Some(first) = block::identify(&data[..SECTOR]) else {
        return Content::Unknown;
    };
    let mut sectors = data.chunks_exact(SECTOR).enumerate();
    let whole = (first.file, first.offset) == (file, offset)
        && sectors.all(|(index, sector)| block::is(sector, &first.after((index * SECTOR) as u64)));
    match whole {
        true => Content::Data(first.generation),
        false => Content::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::block::Identity;

    #[test]
    fn only_a_block_written_at_once_is_expected_again() {
        let own = Identity {
            volume: 1,
            file: 4,
            generation: 6,
            offset: 8192,
        };
        let mut data = [0; BLOCK];
        assert_eq!(content(&data, 4, 8192, true), Content::Zeros);
        assert_eq!(content(&data, 4, 8192, false), Content::Unknown);
        block::fill(&mut data, own);
        assert_eq!(content(&data, 4, 8192, true), Content::Data(6));
        assert_eq!(content(&data, 4, 4096, true), Content::Unknown);
        let torn = Identity {
            generation: 7,
            ..own.after(2048)
        };
        block::fill(&mut data[2048..], torn);
        assert_eq!(content(&data, 4, 8192, true), Content::Unknown);
    }
}
