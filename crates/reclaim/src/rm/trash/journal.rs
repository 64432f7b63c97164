//! The journal of a trash: the entries, and the names that they had.
//!
//! It consists of JSON Lines, a head and one entry for each argument. It is whole and on the disk
//! before anything is renamed, and it never changes. Whether an entry is done shows in the trash:
//! the entry is there or not.

use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use record::form;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

const FORMAT: &str = "trimbench.trash/1";
/// The journal while it is written.
pub(super) const NEW: &str = "journal.new";
/// A journal is as long as the command line was; nothing longer is read.
const LONGEST: u64 = 1 << 28;

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: String,
    /// The version that wrote it.
    #[serde(default)]
    version: String,
    entries: usize,
}

/// Something that was renamed into the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The number that is its name in the trash, in six digits.
    pub(crate) number: u32,
    /// The name that it had in the trash's parent.
    pub(crate) name: Bytes,
    /// The path that the user gave, for messages.
    pub(crate) path: Bytes,
    /// It was a directory; else something else.
    pub(crate) directory: bool,
    /// Stop where another file system begins.
    #[serde(default)]
    pub(crate) one_file_system: bool,
    /// The UUID of the subvolume that it is. A read-only one keeps its name until its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subvolume: Option<[u8; 16]>,
}

impl Entry {
    /// Returns whether a file can have this name.
    fn is_a_name(&self) -> bool {
        let name = self.name.as_bytes();
        !name.is_empty()
            && name != b"."
            && name != b".."
            && !name.iter().any(|b| b"/\0".contains(b))
    }
}

/// Any bytes; as text where they are UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bytes {
    /// UTF-8.
    Text(String),
    /// Other bytes.
    Raw(Vec<u8>),
}

impl Bytes {
    /// The bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Bytes::Text(text) => text.as_bytes(),
            Bytes::Raw(raw) => raw,
        }
    }

    /// The same as a path.
    pub(crate) fn to_path(&self) -> PathBuf {
        Path::new(std::ffi::OsStr::from_bytes(self.as_bytes())).to_owned()
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        match str::from_utf8(bytes) {
            Ok(text) => Bytes::Text(text.to_owned()),
            Err(_) => Bytes::Raw(bytes.to_vec()),
        }
    }
}

/// Why there is no journal to read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// There is none.
    Missing,
    /// It can't be read, or isn't one; with the reason, which follows "because".
    Other(String),
}

fn to_text(entries: &[Entry]) -> Result<Vec<u8>, serde_json::Error> {
    let head = Head {
        format: FORMAT.to_owned(),
        version: form::VERSION.to_owned(),
        entries: entries.len(),
    };
    let mut text = serde_json::to_vec(&head)?;
    for entry in entries {
        text.push(b'\n');
        serde_json::to_writer(&mut text, entry)?;
    }
    text.push(b'\n');
    Ok(text)
}

fn parse(text: &str) -> Result<Vec<Entry>, Unreadable> {
    let other = |why: &str| Unreadable::Other(why.to_owned());
    if let Some(why) = form::refusal(text.as_bytes(), FORMAT) {
        return Err(Unreadable::Other(why));
    }
    let mut lines = text.lines();
    let head: Head = lines
        .next()
        .and_then(|line| serde_json::from_str(line).ok())
        .filter(|head: &Head| head.format == FORMAT)
        .ok_or_else(|| other("its journal doesn't have our form"))?;
    let entries: Vec<Entry> = lines
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .map_err(|_| other("its journal is damaged"))?;
    if entries.len() != head.entries {
        return Err(other("its journal is cut short"));
    }
    // We write 1, 2, 3 …, and names that a directory can have: anything else could
    // lead out of the trash's parent.
    let ours = |(number, entry): (u32, &Entry)| entry.number == number && entry.is_a_name();
    if !(1..).zip(&entries).all(ours) {
        return Err(other("its journal names what no directory holds"));
    }
    Ok(entries)
}

