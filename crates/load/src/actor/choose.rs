//! Which engine really runs, and in words why it isn't the one asked for.

use std::sync::Arc;

use super::blocks::{Blocks, Engine, Op};
use super::libaio::Libaio;
use super::queue::{self, Queue};
use super::shared::Shared;
use super::spec::ActorSpec;
use super::uring::Uring;
use super::{mmap, sync};
use crate::error::LoadError;
use crate::ring::{IOPOLL, SQPOLL};

impl Blocks {
    /// The engine that would run now, and what to say where it isn't the best one. It makes a queue
    /// and drops it, so the answer is there before a file is; [`crate::Actor::start`] decides anew.
    ///
    /// # Errors
    /// [`LoadError::NoIoUring`] and [`LoadError::NoLibaio`], when it was asked
    /// for by name and can't be had; [`LoadError::System`].
    pub fn engine_now(&self) -> Result<(Engine, Vec<String>), LoadError> {
        let (engine, (), note) = first_that(self, |engine| (driver(engine).try_out)())?;
        Ok((engine, note.into_iter().collect()))
    }
}

/// The first engine that can be had of those in question, with what `try_it`
/// made of it, and a note where it isn't the first in question.
pub(super) fn first_that<T>(
    blocks: &Blocks,
    mut try_it: impl FnMut(Engine) -> Result<T, LoadError>,
) -> Result<(Engine, T, Option<String>), LoadError> {
    let (first, others) = in_question(blocks);
    let mut refused = Vec::new();
    let mut engine = first;
    let mut others = others.iter();
    loop {
        let error = match try_it(engine) {
            Ok(made) => return Ok((engine, made, note(blocks, &refused, engine))),
            Err(error) => error,
        };
        let (LoadError::NoIoUring { reason } | LoadError::NoLibaio { reason }) = &error else {
            return Err(error);
        };
        let name = if engine == Engine::Null {
            Engine::IoUring
        } else {
            engine
        };
        refused.push(format!("{} can't be used ({reason})", name.name()));
        match others.next() {
            Some(&next) => engine = next,
            None => return Err(error),
        }
    }
}

/// The notes for a person with which an actor starts.
type Started = Result<Vec<String>, LoadError>;

/// The code that runs an engine.
pub(super) struct Driver {
    /// Makes its queue, if it has one, and drops it.
    try_out: fn() -> Result<(), LoadError>,
    /// Starts the threads of an actor.
    pub(super) start: fn(&ActorSpec, &Blocks, &Arc<Shared>) -> Started,
    /// Whether one thread keeps all operations in flight.
    pub(super) has_queue: bool,
}

/// The driver of an engine.
pub(super) fn driver(engine: Engine) -> Driver {
    fn queue<Q: Queue>() -> Driver {
        Driver {
            try_out: || Q::new(1).map(drop),
            start: queue::start::<Q>,
            has_queue: true,
        }
    }
    let threads = |start| Driver {
        try_out: || Ok(()),
        start,
        has_queue: false,
    };
    match engine {
        Engine::Auto | Engine::IoUring | Engine::Null => queue::<Uring>(),
        Engine::IoPoll => queue::<Uring<IOPOLL>>(),
        Engine::SqPoll => queue::<Uring<SQPOLL>>(),
        Engine::Libaio => queue::<Libaio>(),
        Engine::Sync => threads(sync::start),
        Engine::Mmap | Engine::MmapSync => threads(mmap::start),
    }
}

/// The engines in question: the best, and those to fall back on.
fn in_question(blocks: &Blocks) -> (Engine, &'static [Engine]) {
    match (blocks.engine, blocks.op, blocks.direct) {
        (Engine::Auto, Op::Nop, _) => (Engine::Null, &[Engine::Sync]),
        (Engine::Auto, _, true) => (Engine::IoUring, &[Engine::Libaio, Engine::Sync]),
        // libaio does buffered I/O while it submits: one at a time.
        (Engine::Auto, _, false) => (Engine::IoUring, &[Engine::Sync]),
        (Engine::IoUring, Op::Nop, _) => (Engine::Null, &[]),
        (engine, ..) => (engine, &[]),
    }
}

fn note(blocks: &Blocks, refused: &[String], engine: Engine) -> Option<String> {
    if engine == Engine::Libaio && !blocks.direct {
        // Only when it was asked for by name.
        let text = "libaio waits for each buffered I/O while it submits, so that hardly more than one is in flight";
        return Some(text.into());
    }
    if refused.is_empty() {
        return None;
    }
    let mut why = refused.join("; ");
    if blocks.op != Op::Nop && !blocks.direct {
        why += "; libaio would wait for each buffered I/O while it submits";
    }
    let how = match engine {
        Engine::Sync => ", a thread for each operation in flight",
        _ => "",
    };
    Some(format!("{why}: the engine is {}{how}", engine.name()))
}
