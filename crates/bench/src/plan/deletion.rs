//! The deletion: its files, its method, and its control.

use std::time::Duration;

use load::deleter::End;
use serde::Serialize;

use super::seconds;

/// Files are made of whole blocks of this many bytes.
pub(crate) const BLOCK: u64 = 4096;

/// The files to delete, and the method.
#[derive(Debug, Clone, Serialize)]
pub struct Deletion {
    /// How.
    pub method: Method,
    /// Bytes over all files; of a deletion that goes on ([`Method::is_continuous`])
    /// the most that is live at once.
    pub size_bytes: u64,
    /// Number of files; a deletion that goes on makes its own.
    pub files: u32,
    /// Fragments the files on purpose: size of their extents, in bytes.
    pub extent_bytes: Option<u64>,
    /// Whether a commit is forced after the last deletion call.
    pub commit: bool,
}

impl Deletion {
    /// Bytes of each file: whole blocks, whatever the number of files.
    pub fn file_bytes(&self) -> u64 {
        match self.method {
            Method::Lsm { file_bytes, .. } => file_bytes,
            _ => self.size_bytes / u64::from(self.files_at_once().max(1)) / BLOCK * BLOCK,
        }
    }

    /// Files that share the bytes.
    pub(crate) fn files_at_once(&self) -> u32 {
        match self.method {
            Method::Spill { parallel, .. } => parallel,
            _ => self.files,
        }
    }
}

/// How data are deleted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// unlink(2).
    Unlink {
        /// Calls in flight at once.
        parallel: u32,
    },
    /// ftruncate(2) from the tail in pieces, then unlink(2): what slowrm does.
    Truncate {
        /// Bytes per piece.
        chunk_bytes: u64,
        /// Pause after each piece, in seconds in the record.
        #[serde(serialize_with = "seconds", rename = "sleep_s")]
        sleep: Duration,
        /// fsync(2) after each piece.
        fsync: bool,
    },
    /// An outside program.
    Command {
        /// Program and arguments; `{}` stands for the file.
        argv: Vec<String>,
    },
    /// BLKDISCARD, on a raw device.
    Discard {
        /// Bytes per call; the kernel cuts it to the device's limit.
        step_bytes: u64,
    },
    /// fallocate(2) that punches holes, piece by piece, then unlink(2).
    Punch {
        /// Where it begins.
        from: End,
        /// Bytes per piece.
        chunk_bytes: u64,
        /// Pause after each piece.
        #[serde(serialize_with = "seconds", rename = "sleep_s")]
        sleep: Duration,
    },
    /// FITRIM over the whole file system. The files are deleted, and that is
    /// committed, while preparing: what is measured is the trimming.
    Fstrim,
    /// The end of an online schema change: rename the table aside, rename its
    /// replacement in, fsync the directory, unlink the old one; for each file.
    Swap,
    /// A log's purge: the oldest files, a few at a time.
    Purge {
        /// Files at a time.
        at_once: u32,
        /// From one time to the next.
        #[serde(serialize_with = "seconds", rename = "every_s")]
        every: Duration,
    },
    /// An LSM tree's compaction: files are written and dropped at a rate, over
    /// several levels.
    Lsm {
        /// Levels of the tree.
        levels: u32,
        /// Bytes of each file.
        file_bytes: u64,
        /// Bytes written per second.
        rate_bytes_per_s: u64,
        /// For how long.
        #[serde(serialize_with = "seconds", rename = "run_for_s")]
        run_for: Duration,
    },
    /// A deletion by another program, which the run only watches.
    Event {
        /// The trigger that begins and ends it.
        trigger: Trigger,
        /// It is over when no significant discard has come for so long.
        #[serde(serialize_with = "seconds", rename = "quiet_s")]
        quiet: Duration,
    },
    /// A sort's temporary files: create, write, unlink, again and again.
    Spill {
        /// Files at a time; together they are as large as the deletion's size.
        parallel: u32,
        /// Pause after each.
        #[serde(serialize_with = "seconds", rename = "pause_s")]
        pause: Duration,
        /// For how long.
        #[serde(serialize_with = "seconds", rename = "run_for_s")]
        run_for: Duration,
    },
}

