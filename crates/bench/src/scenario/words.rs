//! Values that are words: each with its name and what it means, for the
//! parser, for errors and for the command line's help.

use load::Engine;
use load::task::{KINDS, Kind};
use record::kinds;
use record::units::UnitError;
use record::units::kinds::one_of;

/// The operation of an actor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ActorOp {
    /// Reads blocks of the shared file.
    Read,
    /// Overwrites blocks of it.
    Write,
    /// Appends blocks to a file of its own.
    Append,
    /// Reads and overwrites blocks of the shared file.
    Mixed,
    /// A chain of system calls.
    Task(&'static Kind),
}

impl ActorOp {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.word().0
    }

    /// Its name, and what it does.
    fn word(self) -> (&'static str, &'static str) {
        match self {
            ActorOp::Read => ("read", "reads blocks of the foreground's file"),
            ActorOp::Write => ("write", "overwrites blocks of it"),
            ActorOp::Append => (
                "append",
                "writes a file of its own from its start, and over it again when it is full",
            ),
            ActorOp::Mixed => (
                "mixed",
                "reads and overwrites blocks of the foreground's file",
            ),
            ActorOp::Task(kind) => (kind.name, kind.about),
        }
    }

    fn all() -> impl Iterator<Item = ActorOp> + Clone {
        use ActorOp::{Append, Mixed, Read, Task, Write};
        let tasks = KINDS.iter().map(|kind| Task(kind));
        [Read, Write, Append, Mixed].into_iter().chain(tasks)
    }

    /// Every name with what it does.
    pub(super) fn words() -> Vec<(&'static str, &'static str)> {
        ActorOp::all().map(ActorOp::word).collect()
    }

    /// The one of this name.
    pub(super) fn parse(text: &str) -> Result<ActorOp, UnitError> {
        one_of("operation", text, ActorOp::all().map(|op| (op.name(), op)))
    }
}

kinds! {
    /// When an open loop's operations arrive.
    pub enum Arrival["arrival"] {
        /// evenly spaced
        Constant = "constant",
        /// as a Poisson process
        Poisson = "poisson",
    }
}

kinds! {
    /// The behaviour of a run beside devices whose counters are off.
    pub enum Counters["way with counters that are off"] {
        /// refuse to run
        Needed = "needed",
        /// switch their counters on for the run, and off again however it ends (root only)
        Enable = "enable",
        /// run although it stays unknown whether discards came
        Blind = "blind",
    }
}

/// Every engine that a run may ask for. A device must be set up for those that poll.
fn run_engines() -> impl Iterator<Item = Engine> + Clone {
    Engine::ALL.iter().copied().filter(|engine| !engine.polls())
}

pub(super) fn engines() -> Vec<(&'static str, &'static str)> {
    run_engines().map(|one| (one.name(), one.about())).collect()
}

pub(super) fn engine(text: &str) -> Result<Engine, UnitError> {
    one_of("engine", text, run_engines().map(|one| (one.name(), one)))
}
