//! The debt as it is noted in the directory of the state, so that a restart doesn't trim all again.
//!
//! Two files are overwritten in turn, in place: that frees no block, and there is always a whole
//! one. A note holds what was free and pending at one look, and the counter of that look. So an older
//! note is as true as a newer one: the next look compares what is free now with what was free then.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;

use pace::trims::{Debt, Moment, Pending};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use ssd::extents::Extents;

use super::look::Hidden;
use crate::directory;

const FILES: [&str; 2] = ["debt-a", "debt-b"];
const MAGIC: &[u8; 8] = b"TBDEBT/1";

/// Magic, number of the note, length and checksum of what follows.
const HEAD: usize = 8 + 8 + 8 + 4;

/// Files grow in steps of this, and never shrink.
const STEP: usize = 64 << 10;

/// A longer note isn't written: a restart trims all then.
const LONGEST: usize = 64 << 20;

/// The content of a note.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    /// The identity of the mount.
    mount: String,
    freed_blocks: Option<u32>,
    hidden_bytes: i64,
    free: Vec<Range<u64>>,
    #[serde(rename = "owed")]
    pending: Vec<(u64, u64, Moment)>,
}

/// The two files.
#[derive(Debug, Default)]
pub(super) struct Notes {
    number: u64,
    /// The identity of the mount; without one nothing is noted.
    pub(super) mount: Option<String>,
}

impl Notes {
    /// Reads the newest whole note of this mount.
    pub(super) fn read(&mut self, state: BorrowedFd<'_>) -> Option<(Debt, Hidden)> {
        let mount = self.mount.as_ref()?;
        let mut all: Vec<(u64, Content)> = FILES
            .iter()
            .filter_map(|name| decoded(&bytes(state, name).ok()?))
            .collect();
        all.sort_by_key(|(number, _)| *number);
        self.number = all.last().map_or(0, |(number, _)| *number);
        let (_, content) = all.into_iter().rev().find(|(_, c)| c.mount == *mount)?;
        let mut free = Extents::new();
        for range in content.free {
            free.insert(range);
        }
        let pending = content
            .pending
            .into_iter()
            .map(|(start, end, since)| Pending {
                range: start..end,
                since,
            });
        let debt = Debt::noted(free, pending);
        Some((
            debt,
            Hidden::noted(content.freed_blocks, content.hidden_bytes),
        ))
    }

    /// Writes a note, and waits until it is on the disk.
    pub(super) fn write(
        &mut self,
        state: BorrowedFd<'_>,
        debt: &Debt,
        unseen: Hidden,
    ) -> io::Result<()> {
        let (freed_blocks, hidden_bytes) = unseen.noting();
        let content = Content {
            mount: self.mount.clone().unwrap_or_default(),
            freed_blocks,
            hidden_bytes,
            free: debt.free().iter().collect(),
            pending: debt
                .iter()
                .map(|pending| (pending.range.start, pending.range.end, pending.since))
                .collect(),
        };
        let next = self.number + 1;
        let encoded = encoded(next, &content)?;
        if encoded.len() > LONGEST {
            return Err(io::Error::other("there are too many free extents"));
        }
        let file = directory::make(state, FILES[(next % 2) as usize], OFlags::empty())?;
        file.write_all_at(&encoded, 0)?;
        file.sync_data()?;
        self.number = next;
        Ok(())
    }
}

/// Whether a state holds a note.
pub(super) fn is_there(state: BorrowedFd<'_>) -> bool {
    FILES.into_iter().any(|name| directory::has(state, name))
}

/// Removes the notes of a state.
pub(super) fn remove(state: BorrowedFd<'_>) {
    for name in FILES {
        directory::remove(state, name);
    }
}

fn bytes(state: BorrowedFd<'_>, name: &str) -> io::Result<Vec<u8>> {
    let file = directory::open(state, name)?;
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut all = vec![0; length.min(LONGEST + STEP)];
    file.read_exact_at(&mut all, 0)?;
    Ok(all)
}

