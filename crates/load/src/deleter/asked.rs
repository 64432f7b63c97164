//! The deletion that a person asks for: the keys of `[deletion]`, each of which may be left out.

use std::time::Duration;

use record::section;
use record::units::kinds::any_of;
use record::units::values as v;

use super::spec::{How, Method};
use super::{End, command, discard, event, unlink};

section! {
    /// The files to delete, and the method.
    pub struct AskedDeletion["deletion", AskedDeletion::kind, AskedDeletion::need] {
        /// How.
        "how" how: &'static How = How::parse, shown "unlink", words How::words;
        /// An outside program that deletes; {} stands for each file, and without it all files come
        /// after the arguments.
        "command" command: String = v::text, shown "none";
        /// Bytes over all files; lsm, spill: most that is there at once.
        "size" size_bytes: u64 = v::size, most "32G; lsm, spill: 4G";
        /// Number of files.
        "files" files: u32 = v::files, default "1; purge: 32";
        /// Size of the files' extents: fragments them on purpose.
        "extent-size" extent_bytes: u64 = v::size, shown "whatever the file system makes";
        /// Calls in flight at once, or files of a spill.
        "parallel" parallel: u32 = v::parallel, default "1; spill: 4";
        /// Bytes per step; of a raw device, per call.
        "chunk" chunk_bytes: u64 = v::size, default "128M; device: 1G";
        /// Pause after each step, or between two files of a spill.
        "sleep" sleep: Duration = v::duration, default "100ms; spill: 500ms";
        /// Whether each step is followed by fsync.
        "fsync" fsync: bool = v::truth, default "false";
        /// Force no commit after the deletion: then the file system decides when discards come.
        "no-sync" no_sync: bool = v::truth, default "false";
        /// The end of the file that is freed first.
        "from" from: End = str::parse, default "head", words End::words;
        /// Files unlinked at once.
        "at-once" at_once: u32 = v::files, default "4";
        /// Time from one removal to the next.
        "every" every: Duration = v::positive_duration, default "2s";
        /// Levels of the LSM tree.
        "levels" levels: u32 = v::levels, default "3";
        /// Bytes of each of the LSM tree's files.
        "file-size" file_bytes: u64 = v::size, shown "64M, or less in a small tree";
        /// Bytes per second that are written into the LSM tree, compactions included.
        "write-rate" write_rate_bytes_per_s: u64 = v::byte_rate, default "100M/s";
        /// How long a continuous deletion goes on.
        "for" run_for: Duration = v::positive_duration, default "30s";
        /// The event's command.
        "event" event: String = v::text, shown "none";
        /// The event is over when no discards have come for this long after its end.
        "event-quiet" event_quiet: Duration = v::positive_duration, default "2s";
        /// Most bytes that the whole run writes, its files included: writes wear flash.
        "writes-at-most" writes_at_most_bytes: u64 = v::size, default "32G";
    }
}

impl AskedDeletion {
    /// The way that it deletes.
    pub fn way(&self) -> &'static How {
        match (&self.command, self.how) {
            (Some(_), _) => &command::HOW,
            (None, Some(how)) => how,
            (None, None) if self.event.is_some() => &event::HOW,
            (None, None) => &unlink::HOW,
        }
    }

    /// The method with every figure, for so many bytes; `None` if nothing is deleted. A raw device is
    /// discarded, whatever the way.
    ///
    /// # Errors
    /// With what is wrong, for a person.
    pub fn method(&self, on_device: bool, size_bytes: u64) -> Result<Option<Method>, String> {
        match self.way() {
            none if none.is_none() => Ok(None),
            _ if on_device => {
                let asked = AskedDeletion {
                    how: Some(&discard::HOW),
                    ..self.clone()
                };
                (discard::HOW.of)(&asked, size_bytes).map(Some)
            }
            way => (way.of)(self, size_bytes).map(Some),
        }
    }

    /// The files that are made to be deleted.
    pub fn files_made(&self) -> u32 {
        match [&event::HOW, &event::TRIM].contains(&self.way()) {
            true => 0,
            false => self.files(),
        }
    }

    /// The kind of which its defaults are.
    fn kind(&self) -> &'static str {
        match self.way().name {
            "discard" => "device",
            name => name,
        }
    }

    /// The need of a key that only some ways have, if the deletion's is another one.
    fn need(&self, key: &str) -> Option<String> {
        let way = self.way();
        Some(match key {
            "how" if self.command.is_some() => "no command: the program is how".to_owned(),
            "how" | "command" => return None,
            _ if way.takes(key) => return None,
            _ if way.is_none() => "a deletion".to_owned(),
            "size" => "a deletion of the test's own files".to_owned(),
            _ => {
                let ways = How::all_words().filter(|how| how.takes(key));
                let names: Vec<&str> = ways.map(|how| how.name).collect();
                format!("how = {} (--delete)", any_of(&names))
            }
        })
    }
}
