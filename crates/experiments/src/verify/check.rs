//! Reading back, comparing, and looking closer at whatever is wrong.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::verify::block::{self, BLOCK, SECTOR};
use crate::verify::cause::{Again, Cause, Evidence};
use crate::verify::finding::{Finding, alignment};
use crate::verify::joined::REWRITTEN;
use crate::verify::pattern::{self, Expected, Pattern};
use crate::verify::place::Place;
use crate::verify::shared::Shared;
use crate::verify::slot::{Content, Slot};
use linux::files::Aligned;

/// The most blocks that are read or written at once: 1 MiB.
pub(crate) const MOST: usize = 256;

/// Reads and compares, with room of its own.
pub(crate) struct Checker<'a, 'b> {
    shared: &'b Shared<'a>,
    buffer: Aligned,
    second: Aligned,
}

/// Sectors in a row that show the same damage; offsets are bytes of the slot.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    range: Range<u64>,
    pattern: Pattern,
    /// The write that ought to be there.
    generation: Option<u32>,
    /// Whether that was read rightly before.
    was_right: bool,
}

impl<'a, 'b> Checker<'a, 'b> {
    pub(crate) fn new(shared: &'b Shared<'a>) -> Checker<'a, 'b> {
        Checker {
            shared,
            buffer: Aligned::new(MOST * BLOCK),
            second: Aligned::new(MOST * BLOCK),
        }
    }

    /// Reads blocks of a slot past the page cache and compares them. At most [`MOST`].
    pub(crate) fn check(&mut self, slot: &mut Slot, blocks: Range<usize>) {
        let length = blocks.len() * BLOCK;
        let at = slot.base + Slot::offset(blocks.start);
        let read = read_past_cache(&slot.file, self.buffer.get(length), at);
        self.shared.moved(length as u64);
        match read {
            Ok(()) => {
                self.shared.succeeded(|operations| {
                    operations.reads += 1;
                    operations.read_bytes += length as u64;
                });
                self.compare(slot, blocks);
            }
            Err(error) => {
                self.shared.failed("read", &error);
                self.unreadable(slot, blocks, &error);
            }
        }
    }

    /// Compares what is in the buffer.
    fn compare(&mut self, slot: &mut Slot, blocks: Range<usize>) {
        let volume = self.shared.volume;
        let mut spans = Vec::new();
        let bytes = self.buffer.get(blocks.len() * BLOCK);
        for (block, data) in blocks.clone().zip(bytes.chunks_exact(BLOCK)) {
            let content = slot.content(block);
            let expected = slot.expected(volume, block);
            let was_right = slot.was_right(block);
            let found = damaged(data, Slot::offset(block), &expected, was_right, &mut spans);
            if matches!(content, Content::Data(_)) && !found {
                slot.is_right(block);
            }
        }
        if !spans.is_empty() {
            self.investigate(slot, blocks, spans);
        }
    }

    /// Reads once more, writes anew, and reports each span.
    fn investigate(&mut self, slot: &mut Slot, blocks: Range<usize>, spans: Vec<Span>) {
        let volume = self.shared.volume;
        let length = blocks.len() * BLOCK;
        let at = slot.base + Slot::offset(blocks.start);
        let again = read_past_cache(&slot.file, self.second.get(length), at);
        if let Err(error) = &again {
            self.shared.failed("read", error);
        }
        let mut second = Vec::new();
        for (block, data) in blocks
            .clone()
            .zip(self.second.get(length).chunks_exact(BLOCK))
        {
            damaged(
                data,
                Slot::offset(block),
                &slot.expected(volume, block),
                slot.was_right(block),
                &mut second,
            );
        }
        let is_right = |block: &usize| {
            let range = Slot::offset(*block)..Slot::offset(block + 1);
            !spans.iter().any(|span| overlap(&span.range, &range))
        };
        let right: Vec<usize> = blocks.filter(is_right).collect();
        for span in &spans {
            let second_read = match &again {
                Ok(()) => again_of(span, &second),
                Err(_) => Again::Error,
            };
            self.report(slot, span, second_read, None, &right);
        }
    }

