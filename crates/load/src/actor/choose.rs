//! Which engine really runs, and in words why it isn't the one asked for.

use super::blocks::{Blocks, Engine, EngineChoice, Op};
use super::libaio::Libaio;
use super::queue::Queue;
use super::uring::{IOPOLL, SQPOLL, Uring};
use crate::error::LoadError;

impl Blocks {
    /// The engine that would run now, and what to say where it isn't the best one. It makes a queue
    /// and drops it, so the answer is there before a file is; [`crate::Actor::start`] decides anew.
    ///
    /// # Errors
    /// [`LoadError::NoIoUring`] and [`LoadError::NoLibaio`], when it was asked
    /// for by name and can't be had; [`LoadError::System`].
    pub fn engine_now(&self) -> Result<(Engine, Vec<String>), LoadError> {
        let (engine, (), note) = first_that(self, |engine| match engine {
            Engine::IoUring | Engine::Null => <Uring>::new(1).map(drop),
            Engine::IoPoll => Uring::<IOPOLL>::new(1).map(drop),
            Engine::SqPoll => Uring::<SQPOLL>::new(1).map(drop),
            Engine::Libaio => Libaio::new(1).map(drop),
            Engine::Sync | Engine::Mmap | Engine::MmapSync => Ok(()),
        })?;
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
        refused.push(format!("{} can't be used ({reason})", name.as_str()));
        match others.next() {
            Some(&next) => engine = next,
            None => return Err(error),
        }
    }
}

/// The engines in question: the best, and those to fall back on.
fn in_question(blocks: &Blocks) -> (Engine, &'static [Engine]) {
    match (blocks.engine, blocks.op, blocks.direct) {
        (EngineChoice::Sync, ..) => (Engine::Sync, &[]),
        (EngineChoice::Libaio, ..) => (Engine::Libaio, &[]),
        (EngineChoice::IoPoll, ..) => (Engine::IoPoll, &[]),
        (EngineChoice::SqPoll, ..) => (Engine::SqPoll, &[]),
        (EngineChoice::Mmap, ..) => (Engine::Mmap, &[]),
        (EngineChoice::MmapSync, ..) => (Engine::MmapSync, &[]),
        (EngineChoice::Null, ..) | (EngineChoice::IoUring, Op::Nop, _) => (Engine::Null, &[]),
        (EngineChoice::IoUring, ..) => (Engine::IoUring, &[]),
        (EngineChoice::Auto, Op::Nop, _) => (Engine::Null, &[Engine::Sync]),
        (EngineChoice::Auto, _, true) => (Engine::IoUring, &[Engine::Libaio, Engine::Sync]),
        // libaio does buffered I/O while it submits: one at a time.
        (EngineChoice::Auto, _, false) => (Engine::IoUring, &[Engine::Sync]),
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
    Some(format!("{why}: the engine is {}{how}", engine.as_str()))
}
