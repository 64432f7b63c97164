//! Which key does something with which kind of actor. A key that would do nothing is
//! refused: whoever gave it expected something of it.

use record::units::kinds::any_of;

use super::words::ActorOp;
use super::{Actor, Scenario};

/// Stands for every task in a list of operations.
const A_TASK: &str = "a task such as save";
/// Operations in the file that actors share.
pub(super) const IN_THE_FILE: &[&str] = &["read", "write", "mixed"];
/// Operations on blocks.
pub(super) const AT_BLOCKS: &[&str] = &["read", "write", "append", "mixed"];
/// Those that both read and write.
pub(super) const MIXED: &[&str] = &["mixed"];
/// Operations in a file of their own.
pub(super) const OWN_FILE: &[&str] = &["append", A_TASK];

/// The name of an operation in such a list.
fn listed(op: ActorOp) -> &'static str {
    match op {
        ActorOp::Task(_) => A_TASK,
        op => op.name(),
    }
}

impl Scenario {
    /// The paths of the keys that are given and would do nothing because of another section, each
    /// with its need.
    pub(super) fn unused(&self) -> Vec<(&'static str, &'static str)> {
        const FILE: &str = "a reader, a writer, a mixed actor or the canary";
        const ENGINE: &str = "a reader, a writer, an appender, a mixed actor or the canary";
        let (file, no_file) = (&self.foreground, !self.is_anybody(IN_THE_FILE));
        let engine = self.general.engine.is_some() && !self.is_anybody(AT_BLOCKS);
        let rules = [
            (
                "foreground.size",
                FILE,
                file.size_bytes.is_some() && no_file,
            ),
            ("engine", ENGINE, engine),
        ];
        let unused = rules.into_iter().filter(|(_, _, unused)| *unused);
        unused.map(|(path, need, _)| (path, need)).collect()
    }

    /// Whether an actor does one of these, one of which is to read: the canary
    /// does, and so does who is there where nobody is named.
    fn is_anybody(&self, ops: &[&str]) -> bool {
        let canary = self.general.canary_per_s != Some(0.0);
        let does = |actor: &Actor| ops.contains(&listed(actor.op()));
        canary || self.actors.is_empty() || self.actors.iter().any(does)
    }
}

impl Actor {
    /// The kind of which its defaults are.
    pub(super) fn kind(&self) -> &'static str {
        match (self.op, self.rate_per_s) {
            (Some(ActorOp::Task(_)), Some(_)) => "open task",
            (Some(ActorOp::Task(_)), None) => "a task",
            (_, Some(_)) => "open",
            (op, None) => op.map_or("read", ActorOp::name),
        }
    }

    /// The need of a key that only some operations have, if the actor's is another one.
    pub(super) fn does(&self, ops: &[&str]) -> Option<String> {
        let used = ops.contains(&listed(self.op()));
        (!used).then(|| format!("op = {} (--op)", any_of(ops)))
    }
}

#[cfg(test)]
mod tests {
    use record::units::settings::Section;

    use super::*;

    fn section<S: Section>(settings: &[&str]) -> S {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        S::of(&settings).unwrap()
    }

    fn keys<S: Section>(section: &S) -> Vec<&'static str> {
        section.idle().into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn what_an_actor_would_do_nothing_with() {
        let reader: Actor = section(&["batch=2", "arrival=poisson", "reads=70%"]);
        assert_eq!(keys(&reader), ["arrival", "reads"]);
        let open: Actor = section(&["batch=2", "rate=100", "arrival=poisson"]);
        assert_eq!(keys(&open), ["batch"]);
        let task: Actor = section(&["op=save", "depth=2", "buffered=true", "size=1M"]);
        assert_eq!(keys(&task), ["buffered"]);
        let own: Actor = section(&["size=1M"]);
        let need = "op = append or a task such as save (--op)".to_owned();
        assert_eq!(own.idle(), [("size", need)]);
    }
}