/// Writes it under its name, whole, and waits until it is on the disk.
pub(super) fn write(directory: BorrowedFd<'_>, name: &str, entries: &[Entry]) -> Result<(), Errno> {
    let as_errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let text = to_text(entries).map_err(|_| Errno::INVAL)?;
    let mut file = crate::directory::make(directory, NEW, OFlags::EXCL)?;
    file.write_all(&text).map_err(as_errno)?;
    rustix::fs::fsync(&file)?;
    super::rename_new(directory, NEW, directory, name)?;
    // And its name, before anything is renamed.
    rustix::fs::fsync(directory)
}

/// Reads it.
pub(super) fn read(directory: BorrowedFd<'_>, name: &str) -> Result<Vec<Entry>, Unreadable> {
    let file = match crate::directory::open(directory, name) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Err(Unreadable::Missing),
        Err(errno) => {
            let why = format!(
                "its journal can't be opened: {}",
                crate::error::words(&errno.into())
            );
            return Err(Unreadable::Other(why));
        }
    };
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Err(Unreadable::Other("its journal is no file".to_owned()));
    }
    let mut text = String::new();
    file.take(LONGEST)
        .read_to_string(&mut text)
        .map_err(|error| {
            Unreadable::Other(format!(
                "its journal can't be read: {}",
                crate::error::words(&error)
            ))
        })?;
    parse(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::fd::AsFd;

    fn entry(number: u32, name: &[u8]) -> Entry {
        Entry {
            number,
            name: name.into(),
            path: name.into(),
            directory: false,
            one_file_system: false,
            subvolume: None,
        }
    }

    #[test]
    fn a_journal_that_is_damaged_is_none() {
        let whole = vec![entry(1, b"a"), entry(2, b"b\xff\n")];
        let text = String::from_utf8(to_text(&whole).unwrap()).unwrap();
        assert_eq!(parse(&text), Ok(whole));
        for wrong in [
            "",
            "{}",
            &text[..text.len() - 3],
            &text.replace("trash/1", "trash/9"),
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for name in ["", ".", "..", "../b", "/etc/passwd", "a\0b"] {
            let hostile = to_text(&[entry(1, name.as_bytes())]).unwrap();
            assert!(parse(str::from_utf8(&hostile).unwrap()).is_err(), "{name}");
        }
        for numbers in [[1, 1], [2, 1], [0, 1]] {
            let odd = to_text(&numbers.map(|n| entry(n, b"a"))).unwrap();
            assert!(parse(str::from_utf8(&odd).unwrap()).is_err(), "{numbers:?}");
        }
        let first_two: String = text.lines().take(2).map(|l| format!("{l}\n")).collect();
        assert!(parse(&first_two).is_err());
    }

    #[test]
    fn the_journals_of_earlier_versions_are_read_and_that_of_a_later_one_is_refused() {
        for text in testkit::formats::all("trash-journal") {
            let entries = parse(str::from_utf8(&text).unwrap()).unwrap();
            assert_eq!(entries[0].name.to_path(), Path::new("big"));
            let newer = testkit::formats::newer(&text);
            let Err(Unreadable::Other(why)) = parse(str::from_utf8(&newer).unwrap()) else {
                panic!("it was read");
            };
            assert!(why.contains("trimbench 99.0.0 wrote it"), "{why}");
        }
    }

    proptest! {
        #[test]
        fn any_name_survives(mut name in proptest::collection::vec(1u8.., 3..60)) {
            name.iter_mut().for_each(|byte| if *byte == b'/' { *byte = b'-' });
            let directory = tempfile::tempdir().unwrap();
            let open = std::fs::File::open(directory.path()).unwrap();
            let journal = vec![entry(1, &name)];
            write(open.as_fd(), "journal", &journal).unwrap();
            let read = read(open.as_fd(), "journal").unwrap();
            prop_assert_eq!(read[0].name.as_bytes(), &name[..]);
            prop_assert_eq!(read, journal);
        }
    }
}