    /// A read failed: reads block by block, and reports what can't be read.
    fn unreadable(&mut self, slot: &mut Slot, blocks: Range<usize>, error: &io::Error) {
        let mut lost: Vec<usize> = Vec::new();
        for block in blocks {
            if slot.content(block) == Content::Unknown {
                continue;
            }
            let at = slot.base + Slot::offset(block);
            match read_past_cache(&slot.file, self.buffer.get(BLOCK), at) {
                Ok(()) => self.compare(slot, block..block + 1),
                Err(_) => lost.push(block),
            }
        }
        for run in lost.chunk_by(|one, next| one + 1 == *next) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else {
                continue;
            };
            let span = Span {
                range: Slot::offset(*first)..Slot::offset(last + 1),
                pattern: Pattern::Unreadable,
                generation: generation_of(slot, *first),
                was_right: slot.was_right(*first),
            };
            self.report(slot, &span, Again::Error, Some(error.to_string()), &[]);
        }
    }

    /// Gathers the evidence about a span, writes its blocks anew, and reports it. `right`: blocks
    /// that the same read showed to be right.
    fn report(
        &mut self,
        slot: &mut Slot,
        span: &Span,
        second_read: Again,
        kernel_error: Option<String>,
        right: &[usize],
    ) {
        let shared = self.shared;
        let now_s = shared.now_s();
        let first = (span.range.start / BLOCK as u64) as usize;
        let blocks = first..span.range.end.div_ceil(BLOCK as u64) as usize;
        let generation = span.generation;
        let written_s = generation.and_then(|generation| slot.written_s(generation));
        let on_device = shared.place.on_device(slot, span.range.clone());
        let place = on_device.first().cloned();
        let is_file = matches!(shared.place, Place::Directory { .. });
        let mut around = place
            .as_ref()
            .map(|place| {
                let spared = |range, since_s| !is_file && spared(slot, right, &range, since_s);
                shared.discards.around(place, written_s, now_s, &spared)
            })
            .unwrap_or_default();
        // A file system sends discards at a time of its own, and for its own blocks, too. Of what
        // an earlier process did, and of what is forgotten, nothing is known.
        around.unknown = written_s.is_none() || is_file && around.in_time.is_some();
        let rewritten = match second_read {
            // It is right on the medium, and what was read wrong once may be so again.
            Again::Right => Again::NotTried,
            _ => self.write_anew(slot, blocks),
        };
        let evidence = Evidence {
            pattern: span.pattern,
            second_read,
            rewritten,
            was_right: span.was_right,
            around,
        };
        let mut causes = Cause::of(&evidence);
        let cause = causes.remove(0);
        let finding = Finding {
            path: shared.place.shown(slot.number),
            is_file,
            landed: None,
            pointed: evidence.points_to(cause),
            file: slot.number,
            offset_bytes: span.range.start,
            length_bytes: span.range.end - span.range.start,
            device: shared
                .surveyed
                .device
                .as_ref()
                .map(record::units::names::shown)
                .filter(|_| place.is_some()),
            device_sector: place.as_ref().map(|place| place.start / SECTOR as u64),
            aligned_bytes: alignment(
                place.as_ref().map_or(span.range.start, |place| place.start),
                shared.surveyed.erase_block_bytes,
            ),
            erase_block_bytes: shared.surveyed.erase_block_bytes,
            pattern: span.pattern,
            cause,
            other_causes: causes,
            expected_generation: generation,
            found_s: now_s,
            written_s,
            was_right: span.was_right,
            second_read,
            rewritten,
            kernel_error,
            nearest_discard: around.in_space,
            latest_discard: around.in_time,
            trim_reach_bytes: evidence.trim_reach_bytes(),
            summary: String::new(),
        };
        shared.found(finding);
    }

    /// Writes damaged blocks anew and reads them: a place that is bad itself stays wrong. Then
    /// nothing is expected there, so that it is reported once. Data that a crash test
    /// relies on stay as they are.
    fn write_anew(&mut self, slot: &mut Slot, blocks: Range<usize>) -> Again {
        // A late trim may strike once more, and the next writes may be lost as well.
        let mut results = (0..REWRITTEN).map(|_| self.write_once(slot, blocks.clone()));
        results
            .find(|result| *result != Again::Same)
            .unwrap_or(Again::Same)
    }

    fn write_once(&mut self, slot: &mut Slot, blocks: Range<usize>) -> Again {
        let generation = slot.begin_write(self.shared.now_s());
        let mut result = Again::Right;
        for start in blocks.clone().step_by(MOST) {
            let part = start..blocks.end.min(start + MOST);
            let length = part.len() * BLOCK;
            let at = slot.base + Slot::offset(part.start);
            let identity = slot.identity(self.shared.volume, part.start, generation);
            block::fill(self.second.get(length), identity);
            let tried = slot
                .file
                .write_all_at(self.second.get(length), at)
                .and_then(|()| slot.file.sync_data())
                .and_then(|()| read_past_cache(&slot.file, self.second.get(length), at));
            if tried.is_err() {
                slot.set(blocks, Content::Unknown);
                return Again::Error;
            }
            let mut wrong = Vec::new();
            for (block, data) in part.zip(self.second.get(length).chunks_exact(BLOCK)) {
                let own = Expected::Data(identity.after(Slot::offset(block - start)));
                damaged(data, Slot::offset(block), &own, false, &mut wrong);
            }
            if !wrong.is_empty() {
                result = Again::Same;
            }
        }
        match result {
            Again::Right => {
                slot.set(blocks.clone(), Content::Data(generation));
                slot.length = slot.length.max(blocks.end);
                blocks.for_each(|block| slot.is_right(block));
            }
            _ => slot.set(blocks, Content::Unknown),
        }
        result
    }
}

