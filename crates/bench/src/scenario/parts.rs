//! The keys of a scenario, section by section.

use std::path::PathBuf;
use std::time::Duration;

use super::section::section;
use super::values as v;
use super::words::{ActorOp, How};
use crate::plan::{End, Engine, Pattern};

section! {
    /// The keys at the top, outside any section.
    General {
        /// The scenario in a line.
        "about" about: String = v::line;
        /// The figure that tells most.
        "look-at" look_at: String = v::line;
        /// A fio job file that is the foreground, beside the file of the scenario.
        "fio" fio: PathBuf = v::path;
        /// The engine of reads and writes.
        "engine" engine: Engine = v::engine;
        /// Reads per second of the canary; 0 for none.
        "canary" canary_per_s: f64 = v::rate_or_none;
        /// Seed of offsets and arrivals.
        "seed" seed: u64 = v::number;
        /// Whether the same is deleted without discards first.
        "control" control: bool = v::truth;
        /// Whether that is had by a remount.
        "remount" remount: bool = v::truth;
    }
}

section! {
    /// The file that readers and writers share, as a database's table.
    Foreground {
        /// Its size, in bytes.
        "size" size_bytes: u64 = v::size;
    }
}

section! {
    /// One source of load in the foreground.
    Actor {
        /// Its name in the output.
        "name" name: String = v::actor_name;
        /// Its operation.
        "op" op: ActorOp = v::op;
        /// Order of its blocks.
        "pattern" pattern: Pattern = v::pattern;
        /// Bytes per operation.
        "block-size" block_bytes: u32 = v::block_size;
        /// Operations in flight: kept so in closed loop, at most in open loop.
        "depth" depth: u32 = v::depth;
        /// Operations submitted and reaped at once (closed loop).
        "batch" batch: u32 = v::depth;
        /// Open loop: operations per second.
        "rate" rate_per_s: f64 = v::rate;
        /// Open loop: whether operations arrive as a Poisson process.
        "arrival" poisson: bool = v::arrival;
        /// Whether it goes through the page cache.
        "buffered" buffered: bool = v::truth;
        /// Share of reads in a mixed load, in percent.
        "reads" read_percent: u8 = v::read_percent;
        /// Largest size of its own file, in bytes.
        "size" size_bytes: u64 = v::size;
    }
}

section! {
    /// The files to delete, and the method.
    Deletion {
        /// How.
        "how" how: How = v::how;
        /// An outside program that deletes.
        "command" command: String = v::text;
        /// Bytes over all files; of a continuous deleter, most that is there at once.
        "size" size_bytes: u64 = v::size;
        /// Number of files.
        "files" files: u32 = v::files;
        /// Size of the files' extents, in bytes: fragments them on purpose.
        "extent-size" extent_bytes: u64 = v::size;
        /// Calls, or files, in flight at once.
        "parallel" parallel: u32 = v::parallel;
        /// Bytes per step.
        "chunk" chunk_bytes: u64 = v::size;
        /// Pause after each step.
        "sleep" sleep: Duration = v::duration;
        /// Whether each step is followed by fsync.
        "fsync" fsync: bool = v::truth;
        /// Whether no commit is forced at the end.
        "no-sync" no_sync: bool = v::truth;
        /// The end that holes are punched from.
        "from" from: End = v::end;
        /// Files removed at once.
        "at-once" at_once: u32 = v::files;
        /// Time from one removal to the next.
        "every" every: Duration = v::positive_duration;
        /// Levels of the LSM tree.
        "levels" levels: u32 = v::levels;
        /// Bytes of each of the LSM tree's files.
        "file-size" file_bytes: u64 = v::size;
        /// Bytes per second that flow into the LSM tree.
        "write-rate" write_rate_bytes_per_s: u64 = v::byte_rate;
        /// How long a continuous deleter goes on.
        "run-for" run_for: Duration = v::positive_duration;
        /// The event's command, or `manual`.
        "event" event: String = v::text;
        /// Undisturbed time before the event.
        "event-at" event_at: Duration = v::positive_duration;
        /// Time without discards after which the event is over.
        "event-quiet" event_quiet: Duration = v::positive_duration;
    }
}

section! {
    /// How long the phases last, and what counts as low in them.
    Phases {
        /// Longest time to wait for a steady foreground.
        "settle" settle: Duration = v::duration;
        /// Length of the baseline.
        "baseline" baseline: Duration = v::positive_duration;
        /// Length of the recovery.
        "recovery" recovery: Duration = v::duration;
        /// How long discards are waited for.
        "drain-limit" drain_limit: Duration = v::duration;
        /// Length of the record's intervals.
        "interval" interval: Duration = v::interval;
        /// Share of the baseline below which an interval counts as stalled.
        "low" low: f64 = v::low;
    }
}
