//! The deletion: its files, its method, and its control.

use load::deleter::{Method, whole_blocks};
use serde::Serialize;

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
    /// Whether it says anything about a method. A second name keeps a file's space only from an
    /// unlink, and no option of a mount keeps FITRIM or a raw device from discarding. An event
    /// happens once.
    pub fn suits(self, method: &Method) -> bool {
        let how = method.how();
        !how.discards && (self == Control::Nodiscard || how.spares_names)
    }

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
