//! From what a scenario says of an actor to what a plan does, with the defaults of its kind.

use load::{ActorSpec, Blocks, LoopKind, Op, PatternKind, TaskSpec, Work, task};
use record::units::GIB;

use super::Actor;
use super::words::{ActorOp, Arrival};

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
                poisson: self.arrival() == Arrival::Poisson,
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
}
