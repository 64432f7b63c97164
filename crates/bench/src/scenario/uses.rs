//! Which key does something with which kind of actor or deletion. A key that
//! would do nothing is refused: whoever gave it expected something of it.

use std::fmt;

use super::words::{ActorOp, How};
use super::{Actor, Deletion, Scenario};

/// The need of a key: without it the key has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// One of these ways to delete.
    How(Vec<How>),
    /// Any deletion at all.
    ADeletion,
    /// A deletion of what the test has made.
    OurFiles,
    /// One of these operations; a task's stands for all tasks.
    Op(&'static [ActorOp]),
    /// Open loop.
    Rate,
    /// Closed loop.
    NoRate,
    /// A control.
    Control,
    /// An actor that works on the shared file.
    TheFile,
    /// An actor that reads or writes blocks.
    AnEngine,
}

/// Stands for every task in [`Need::Op`].
const A_TASK: ActorOp = ActorOp::Task("a task");

impl Need {
    /// As a scenario would say it.
    pub fn in_toml(&self) -> String {
        self.written("how = ", "op = ", "a rate", "no rate", "control = true")
    }

    /// As the command line would say it.
    pub fn in_options(&self) -> String {
        self.written("--delete ", "--op ", "--rate", "no --rate", "--control")
    }

    fn written(&self, how: &str, op: &str, rate: &str, no_rate: &str, control: &str) -> String {
        match self {
            Need::How(hows) => format!("{how}{}", or(hows.iter().map(|how| how.name()))),
            Need::ADeletion => "a deletion".into(),
            Need::OurFiles => "a deletion of the test's own files".into(),
            Need::Op(ops) => {
                let names = ops.iter().map(|op| match *op {
                    A_TASK => "a task such as save",
                    op => op.name(),
                });
                format!("{op}{}", or(names))
            }
            Need::Rate => rate.into(),
            Need::NoRate => no_rate.into(),
            Need::Control => control.into(),
            Need::TheFile => "a reader, a writer, a mixed actor or the canary".into(),
            Need::AnEngine => "a reader, a writer, an appender, a mixed actor or the canary".into(),
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_options())
    }
}

fn or<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

impl Scenario {
    /// Whether anybody works on the shared file.
    pub(super) fn uses_file(&self) -> bool {
        self.is_anybody(&[ActorOp::Read, ActorOp::Write, ActorOp::Mixed])
    }

    /// Whether anybody needs an engine.
    pub(super) fn uses_engine(&self) -> bool {
        use ActorOp::{Append, Mixed, Read, Write};
        self.is_anybody(&[Read, Write, Append, Mixed])
    }

    /// Whether an actor does one of these, one of which is to read: the canary
    /// does, and so does who is there where nobody is named.
    fn is_anybody(&self, ops: &[ActorOp]) -> bool {
        let canary = self.general.canary_per_s != Some(0.0);
        let default_reader = self.actors.is_empty() && self.general.fio.is_none();
        canary || default_reader || self.actors.iter().any(|actor| ops.contains(&actor.op()))
    }
}

impl Actor {
    /// Its operation.
    pub fn op(&self) -> ActorOp {
        self.op.unwrap_or(ActorOp::Read)
    }

    /// The keys that are given and would do nothing, and what each needs.
    pub fn idle(&self) -> Vec<(&'static str, Need)> {
        const IN_THE_FILE: &[ActorOp] = &[ActorOp::Read, ActorOp::Write, ActorOp::Mixed];
        const BLOCKS: &[ActorOp] = &[
            ActorOp::Read,
            ActorOp::Write,
            ActorOp::Append,
            ActorOp::Mixed,
        ];
        const MIXED: &[ActorOp] = &[ActorOp::Mixed];
        const OWN_FILE: &[ActorOp] = &[ActorOp::Append, A_TASK];
        let op = match self.op() {
            ActorOp::Task(_) => A_TASK,
            op => op,
        };
        let need = |key| {
            let ops = match key {
                "pattern" => IN_THE_FILE,
                "buffered" => BLOCKS,
                "reads" => MIXED,
                "size" => OWN_FILE,
                "batch" if BLOCKS.contains(&op) => {
                    return self.rate_per_s.is_some().then_some(Need::NoRate);
                }
                "batch" => BLOCKS,
                "arrival" => return self.rate_per_s.is_none().then_some(Need::Rate),
                _ => return None,
            };
            (!ops.contains(&op)).then_some(Need::Op(ops))
        };
        let keys = self.given().into_iter();
        keys.filter_map(|key| Some((key, need(key)?))).collect()
    }
}

