//! Keeps the position of a trim in a small file that survives kills and reboots.
//!
//! There is one file for each file system, by its UUID and its device, because a copy of a file
//! system has the same UUID. A part that was asked for has a file of its own, so that trimming it
//! doesn't end the interrupted trim. The file is written aside and renamed, so that there is always
//! a whole one. A file that trimbench can't have written is ignored: then the trim starts over and
//! replaces it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use record::{form, units::names};
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};

use super::last::Place;
use crate::{ReclaimError, Result};

const FORMAT: &str = "trimbench.fstrim/1";

/// The longest file in bytes that trimbench writes.
const LONGEST: u64 = 16 << 10;

/// The file system and the part of it that is trimmed. Only a trim of the same is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Of {
    /// The file system's UUID.
    pub(super) uuid: String,
    /// The identity of its device, the same after a reboot.
    pub(super) device: String,
    /// Its type.
    pub(super) fs: String,
    /// Its size in bytes.
    pub(super) size_bytes: u64,
    /// The first byte of the part that was asked for; then its length and the shortest extent to
    /// trim, in bytes.
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) minimum: u64,
}

/// The position of an interrupted trim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    format: String,
    /// The version that wrote it.
    #[serde(default)]
    version: String,
    pub(super) of: Of,
    /// All before this byte was trimmed.
    pub(super) position: u64,
    /// Bytes trimmed so far.
    pub(super) trimmed_bytes: u64,
}

/// The note that the last trim left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    Here(State),
    /// A note for another size or part of the file system, or one that trimbench can't have
    /// written; with the reason. It doesn't show what is trimmed now.
    Outdated(String),
}

/// The lock on a file system while it is trimmed. A second trim is refused. The kernel releases the
/// lock however the process ends.
#[derive(Debug)]
pub(super) struct Turn {
    file: File,
    path: PathBuf,
}

impl Drop for Turn {
    fn drop(&mut self) {
        // While it is held: nobody else's is removed.
        let _ = fs::remove_file(&self.path);
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// The note of one file system, or of a part of it.
#[derive(Debug)]
pub(super) struct Cursor {
    directory: PathBuf,
    path: PathBuf,
    /// The lock file of the whole file system, whichever part is trimmed.
    lock: PathBuf,
    /// Where the last trim of the whole file system is kept; `None` for a part of it.
    pub(super) last: Option<Place>,
    of: Of,
}

impl Cursor {
    /// Makes the paths of the files in `directory`, for the file system at `mount`.
    pub(super) fn of(directory: &Path, of: Of, mount: &Path) -> Cursor {
        let uuid: String = of
            .uuid
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let name = format!("{uuid}-{:08x}", fnv(of.device.as_bytes()));
        let part = match (of.start, of.length, of.minimum) {
            (0, u64::MAX, 0) => String::new(),
            (start, length, minimum) => format!("-{start}-{length}-{minimum}"),
        };
        Cursor {
            directory: directory.to_owned(),
            path: directory.join(format!("{name}{part}.json")),
            lock: directory.join(format!("{name}.lock")),
            last: part
                .is_empty()
                .then(|| Place::new(directory, &name, mount, &of.device)),
            of,
        }
    }

    #[cfg(test)]
    fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the lock; `None` if another process has it.
    pub(super) fn turn(&self) -> io::Result<Option<Turn>> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        let path = self.lock.clone();
        loop {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
                .open(&path)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
            // It may have been removed by whoever had it before.
            let named = fs::symlink_metadata(&path);
            let held = file.metadata()?;
            if named.is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())) {
                return Ok(Some(Turn { file, path }));
            }
        }
    }

    /// Reads the note that the last trim left.
    pub(super) fn read(&self) -> Result<Left> {
        let not_ours = |why: &str| -> Result<Left> {
            Ok(Left::Outdated(format!(
                "{}: {why}",
                names::shown(&self.path)
            )))
        };
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
            .open(&self.path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Left::Nothing),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                return not_ours("is a symbolic link");
            }
            Err(source) => return Err(self.failed("open", source)),
        };
        let found = file
            .metadata()
            .map_err(|source| self.failed("examine", source))?;
        if !found.is_file() {
            return not_ours("is no regular file");
        }
        if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0 {
            return not_ours("others could have written it");
        }
        let mut text = String::new();
        let read = file.take(LONGEST + 1).read_to_string(&mut text);
        if read.is_err() || text.len() as u64 > LONGEST {
            return not_ours("is no state of a trim");
        }
        if let Some(why) = form::refusal(text.as_bytes(), FORMAT) {
            return not_ours(&why);
        }
        let state: State = match serde_json::from_str(&text) {
            Ok(state) => state,
            Err(error) => return not_ours(&format!("is no state of a trim ({error})")),
        };
        if state.format != FORMAT {
            return not_ours("has a form that isn't known");
        }
        if (&state.of.uuid, &state.of.device, &state.of.fs)
            != (&self.of.uuid, &self.of.device, &self.of.fs)
        {
            return not_ours("is of another file system");
        }
        let (was, is) = (state.of.size_bytes, self.of.size_bytes);
        if was != is {
            let (was, is) = (record::units::bytes(was), record::units::bytes(is));
            let why = format!("it had {was} when it was interrupted and has {is} now");
            return Ok(Left::Outdated(why));
        }
        // Its name says which part: but that of an earlier version doesn't.
        if state.of != self.of {
            let why = "it was interrupted with another --offset, --length or --minimum";
            return Ok(Left::Outdated(why.to_owned()));
        }
        if state.position < self.of.start
            || state.position > self.of.start.saturating_add(self.of.length)
        {
            return not_ours("says a position that can't be");
        }
        Ok(Left::Here(state))
    }

    /// Writes the position. The whole note is on the disk when this returns.
    pub(super) fn write(&self, position: u64, trimmed_bytes: u64) -> Result<()> {
        let state = State {
            format: FORMAT.to_owned(),
            version: form::VERSION.to_owned(),
            of: self.of.clone(),
            position,
            trimmed_bytes,
        };
        let mut text = serde_json::to_string(&state)
            .map_err(|error| self.failed("write", io::Error::other(error)))?;
        text.push('\n');
        self.put(text.as_bytes())
            .map_err(|source| self.failed("write", source))
    }

    fn put(&self, text: &[u8]) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        linux::files::replace(&self.path, text, 0o600)
    }

    /// Removes the note, because the trim is done.
    pub(super) fn remove(&self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failed("remove", error))
            }
            _ => Ok(()),
        }
    }

    fn failed(&self, action: &'static str, source: io::Error) -> ReclaimError {
        ReclaimError::io(action, &self.path)(source)
    }
}

