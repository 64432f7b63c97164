//! From what a scenario says to what a plan does: the defaults of actors and
//! ways to delete.

use std::time::Duration;

use load::task;
use units::{GIB, MIB};

use super::words::{ActorOp, How};
use super::{Actor, Deletion};
use crate::drain::QUIET;
use crate::plan::{self, Arrival, End, Method, Op, Pattern, Trigger, Work};

/// Operations in flight of a closed loop in the shared file.
const DEPTH: u32 = 8;
/// Most operations in flight of an open loop.
const OPEN_DEPTH: u32 = 64;
/// The same of a task: a log has one writer, and other requests wait for it.
const TASK_OPEN_DEPTH: u32 = 1;
/// Bytes per operation: what most benchmarks read.
const BLOCK_BYTES: u32 = 4096;
/// Share of reads of a mixed load, in percent.
const READ_PERCENT: u8 = 70;
/// Bytes that slowrm cuts off at a time.
const CHUNK: u64 = 128 * MIB;
/// How long slowrm pauses then.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes that mkfs tools discard at a time.
const DISCARD_STEP: u64 = GIB;

impl Actor {
    /// The plan's actor, with defaults for what is left out.
    pub fn planned(&self) -> plan::Actor {
        let name = self.name.clone();
        let work = match self.op() {
            ActorOp::Task(kind) => self.task(kind),
            ActorOp::Read => self.blocks(Op::Read),
            ActorOp::Write => self.blocks(Op::Write),
            ActorOp::Append => self.blocks(Op::Append),
            ActorOp::Mixed => self.blocks(Op::Mixed {
                read_percent: self.read_percent.unwrap_or(READ_PERCENT),
            }),
        };
        plan::Actor {
            name: name.unwrap_or_else(|| self.op().name().to_owned()),
            work,
            arrival: self.planned_arrival(),
        }
    }

    fn blocks(&self, op: Op) -> Work {
        Work::Blocks {
            op,
            pattern: match op {
                Op::Append => Pattern::Sequential,
                _ => self.pattern.unwrap_or(Pattern::Random),
            },
            block_bytes: self.block_bytes.unwrap_or(BLOCK_BYTES),
            direct: !self.buffered.unwrap_or(false),
            size_bytes: match op {
                Op::Append => Some(self.size_bytes.unwrap_or(GIB)),
                _ => None,
            },
        }
    }

    fn task(&self, name: &'static str) -> Work {
        let kind = task::kind(name);
        let default_block = kind.map_or(BLOCK_BYTES, |kind| kind.default_block_bytes);
        let default_size = kind.map_or(0, |kind| kind.default_size_bytes);
        Work::Task {
            kind: name.to_owned(),
            block_bytes: self.block_bytes.unwrap_or(default_block),
            size_bytes: self.size_bytes.unwrap_or(default_size),
        }
    }

    fn planned_arrival(&self) -> Arrival {
        let kind = match self.op() {
            ActorOp::Task(name) => task::kind(name),
            _ => None,
        };
        let poisson = self.poisson.unwrap_or(false);
        match (self.rate_per_s, kind) {
            (Some(rate_per_s), kind) => Arrival::Open {
                rate_per_s,
                poisson,
                depth: self.depth.unwrap_or(match kind {
                    Some(_) => TASK_OPEN_DEPTH,
                    None => OPEN_DEPTH,
                }),
            },
            (None, Some(kind)) if self.depth.is_none() => match kind.default_arrival {
                load::Arrival::Closed { depth, batch } => Arrival::Closed { depth, batch },
                load::Arrival::Open {
                    rate_per_s,
                    poisson,
                    depth,
                } => Arrival::Open {
                    rate_per_s,
                    poisson,
                    depth,
                },
            },
            (None, kind) => Arrival::Closed {
                depth: self.depth.unwrap_or(match (kind, self.op()) {
                    (None, ActorOp::Append) => 1,
                    _ => DEPTH,
                }),
                batch: self.batch.unwrap_or(1),
            },
        }
    }
}