/// Whether a second read shows the same damage in the same place.
fn again_of(span: &Span, second: &[Span]) -> Again {
    let mut over = second
        .iter()
        .filter(|other| overlap(&other.range, &span.range));
    match over.next() {
        None => Again::Right,
        Some(other) if *other == *span && over.next().is_none() => Again::Same,
        Some(other) if over.next().is_none() && covers(other, span) => Again::Same,
        Some(_) => Again::Different,
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

fn covers(other: &Span, span: &Span) -> bool {
    other.pattern == span.pattern
        && other.range.start <= span.range.start
        && span.range.end <= other.range.end
}

fn generation_of(slot: &Slot, block: usize) -> Option<u32> {
    match slot.content(block) {
        Content::Data(generation) => Some(generation),
        _ => None,
    }
}

/// Whether something in a range of the device is older than that and yet right: one of the blocks
/// `right`.
fn spared(slot: &Slot, right: &[usize], range: &Range<u64>, since_s: f64) -> bool {
    right.iter().any(|block| {
        let at = slot.base + Slot::offset(*block);
        let generation = generation_of(slot, *block);
        overlap(&(at..at + BLOCK as u64), range)
            && generation
                .and_then(|generation| slot.written_s(generation))
                .is_some_and(|written_s| written_s < since_s)
    })
}

/// Adds the damaged sectors of a block, joined to the last span where they continue it. Returns
/// whether there are any.
fn damaged(
    data: &[u8],
    offset: u64,
    expected: &Expected,
    was_right: bool,
    spans: &mut Vec<Span>,
) -> bool {
    let generation = match expected {
        Expected::Data(identity) => Some(identity.generation),
        _ => None,
    };
    let mut found = false;
    for (index, sector) in data.chunks_exact(SECTOR).enumerate() {
        let more = (index * SECTOR) as u64;
        let expected = match expected {
            Expected::Data(first) => Expected::Data(first.after(more)),
            Expected::Zeros(first) => Expected::Zeros(first.after(more)),
            Expected::Anything(first) => Expected::Anything(first.after(more)),
        };
        let Some(pattern) = pattern::of(sector, &expected) else {
            continue;
        };
        found = true;
        let at = offset + more;
        let joins = spans.last_mut().filter(|last| {
            let length = last.range.end - last.range.start;
            last.range.end == at
                && last.pattern.continues(&pattern, length)
                && (last.generation, last.was_right) == (generation, was_right)
        });
        match joins {
            Some(last) => {
                last.pattern.add(&pattern);
                last.range.end = at + SECTOR as u64;
            }
            None => spans.push(Span {
                range: at..at + SECTOR as u64,
                pattern,
                generation,
                was_right,
            }),
        }
    }
    found
}

/// Reads all of `to`; what lies behind the file's end is an error. Where the file was not opened
/// for direct I/O, the page cache is asked to forget it before.
pub(crate) fn read_past_cache(file: &File, to: &mut [u8], at: u64) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file);
    // A direct read passes the cache by itself, and the advice takes longer than some drives.
    if !flags.is_ok_and(|flags| flags.contains(rustix::fs::OFlags::DIRECT)) {
        let length = std::num::NonZeroU64::new(to.len() as u64);
        let _ = rustix::fs::fadvise(file, at, length, rustix::fs::Advice::DontNeed);
    }
    file.read_exact_at(to, at)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(
                error.kind(),
                "the file is shorter than what was written to it",
            ),
            _ => error,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::block::Identity;

    #[test]
    fn damage_in_a_row_is_one_span_and_a_second_read_is_compared() {
        let identity = Identity {
            volume: 1,
            file: 1,
            generation: 1,
            offset: 0,
        };
        let mut data = vec![0; 2 * BLOCK];
        block::fill(&mut data, identity);
        data[512..1536].fill(0);
        data[4000] ^= 1;
        let mut spans = Vec::new();
        damaged(
            &data[..BLOCK],
            0,
            &Expected::Data(identity),
            false,
            &mut spans,
        );
        let zeros = Span {
            range: 512..1536,
            pattern: Pattern::Zeros,
            generation: Some(1),
            was_right: false,
        };
        assert_eq!(spans[0], zeros);
        assert_eq!(spans[1].pattern, Pattern::BitFlips { bits: 1 });
        assert_eq!(spans.len(), 2);
        assert_eq!(again_of(&zeros, &[]), Again::Right);
        assert_eq!(again_of(&zeros, &spans), Again::Same);
        let wider = Span {
            range: 0..4096,
            ..zeros.clone()
        };
        assert_eq!(again_of(&zeros, &[wider]), Again::Same);
        let other = Span {
            pattern: Pattern::Unknown,
            ..zeros.clone()
        };
        assert_eq!(again_of(&zeros, &[other]), Again::Different);
    }
}
