//! The columns of the record that an actor fills: most have one; a mix of
//! reads and writes has two, and a task as many as it times parts.

use std::sync::Arc;

use record::{ActorInfo, LoopKind};

use super::blocks::{Blocks, Op};
use super::spec::{ActorSpec, Work};
use crate::meter::Meter;
use crate::sampler::Sampler;
use crate::task::TaskSpec;

/// One column of the record.
#[derive(Debug, Clone)]
pub struct Series {
    /// The actor's entry in the record's head, with the engine really used.
    pub info: ActorInfo,
    /// Where its operations are counted; give it to a [`Sampler`].
    pub meter: Arc<Meter>,
}

impl Series {
    /// A sampler of its meter; have only one.
    pub fn sampler(&self) -> Sampler {
        Sampler::new(self.meter.clone())
    }
}

/// The description of one series, apart from the actor it belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Part {
    /// The word for its operations.
    op: &'static str,
    /// Of each operation of the actor's loop, how many count in this series, on average.
    pub(super) share: f64,
    /// Whether which ones those are is drawn.
    drawn: bool,
    bytes_per_op: u64,
}

impl ActorSpec {
    /// The entries of its series in the record's head.
    pub fn series(&self) -> Vec<ActorInfo> {
        let parts = self.parts();
        let several = parts.len() > 1;
        let info = |part: &Part| ActorInfo {
            name: if several {
                format!("{}-{}", self.name, part.op)
            } else {
                self.name.clone()
            },
            op: part.op.to_owned(),
            loop_kind: loop_of(self.arrival, part),
            block_bytes: part.bytes_per_op,
            pattern: self.pattern_word(),
            direct: Some(matches!(&self.work, Work::Blocks(b) if b.direct && b.op != Op::Nop)),
            engine: self.engine().name().to_owned(),
        };
        parts.iter().map(info).collect()
    }

    /// Its series, in the order of the record's columns; at least one.
    pub(super) fn parts(&self) -> Vec<Part> {
        match &self.work {
            Work::Blocks(blocks) => of_blocks(blocks),
            Work::Task(task) => of_task(task),
        }
    }

    /// A meter for each series: with so many threads, and so many operations in flight each.
    pub(super) fn meters(&self, lanes: u32, slots: u32) -> Vec<Arc<Meter>> {
        let open = self.arrival.is_open();
        let meter = |part: &Part| Arc::new(Meter::new(lanes, slots, part.bytes_per_op, open));
        self.parts().iter().map(meter).collect()
    }

    fn pattern_word(&self) -> Option<String> {
        match &self.work {
            Work::Blocks(blocks) if blocks.op != Op::Nop => Some(blocks.order().name().to_owned()),
            _ => None,
        }
    }
}

fn of_blocks(blocks: &Blocks) -> Vec<Part> {
    let whole = Part {
        op: blocks.op.as_str(),
        share: 1.0,
        drawn: false,
        bytes_per_op: u64::from(blocks.bytes_per_op()),
    };
    match blocks.op {
        Op::Mixed { read_percent } => {
            let reads = f64::from(read_percent) / 100.0;
            let drawn = |op: Op, share| Part {
                op: op.as_str(),
                share,
                drawn: true,
                ..whole
            };
            vec![drawn(Op::Read, reads), drawn(Op::Write, 1.0 - reads)]
        }
        _ => vec![whole],
    }
}

fn of_task(task: &TaskSpec) -> Vec<Part> {
    let part = |op: &&'static str| Part {
        op,
        share: 1.0,
        drawn: false,
        bytes_per_op: task.bytes_per_op(),
    };
    task.kind.series.iter().map(part).collect()
}

fn loop_of(arrival: LoopKind, part: &Part) -> LoopKind {
    match arrival {
        closed @ LoopKind::Closed { .. } => closed,
        LoopKind::Open {
            rate_per_s,
            poisson,
            depth,
        } => LoopKind::Open {
            rate_per_s: rate_per_s * part.share,
            // Drawing from evenly spaced times leaves random ones.
            poisson: poisson || part.drawn,
            depth,
        },
    }
}