/// FNV-1a, of 32 bits.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of() -> Of {
        Of {
            uuid: "00010203-0405".to_owned(),
            device: "serial x".to_owned(),
            fs: "ext4".to_owned(),
            size_bytes: 1 << 40,
            start: 4096,
            length: u64::MAX,
            minimum: 0,
        }
    }

    #[test]
    fn what_was_written_is_read_until_it_is_done() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("deep/er");
        let cursor = Cursor::of(&place, of(), Path::new("/"));
        assert_eq!(cursor.read().unwrap(), Left::Nothing);
        cursor.write(1 << 30, 7).unwrap();
        cursor.write(2 << 30, 9).unwrap();
        let Left::Here(state) = cursor.read().unwrap() else {
            panic!("it is there");
        };
        assert_eq!((state.position, state.trimmed_bytes), (2 << 30, 9));
        let copy = Cursor::of(
            &place,
            Of {
                device: "serial y".to_owned(),
                ..of()
            },
            Path::new("/"),
        );
        assert_eq!(
            copy.read().unwrap(),
            Left::Nothing,
            "another device is another file"
        );
        cursor.remove().unwrap();
        cursor.remove().unwrap();
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    }

    #[test]
    fn one_at_a_time_has_the_turn() {
        let directory = tempfile::tempdir().unwrap();
        let cursor = Cursor::of(&directory.path().join("deep"), of(), Path::new("/"));
        let turn = cursor.turn().unwrap().unwrap();
        assert!(cursor.turn().unwrap().is_none());
        drop(turn);
        let again = cursor.turn().unwrap().unwrap();
        drop(again);
        let left = fs::read_dir(directory.path().join("deep")).unwrap();
        assert_eq!(left.count(), 0, "nothing is left of it");
    }

    #[test]
    fn a_part_has_a_note_of_its_own_and_no_turn_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let part = |start, length, minimum| {
            let of = Of {
                start,
                length,
                minimum,
                ..of()
            };
            Cursor::of(directory.path(), of, Path::new("/"))
        };
        let whole = part(0, u64::MAX, 0);
        let name = format!("00010203-0405-{:08x}.json", fnv(b"serial x"));
        assert_eq!(whole.path(), directory.path().join(name));
        whole.write(1 << 30, 7).unwrap();
        for part in [
            part(1 << 20, u64::MAX, 0),
            part(0, 1 << 21, 0),
            part(0, u64::MAX, 4096),
        ] {
            assert_eq!(part.read().unwrap(), Left::Nothing);
            part.write(1 << 20, 1).unwrap();
            assert!(matches!(part.read().unwrap(), Left::Here(_)));
            let turn = part.turn().unwrap();
            assert!(turn.is_some() && whole.turn().unwrap().is_none());
            part.remove().unwrap();
        }
        let left = whole.read().unwrap();
        assert!(
            matches!(&left, Left::Here(state) if state.position == 1 << 30),
            "{left:?}"
        );
    }

    #[test]
    fn of_another_size_or_part_it_is_outdated_whatever_its_position() {
        let directory = tempfile::tempdir().unwrap();
        let cursor = Cursor::of(directory.path(), of(), Path::new("/"));
        let mut was = of();
        let mut outdated = |change: &dyn Fn(&mut Of), said: &str| {
            change(&mut was);
            let last = Cursor::of(directory.path(), was.clone(), Path::new("/"));
            last.write(1 << 30, 7).unwrap();
            fs::rename(last.path(), cursor.path()).unwrap();
            match cursor.read().unwrap() {
                Left::Outdated(why) => assert!(why.contains(said), "{said}: {why}"),
                other => panic!("{said}: {other:?}"),
            }
        };
        outdated(&|was| was.minimum = 1, "--minimum");
        outdated(
            &|was| (was.start, was.length) = (1 << 20, 1 << 21),
            "--length",
        );
        outdated(&|was| was.size_bytes *= 2, "it had 2.0 TiB");
    }

    #[test]
    fn the_notes_of_earlier_versions_are_read_and_that_of_a_later_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let cursor = Cursor::of(directory.path(), of(), Path::new("/"));
        for text in testkit::formats::all("fstrim-notebook") {
            cursor.put(&text).unwrap();
            let left = cursor.read().unwrap();
            assert!(
                matches!(&left, Left::Here(state) if state.position == 1 << 30),
                "{left:?}"
            );
            cursor.put(&testkit::formats::newer(&text)).unwrap();
            let left = cursor.read().unwrap();
            assert!(
                matches!(&left, Left::Outdated(why) if why.contains("trimbench 99.0.0 wrote it")),
                "{left:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_ours_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let cursor = Cursor::of(directory.path(), of(), Path::new("/"));
        let place = cursor.path().display().to_string();
        let refused = |said: &str| match cursor.read().unwrap() {
            Left::Outdated(why) => {
                assert!(
                    why.starts_with(&place) && why.contains(said),
                    "{said}: {why}"
                );
            }
            other => panic!("{said}: {other:?}"),
        };
        cursor.write(1 << 30, 7).unwrap();
        let good = fs::read_to_string(cursor.path()).unwrap();
        let put = |text: &str| {
            let _ = fs::remove_file(cursor.path());
            fs::write(cursor.path(), text).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            fs::set_permissions(cursor.path(), mode).unwrap();
        };
        put("");
        refused("no state of a trim");
        put(&good.replace("\"position\":1073741824", "\"position\":-1"));
        refused("no state of a trim");
        put(&good.replace("\"position\":1073741824", "\"position\":0"));
        refused("can't be");
        put(&good.replace("fstrim/1", "fstrim/9"));
        refused("wrote it as trimbench.fstrim/9");
        put(&good.replace("\"ext4\"", "\"xfs\""));
        refused("another file system");
        put(&"x".repeat(100_000));
        refused("no state of a trim");
        put(&good);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o622);
        fs::set_permissions(cursor.path(), mode).unwrap();
        refused("others could");
        fs::remove_file(cursor.path()).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", cursor.path()).unwrap();
        refused("symbolic link");
        cursor.write(1 << 30, 7).unwrap();
        assert!(fs::read_to_string("/etc/passwd").unwrap().contains("root"));
        fs::remove_file(cursor.path()).unwrap();
        fs::create_dir(cursor.path()).unwrap();
        refused("no regular file");
    }
}