fn encoded(number: u64, content: &Content) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(content)?;
    let mut all = Vec::with_capacity(HEAD + body.len() + STEP);
    all.extend_from_slice(MAGIC);
    all.extend_from_slice(&number.to_le_bytes());
    all.extend_from_slice(&(body.len() as u64).to_le_bytes());
    all.extend_from_slice(&checksum(number, &body).to_le_bytes());
    all.extend_from_slice(&body);
    all.resize(all.len().next_multiple_of(STEP), 0);
    Ok(all)
}

fn decoded(all: &[u8]) -> Option<(u64, Content)> {
    let number = u64::from_le_bytes(all.get(8..16)?.try_into().ok()?);
    let length = u64::from_le_bytes(all.get(16..24)?.try_into().ok()?);
    let sum = u32::from_le_bytes(all.get(24..HEAD)?.try_into().ok()?);
    let end = HEAD.checked_add(usize::try_from(length).ok()?)?;
    let body = all.get(HEAD..end)?;
    if &all[..8] != MAGIC || checksum(number, body) != sum {
        return None;
    }
    Some((number, serde_json::from_slice(body).ok()?))
}

fn checksum(number: u64, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), body)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn place() -> (tempfile::TempDir, std::fs::File) {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let open = std::fs::File::open(place.path()).unwrap();
        (place, open)
    }

    fn debt(pending: Range<u64>) -> Debt {
        let mut debt = Debt::default();
        debt.look(Extents::from(0..100), 5);
        debt.remove(0..pending.start);
        debt.remove(pending.end..100);
        debt
    }

    #[test]
    fn the_newest_whole_note_of_this_mount_is_read() {
        let (place, open) = place();
        let of = |mount: &str| Notes {
            mount: Some(mount.to_owned()),
            ..Notes::default()
        };
        let mut notes = of("here");
        let hidden = Hidden::noted(Some(7), -3);
        for pending in [10..20, 30..40, 50..60] {
            notes.write(open.as_fd(), &debt(pending), hidden).unwrap();
        }
        let read = of("here").read(open.as_fd()).unwrap();
        assert_eq!(read, (debt(50..60), hidden));
        assert_eq!(of("elsewhere").read(open.as_fd()), None);
        assert_eq!(Notes::default().read(open.as_fd()), None);
        // Torn in the middle of a write, the other one counts, at any byte.
        let newest = place.path().join(FILES[1]);
        let whole = std::fs::read(&newest).unwrap();
        for at in [0, 9, 17, 25, 40, HEAD + 50] {
            let mut torn = whole.clone();
            torn[at] ^= 0x55;
            std::fs::write(&newest, torn).unwrap();
            let read = of("here").read(open.as_fd()).unwrap();
            assert_eq!(read.0, debt(30..40), "{at}");
        }
    }

    #[test]
    fn the_notes_of_earlier_versions_are_read_and_that_of_a_later_one_is_not() {
        for mut note in testkit::formats::all("guard-note") {
            let (number, content) = decoded(&note).unwrap();
            assert_eq!((number, &*content.mount), (3, "here"));
            assert_eq!(content.pending.len(), 1);
            note[7] = b'9';
            assert!(decoded(&note).is_none());
        }
    }

    #[test]
    fn a_note_is_written_in_place() {
        let (place, open) = place();
        let mut notes = Notes::default();
        let mut length = None;
        for i in 0..6 {
            notes
                .write(open.as_fd(), &debt(i..i + 1), Hidden::default())
                .unwrap();
            let files: Vec<u64> = FILES
                .iter()
                .filter_map(|name| place.path().join(name).metadata().ok())
                .map(|found| found.len())
                .collect();
            assert!(files.iter().all(|&len| *length.get_or_insert(len) == len));
        }
    }
}
