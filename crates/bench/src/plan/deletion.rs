//! The deletion: its files, its method, and its control.

use load::deleter::{Method, whole_blocks};
use serde::{Serialize, Serializer};
use storage::FileSystem;

/// The files to delete, and the method.
#[derive(Debug, Clone, Serialize)]
pub struct Deletion {
    /// How.
    pub method: Method,
    /// Bytes over all files; of a continuous deletion ([`Method::is_continuous`])
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
        let own = self.method.file_bytes(self.size_bytes);
        own.unwrap_or_else(|| whole_blocks(self.size_bytes / u64::from(self.files.max(1))))
    }

    /// Files that the run makes before it begins, to delete them.
    pub(crate) fn files_before(&self) -> u32 {
        match self.method.how().has_files {
            true => self.files,
            false => 0,
        }
    }
}

record::kinds! {
    /// How the control run keeps discards away.
    pub enum Control["control"] {
        /// no control
        Off = "off",
        /// a second name of each file is unlinked first, which frees nothing
        SecondName = "second-name",
        /// the file system is remounted nodiscard for the same deletion, and back
        Nodiscard = "remount",
    }
}

impl Control {
    /// Whether it says anything about a method. A second name keeps a file's space only from an
    /// unlink, and no option of a mount keeps FITRIM or a raw device from discarding. An event
    /// happens once.
    pub fn suits(self, method: &Method) -> bool {
        let how = method.how();
        !how.discards && (self == Control::Nodiscard || how.spares_names)
    }

    /// The control to take on a file system. Where a remount doesn't switch discards off, that is a
    /// second name, if one suits.
    pub(super) fn on(self, fs: FileSystem, method: &Method) -> Control {
        match self {
            Control::Nodiscard
                if !fs.remount_switches_discard() && Control::SecondName.suits(method) =>
            {
                Control::SecondName
            }
            control => control,
        }
    }

    /// How often the same is deleted, each time in files of its own.
    pub fn deletions(self) -> u32 {
        match self {
            Control::Nodiscard => 2,
            Control::SecondName | Control::Off => 1,
        }
    }

    /// Writes the method in words, as verdicts name it; null for none.
    pub(super) fn in_words<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Control::Off => serializer.serialize_none(),
            Control::SecondName => serializer.serialize_str("second name"),
            Control::Nodiscard => serializer.serialize_str("nodiscard"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use load::deleter::{Fstrim, Lsm, Purge, Spill, Swap, Unlink};

    use super::*;
    use crate::plan::example_deletion;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn a_file_is_whole_blocks_of_its_share() {
        let mut deletion = example_deletion(Unlink { parallel: 1 });
        (deletion.size_bytes, deletion.files) = (100_000, 3);
        assert_eq!(deletion.file_bytes(), 32_768);
        deletion.method = Spill {
            parallel: 2,
            pause: S,
            run_for: S,
        }
        .into();
        assert_eq!(deletion.file_bytes(), 49_152, "one for each thread");
        deletion.method = Lsm {
            levels: 3,
            file_bytes: 8192,
            rate_bytes_per_s: 1,
            run_for: S,
        }
        .into();
        assert_eq!(deletion.file_bytes(), 8192);
    }

    #[test]
    fn a_control_is_taken_only_where_it_keeps_discards_away() {
        use Control::{Nodiscard, SecondName};
        let of = |method: Method| (Nodiscard.suits(&method), SecondName.suits(&method));
        let purge = Purge {
            at_once: 1,
            every: S,
        };
        let spill = Spill {
            parallel: 1,
            pause: S,
            run_for: S,
        };
        assert_eq!(of(Unlink { parallel: 1 }.into()), (true, true));
        assert_eq!(of(purge.into()), (true, true));
        assert_eq!(of(Swap.into()), (true, false));
        assert_eq!(of(spill.into()), (true, false));
        assert_eq!(of(Fstrim.into()), (false, false));
    }
}
