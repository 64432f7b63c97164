//! Values that are words: each with its name and what it means, for the
//! parser, for errors and for the command line's help.

use std::sync::LazyLock;

use load::deleter::{End, How};
use load::task::Kind;
use load::{Engine, PatternKind};
use record::units::words::{Word, one_of};
use record::words;

use crate::plan::Control;

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
        match self {
            ActorOp::Read => "read",
            ActorOp::Write => "write",
            ActorOp::Append => "append",
            ActorOp::Mixed => "mixed",
            ActorOp::Task(kind) => kind.name,
        }
    }
}

/// Everything an actor can do.
pub static OPS: LazyLock<Vec<Word<ActorOp>>> = LazyLock::new(|| {
    let op = |value: ActorOp, about| word(value.name(), value, about);
    let tasks = load::task::KINDS
        .iter()
        .map(|kind| op(ActorOp::Task(kind), kind.about));
    let blocks = [
        op(ActorOp::Read, "reads blocks of the foreground's file"),
        op(ActorOp::Write, "overwrites blocks of it"),
        op(
            ActorOp::Append,
            "writes a file of its own from its start, and over it again when it is full",
        ),
        op(
            ActorOp::Mixed,
            "reads and overwrites blocks of the foreground's file",
        ),
    ];
    blocks.into_iter().chain(tasks).collect()
});

/// Every engine that a run may ask for. A device must be set up for those that poll.
pub static ENGINES: LazyLock<Vec<Word<Engine>>> = LazyLock::new(|| {
    let words = Engine::WORDS.iter().copied();
    words.filter(|word| !word.value.polls()).collect()
});

/// When an open loop's operations arrive; true for Poisson.
pub static ARRIVALS: &[Word<bool>] = &[
    word("constant", false, "evenly spaced"),
    word("poisson", true, "as a Poisson process"),
];

/// The deletion of a control, if there is one.
pub static CONTROLS: &[Word<Option<Control>>] = &[
    word("off", None, "no control"),
    word(
        "second-name",
        Some(Control::SecondName),
        "a second name of each file is unlinked first, which frees nothing",
    ),
    word(
        "remount",
        Some(Control::Nodiscard),
        "the file system is remounted nodiscard for the same deletion, and back",
    ),
];

words! {
    /// The behaviour of a run beside devices whose counters are off.
    pub enum Counters {
        /// refuse to run
        Needed = "needed",
        /// switch their counters on for the run, and off again however it ends (root only)
        Enable = "enable",
        /// run although it stays unknown whether discards came
        Blind = "blind",
    }
}

const fn word<T: Copy>(name: &'static str, value: T, about: &'static str) -> Word<T> {
    Word { name, about, value }
}

pub(super) fn op(text: &str) -> Result<ActorOp, String> {
    one_of(text, &OPS)
}

pub(super) fn engine(text: &str) -> Result<Engine, String> {
    one_of(text, &ENGINES)
}

pub(super) fn arrival(text: &str) -> Result<bool, String> {
    one_of(text, ARRIVALS)
}

pub(super) fn control(text: &str) -> Result<Option<Control>, String> {
    one_of(text, CONTROLS)
}

/// The words that a key takes, each with its meaning; empty for a key that takes others.
pub fn of_key(path: &str) -> Vec<(&'static str, &'static str)> {
    fn all<T>(words: &[Word<T>]) -> Vec<(&'static str, &'static str)> {
        words.iter().map(|word| (word.name, word.about)).collect()
    }
    match path {
        "actor.op" => all(&OPS),
        "actor.pattern" => all(PatternKind::WORDS),
        "actor.arrival" => all(ARRIVALS),
        "deletion.how" => all(&How::words()),
        "deletion.from" => all(End::WORDS),
        "engine" => all(&ENGINES),
        "control" => all(CONTROLS),
        "counters" => all(Counters::WORDS),
        _ => Vec::new(),
    }
}
