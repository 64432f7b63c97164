//! From what a scenario says to what a plan does: the defaults of actors and
//! ways to delete.

use load::{ActorSpec, Blocks, LoopKind, Op, PatternKind, TaskSpec, Work, task};
use units::settings::{Section, default_of};
use units::{GIB, MIB};

use super::words::{ActorOp, How};
use super::{Actor, Deletion};
use crate::plan::{Method, Trigger};

impl Actor {
    /// The plan's actor, with defaults for what is left out.
    pub fn planned(&self) -> ActorSpec {
        let (work, own_loop) = match self.op() {
            ActorOp::Task(kind) => (Work::Task(self.task(kind)), Some(kind.default_arrival)),
            ActorOp::Read => (self.blocks(Op::Read), None),
            ActorOp::Write => (self.blocks(Op::Write), None),
            ActorOp::Append => (self.blocks(Op::Append), None),
            ActorOp::Mixed => {
                let read_percent = self.read_percent();
                (self.blocks(Op::Mixed { read_percent }), None)
            }
        };
        let depth = self.depth();
        let arrival = match (self.rate_per_s, own_loop.filter(|_| self.depth.is_none())) {
            (Some(rate_per_s), _) => LoopKind::Open {
                rate_per_s,
                poisson: self.poisson(),
                depth,
            },
            (None, Some(own)) => own,
            (None, None) => LoopKind::Closed { depth },
        };
        let name = self.name.clone();
        ActorSpec {
            name: name.unwrap_or_else(|| self.op().name().to_owned()),
            work,
            arrival,
            seed: 0,
        }
    }

    fn blocks(&self, op: Op) -> Work {
        let append = op == Op::Append;
        Work::Blocks(Blocks {
            op,
            pattern: match append {
                true => PatternKind::Sequential,
                false => self.pattern(),
            },
            block_bytes: self.block_bytes(),
            direct: !self.buffered(),
            size_bytes: append.then(|| self.size_bytes.unwrap_or(GIB)),
            batch: self.batch(),
            ..Blocks::READS
        })
    }

    fn task(&self, kind: &'static task::Kind) -> TaskSpec {
        let default = TaskSpec::of(kind);
        TaskSpec {
            block_bytes: self.block_bytes.unwrap_or(default.block_bytes),
            size_bytes: self.size_bytes.unwrap_or(default.size_bytes),
            ..default
        }
    }
}

impl Deletion {
    /// How the plan deletes with one of our own ways; `None`: not at all, or by an event.
    /// `size_bytes` is what was chosen for it.
    pub fn planned(&self, how: How, size_bytes: u64) -> Option<Method> {
        let (chunk_bytes, sleep) = (self.chunk_bytes(), self.sleep());
        Some(match how {
            How::None | How::Event => return None,
            How::Unlink => Method::Unlink {
                parallel: self.parallel(),
            },
            How::Truncate => Method::Truncate {
                chunk_bytes,
                sleep,
                fsync: self.fsync(),
            },
            How::Punch => Method::Punch {
                from: self.from(),
                chunk_bytes,
                sleep,
            },
            How::Fstrim => Method::Fstrim,
            How::Swap => Method::Swap,
            How::Purge => Method::Purge {
                at_once: self.at_once(),
                every: self.every(),
            },
            How::Lsm => {
                let levels = self.levels();
                Method::Lsm {
                    levels,
                    file_bytes: self
                        .file_bytes
                        .unwrap_or_else(|| lsm_file(size_bytes, levels)),
                    rate_bytes_per_s: self.write_rate_bytes_per_s(),
                    run_for: self.run_for(),
                }
            }
            How::Spill => Method::Spill {
                parallel: self.parallel(),
                pause: sleep,
                run_for: self.run_for(),
            },
        })
    }

    /// How the plan watches an event.
    pub fn planned_event(&self, trigger: Trigger) -> Method {
        Method::Event {
            trigger,
            quiet: self.event_quiet(),
        }
    }

    /// The files that the plan makes to delete.
    pub fn planned_files(&self) -> u32 {
        match self.way() {
            Some(How::Event) => 0,
            _ => self.files(),
        }
    }

    /// How the plan clears a raw device.
    pub fn planned_on_device(&self) -> Method {
        let default = Deletion::KEYS.iter().find(|key| key.name == "chunk");
        let default = default.and_then(|key| key.default).unwrap_or_default();
        let step_bytes = units::parse_size(default_of(default, "device")).unwrap_or(GIB);
        Method::Discard {
            step_bytes: self.chunk_bytes.unwrap_or(step_bytes),
        }
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

    fn actor(spec: &str) -> ActorSpec {
        spec.parse::<Actor>().unwrap().planned()
    }

    #[test]
    fn a_reader_has_the_defaults_that_help_tells() {
        let reader = actor("read");
        let json = serde_json::to_value(&reader).unwrap();
        let blocks = serde_json::json!({
            "op": "read", "pattern": "random", "block_bytes": 4096, "direct": true, "size_bytes": null,
        });
        let arrival = serde_json::json!({"closed": {"depth": 8, "batch": 1}});
        assert_eq!(
            (&json["work"]["blocks"], &json["arrival"]),
            (&blocks, &arrival)
        );
    }

    #[test]
    fn a_rate_makes_an_open_loop_and_a_task_has_the_loop_of_its_kind() {
        let depth_of = |spec: &str| {
            let arrival = actor(spec).arrival;
            (arrival.is_open(), arrival.depth())
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
    fn a_raw_device_is_discarded_in_larger_steps() {
        let step_bytes = GIB;
        let plain = Deletion::default();
        assert_eq!(plain.planned_on_device(), Method::Discard { step_bytes });
        assert_eq!(plain.planned(How::None, GIB), None);
    }
}
