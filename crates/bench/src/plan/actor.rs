//! One source of load in the foreground.

use std::path::PathBuf;

use serde::Serialize;

/// One source of load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Actor {
    /// Its name, unique in the run: the verdict and the record call it so.
    pub name: String,
    /// The work of each of its operations.
    pub work: Work,
    /// When they are issued.
    pub arrival: Arrival,
}

impl Actor {
    /// Random reads of 4 KiB all over the foreground's file.
    pub fn reader(direct: bool, arrival: Arrival) -> Actor {
        Actor {
            name: "reader".into(),
            work: Work::Blocks {
                op: Op::Read,
                pattern: Pattern::Random,
                block_bytes: 4096,
                direct,
                size_bytes: None,
            },
            arrival,
        }
    }
}

/// The work of an actor's operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Each moves a block.
    Blocks {
        /// The operation.
        op: Op,
        /// Where it goes next.
        pattern: Pattern,
        /// Bytes per operation.
        block_bytes: u32,
        /// Whether it goes past the page cache.
        direct: bool,
        /// The size at which an appender begins its file anew, in bytes;
        /// [`Work::APPEND_BYTES`] by default. The others share the foreground's file.
        size_bytes: Option<u64>,
    },
    /// Each is a short chain of system calls, with files in a directory of its own.
    Task {
        /// Which: a name of [`load::task::KINDS`].
        kind: String,
        /// Bytes per write.
        block_bytes: u32,
        /// Bytes of its file, of which each operation in flight has its own.
        size_bytes: u64,
    },
}

impl Actor {
    /// Bytes that the files of its own take at most, all together: a task has
    /// some for each operation in flight. 0 where there is no such task.
    pub fn own_bytes(&self) -> u64 {
        match &self.work {
            Work::Blocks { .. } => self.work.append_bytes().unwrap_or(0),
            Work::Task {
                kind,
                block_bytes,
                size_bytes,
            } => load::task::kind(kind).map_or(0, |kind| {
                let task = load::TaskSpec {
                    kind,
                    dir: PathBuf::new(),
                    block_bytes: *block_bytes,
                    size_bytes: *size_bytes,
                };
                task.space_bytes(self.arrival.depth())
            }),
        }
    }
}

impl Work {
    /// The default size of an appender's file: 1 GiB, as large as the foreground's file by
    /// default.
    pub const APPEND_BYTES: u64 = 1 << 30;

    /// Whether it works on the foreground's file.
    pub fn shares_file(&self) -> bool {
        match self {
            Work::Blocks { op, .. } => {
                matches!(op, Op::Read | Op::Write | Op::Mixed { .. })
            }
            Work::Task { .. } => false,
        }
    }

    /// Whether it appends to a file of its own.
    pub fn appends(&self) -> bool {
        matches!(self, Work::Blocks { op: Op::Append, .. })
    }

    /// The size of an appender's file, in bytes; `None` for anybody else.
    pub(crate) fn append_bytes(&self) -> Option<u64> {
        match self {
            Work::Blocks {
                op: Op::Append,
                size_bytes,
                ..
            } => Some(size_bytes.unwrap_or(Self::APPEND_BYTES)),
            Work::Blocks { .. } | Work::Task { .. } => None,
        }
    }
}

/// The kind of an operation on a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Reads it.
    Read,
    /// Overwrites it.
    Write,
    /// Writes it behind the one before, in a file that was empty at first.
    Append,
    /// Reads it or overwrites it, at random.
    Mixed {
        /// Share of the operations that read, 1 to 99 percent.
        read_percent: u8,
    },
    /// Nothing: measures the engine itself.
    Nop,
}

/// Where the next operation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Any block, each as likely.
    Random,
    /// The next one.
    Sequential,
}

/// When operations are issued.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// As soon as others finish.
    Closed {
        /// Operations kept in flight.
        depth: u32,
        /// Operations submitted and reaped at once.
        batch: u32,
    },
    /// At times set beforehand.
    Open {
        /// Operations per second.
        rate_per_s: f64,
        /// Poisson arrivals; otherwise evenly spaced.
        poisson: bool,
        /// Most operations in flight.
        depth: u32,
    },
}

impl Arrival {
    /// Most operations in flight.
    pub fn depth(&self) -> u32 {
        match *self {
            Arrival::Closed { depth, .. } | Arrival::Open { depth, .. } => depth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_bytes(work: Work, depth: u32) -> u64 {
        let actor = Actor {
            name: "one".into(),
            work,
            arrival: Arrival::Closed { depth, batch: 1 },
        };
        actor.own_bytes()
    }

    #[test]
    fn each_operation_in_flight_of_a_task_has_files_of_its_own() {
        let task = |kind: &str, block_bytes, size_bytes| Work::Task {
            kind: kind.into(),
            block_bytes,
            size_bytes,
        };
        assert_eq!(own_bytes(task("append-fsync", 4096, 1 << 20), 3), 3 << 20);
        assert_eq!(own_bytes(task("save", 5000, 0), 2), 2 * 2 * 8192);
        assert_eq!(own_bytes(task("syncfs", 0, 0), 8), 0);
    }

    #[test]
    fn an_appender_has_one_file_and_a_reader_none() {
        let blocks = |op, size_bytes| Work::Blocks {
            op,
            pattern: Pattern::Sequential,
            block_bytes: 4096,
            direct: false,
            size_bytes,
        };
        assert_eq!(own_bytes(blocks(Op::Append, Some(1 << 20)), 8), 1 << 20);
        assert_eq!(own_bytes(blocks(Op::Append, None), 8), Work::APPEND_BYTES);
        assert_eq!(own_bytes(blocks(Op::Read, None), 8), 0);
    }
}