impl Deletion {
    /// How the plan deletes with one of our own ways; `None`: not at all, or by an event.
    /// `size_bytes` is what was chosen for it.
    pub fn planned(&self, how: How, size_bytes: u64) -> Option<Method> {
        let chunk_bytes = self.chunk_bytes.unwrap_or(CHUNK);
        let sleep = self.sleep.unwrap_or(PAUSE);
        let run_for = self.run_for.unwrap_or(Duration::from_secs(30));
        Some(match how {
            How::None | How::Event => return None,
            How::Unlink => Method::Unlink {
                parallel: self.parallel.unwrap_or(1),
            },
            How::Truncate => Method::Truncate {
                chunk_bytes,
                sleep,
                fsync: self.fsync.unwrap_or(false),
            },
            How::Punch => Method::Punch {
                from: self.from.unwrap_or(End::Head),
                chunk_bytes,
                sleep,
            },
            How::Fstrim => Method::Fstrim,
            How::Swap => Method::Swap,
            How::Purge => Method::Purge {
                at_once: self.at_once.unwrap_or(4),
                every: self.every.unwrap_or(Duration::from_secs(2)),
            },
            How::Lsm => {
                let levels = self.levels.unwrap_or(3);
                Method::Lsm {
                    levels,
                    file_bytes: self
                        .file_bytes
                        .unwrap_or_else(|| lsm_file(size_bytes, levels)),
                    rate_bytes_per_s: self.write_rate_bytes_per_s.unwrap_or(100 * MIB),
                    run_for,
                }
            }
            How::Spill => Method::Spill {
                parallel: self.parallel.unwrap_or(4),
                pause: self.sleep.unwrap_or(Duration::from_millis(500)),
                run_for,
            },
        })
    }

    /// How the plan watches an event.
    pub fn planned_event(&self, trigger: Trigger) -> Method {
        Method::Event {
            trigger,
            quiet: self.event_quiet.unwrap_or(QUIET),
        }
    }

    /// How the plan clears a raw device.
    pub fn planned_on_device(&self) -> Method {
        Method::Discard {
            step_bytes: self.chunk_bytes.unwrap_or(DISCARD_STEP),
        }
    }

    /// Number of files.
    pub fn planned_files(&self) -> u32 {
        self.files.unwrap_or(match self.how() {
            Some(How::Purge) => 32,
            Some(How::Event) => 0,
            _ => 1,
        })
    }
}

/// The size of RocksDB's tables by default, or less where the tree has little room.
fn lsm_file(size_bytes: u64, levels: u32) -> u64 {
    let room_for = 3 * u64::from(8 + levels);
    (size_bytes / room_for / MIB * MIB).clamp(MIB, 64 * MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(spec: &str) -> plan::Actor {
        spec.parse::<Actor>().unwrap().planned()
    }

    #[test]
    fn a_reader_has_the_defaults_that_help_tells() {
        let reader = actor("read");
        assert_eq!(reader.arrival, Arrival::Closed { depth: 8, batch: 1 });
        let Work::Blocks {
            op,
            pattern,
            block_bytes,
            direct,
            size_bytes,
        } = reader.work
        else {
            panic!("{reader:?}");
        };
        assert_eq!((op, pattern), (Op::Read, Pattern::Random));
        assert_eq!((block_bytes, direct, size_bytes), (4096, true, None));
    }

    #[test]
    fn a_rate_makes_an_open_loop_and_a_task_has_the_loop_of_its_kind() {
        let depth_of = |spec: &str| match actor(spec).arrival {
            Arrival::Open { depth, .. } => (true, depth),
            Arrival::Closed { depth, .. } => (false, depth),
        };
        assert_eq!(depth_of("read,rate=100"), (true, 64));
        assert_eq!(depth_of("save,rate=100"), (true, 1));
        assert_eq!(depth_of("save"), (false, 1));
        assert_eq!(depth_of("save,depth=3"), (false, 3));
        assert_eq!(depth_of("syncfs"), (true, 1));
        assert_eq!(depth_of("append"), (false, 1));
    }

    #[test]
    fn an_lsm_trees_files_fit_into_its_space() {
        for (size, levels) in [(GIB, 3), (4 * GIB, 3), (100 * MIB, 7), (64 * GIB, 2)] {
            let file = lsm_file(size, levels);
            assert!(file * u64::from(8 + levels) <= size, "{size} {levels}");
            assert!(file.is_multiple_of(4096));
        }
    }

    #[test]
    fn the_defaults_of_deletions() {
        let how = |how| Deletion::default().planned(how, GIB);
        assert_eq!(how(How::None), None);
        assert_eq!(how(How::Unlink), Some(Method::Unlink { parallel: 1 }));
        let purge = Deletion {
            how: Some(How::Purge),
            ..Deletion::default()
        };
        assert_eq!(purge.planned_files(), 32);
        assert_eq!(Deletion::default().planned_files(), 1);
    }
}