impl Deletion {
    /// How it deletes; `None`: by an outside program.
    pub fn how(&self) -> Option<How> {
        match (&self.command, self.how) {
            (Some(_), _) => None,
            (None, Some(how)) => Some(how),
            (None, None) if self.event.is_some() => Some(How::Event),
            (None, None) => Some(How::Unlink),
        }
    }

    /// The keys that are given and would do nothing, and what each needs.
    pub fn idle(&self) -> Vec<(&'static str, Need)> {
        use How::{
            Event, Fstrim, Lsm, None as Nothing, Punch, Purge, Spill, Swap, Truncate, Unlink,
        };
        const FILES: &[How] = &[Unlink, Truncate, Punch, Fstrim, Swap, Purge];
        let need = |key| -> Option<Need> {
            let (hows, program): (&[How], bool) = match (key, self.how()) {
                ("how" | "command", _) => return None,
                (_, Some(Nothing)) => return Some(Need::ADeletion),
                ("size", Some(Event)) => return Some(Need::OurFiles),
                ("size", _) => return None,
                ("event" | "event-at" | "event-quiet", _) => (&[Event], false),
                ("no-sync", _) => (
                    &[Unlink, Truncate, Punch, Swap, Purge, Lsm, Spill, Event],
                    true,
                ),
                ("files" | "extent-size", _) => (FILES, true),
                ("parallel", _) => (&[Unlink, Spill], false),
                ("chunk", _) => (&[Truncate, Punch], false),
                ("sleep", _) => (&[Truncate, Punch, Spill], false),
                ("fsync", _) => (&[Truncate], false),
                ("from", _) => (&[Punch], false),
                ("at-once" | "every", _) => (&[Purge], false),
                ("levels" | "file-size" | "write-rate", _) => (&[Lsm], false),
                ("run-for", _) => (&[Lsm, Spill], false),
                _ => return None,
            };
            let used = self.how().map_or(program, |how| hows.contains(&how));
            (!used).then(|| Need::How(hows.to_vec()))
        };
        let keys = self.given().into_iter();
        keys.filter_map(|key| Some((key, need(key)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deletion(pairs: &[(&str, &str)]) -> Deletion {
        let mut deletion = Deletion::default();
        for (key, text) in pairs {
            deletion.set(key, text).unwrap();
        }
        deletion
    }

    fn actor(pairs: &[(&str, &str)]) -> Actor {
        let mut actor = Actor::default();
        for (key, text) in pairs {
            actor.set(key, text).unwrap();
        }
        actor
    }

    fn idle_keys(idle: Vec<(&'static str, Need)>) -> Vec<&'static str> {
        idle.into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn what_a_deletion_would_do_nothing_with() {
        let unlink = deletion(&[("chunk", "1M"), ("size", "1G"), ("parallel", "2")]);
        assert_eq!(idle_keys(unlink.idle()), ["chunk"]);
        assert_eq!(unlink.idle()[0].1.in_toml(), "how = truncate or punch");
        assert_eq!(
            unlink.idle()[0].1.in_options(),
            "--delete truncate or punch"
        );
        let program = deletion(&[("command", "rm {}"), ("files", "2"), ("parallel", "2")]);
        assert_eq!(idle_keys(program.idle()), ["parallel"]);
        let none = deletion(&[("how", "none"), ("size", "1G"), ("files", "2")]);
        assert_eq!(idle_keys(none.idle()), ["size", "files"]);
        let lsm = deletion(&[("how", "lsm"), ("files", "2"), ("levels", "3")]);
        assert_eq!(idle_keys(lsm.idle()), ["files"]);
    }

    #[test]
    fn what_an_actor_would_do_nothing_with() {
        let reader = actor(&[("batch", "2"), ("arrival", "poisson"), ("reads", "70%")]);
        assert_eq!(idle_keys(reader.idle()), ["arrival", "reads"]);
        let open = actor(&[("batch", "2"), ("rate", "100"), ("arrival", "poisson")]);
        assert_eq!(idle_keys(open.idle()), ["batch"]);
        let task = actor(&[
            ("op", "save"),
            ("depth", "2"),
            ("buffered", "true"),
            ("size", "1M"),
        ]);
        assert_eq!(idle_keys(task.idle()), ["buffered"]);
        assert_eq!(
            actor(&[("size", "1M")]).idle()[0].1.in_toml(),
            "op = append or a task such as save"
        );
    }
}