impl Method {
    /// Size of the file that takes a table's place in [`Method::Swap`]: writing
    /// the new table isn't the subject, only that there is one.
    pub const REPLACEMENT_BYTES: u64 = 1 << 20;

    /// Whether it makes and drops files over a stretch of time, so that there is
    /// no moment before which nothing was deleted.
    pub fn is_continuous(&self) -> bool {
        self.run_for().is_some()
    }

    /// The event, where it is one.
    pub fn event(&self) -> Option<&Trigger> {
        match self {
            Method::Event { trigger, .. } => Some(trigger),
            _ => None,
        }
    }

    /// Whether an outside program or a person decides how much it frees.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Method::Command { .. } | Method::Event { .. })
    }

    /// Whether the run makes the files that it deletes before it begins.
    pub fn has_files(&self) -> bool {
        !self.is_continuous() && self.event().is_none()
    }

    /// Whether it works in a folder of its own, where it names the files.
    pub(crate) fn needs_folder(&self) -> bool {
        matches!(
            self,
            Method::Swap | Method::Lsm { .. } | Method::Spill { .. }
        )
    }

    /// Whether a control of that kind says anything about it. A second name keeps
    /// a file's space only from an unlink, and no option of a mount keeps FITRIM
    /// or a raw device from discarding. An event happens once.
    pub fn takes(&self, control: Control) -> bool {
        match (self, control) {
            (Method::Fstrim | Method::Discard { .. } | Method::Event { .. }, _) => false,
            (_, Control::Nodiscard) => true,
            (Method::Unlink { .. } | Method::Purge { .. }, Control::SecondName) => true,
            (_, Control::SecondName) => false,
        }
    }

    /// How long a deletion that goes on does so.
    pub fn run_for(&self) -> Option<Duration> {
        match *self {
            Method::Lsm { run_for, .. } | Method::Spill { run_for, .. } => Some(run_for),
            _ => None,
        }
    }
}

/// The trigger that begins and ends an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A command: the run starts it, and it ends by itself.
    Command {
        /// As it was given.
        text: String,
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// A person marks both (see [`crate::Claimed::marked_by`]).
    Manual,
}

/// How the control run keeps discards away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// The same deletion on the file system remounted nodiscard.
    Nodiscard,
    /// Unlinking second names of the files, which frees nothing.
    SecondName,
}

impl Control {
    /// The method in words, as verdicts name it.
    pub fn in_words(self) -> &'static str {
        match self {
            Control::Nodiscard => "nodiscard",
            Control::SecondName => "second name",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::example_deletion;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn a_file_is_whole_blocks_of_its_share() {
        let mut deletion = example_deletion(Method::Unlink { parallel: 1 });
        (deletion.size_bytes, deletion.files) = (100_000, 3);
        assert_eq!(deletion.file_bytes(), 32_768);
        deletion.method = Method::Spill {
            parallel: 2,
            pause: S,
            run_for: S,
        };
        assert_eq!(deletion.file_bytes(), 49_152, "one for each thread");
        deletion.method = Method::Lsm {
            levels: 3,
            file_bytes: 8192,
            rate_bytes_per_s: 1,
            run_for: S,
        };
        assert_eq!(deletion.file_bytes(), 8192);
    }

    #[test]
    fn a_control_is_taken_only_where_it_keeps_discards_away() {
        use Control::{Nodiscard, SecondName};
        let of = |method: Method| (method.takes(Nodiscard), method.takes(SecondName));
        let purge = Method::Purge {
            at_once: 1,
            every: S,
        };
        let spill = Method::Spill {
            parallel: 1,
            pause: S,
            run_for: S,
        };
        assert_eq!(of(Method::Unlink { parallel: 1 }), (true, true));
        assert_eq!(of(purge), (true, true));
        assert_eq!(of(Method::Swap), (true, false));
        assert_eq!(of(spill), (true, false));
        assert_eq!(of(Method::Fstrim), (false, false));
    }
}
