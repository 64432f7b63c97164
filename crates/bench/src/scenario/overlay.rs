//! The command line's options laid over a scenario.

use super::uses::Need;
use super::{Actor, Deletion, Foreground, General, Phases, Scenario, ScenarioError};

/// The options of the command line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// The keys outside any section of a scenario.
    pub general: General,
    /// The file that readers and writers share.
    pub foreground: Foreground,
    /// Changes the first actor.
    pub first: Actor,
    /// Actors beside those of the scenario; one with the name of one of those
    /// replaces it.
    pub beside: Vec<Actor>,
    /// The options of the deletion.
    pub deletion: Deletion,
    /// How long the phases last.
    pub phases: Phases,
}

/// Where an option's key belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The first actor.
    Actor,
    /// The deletion.
    Deletion,
}

/// An option that would do nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    /// Where the key belongs.
    pub part: Part,
    /// The key.
    pub key: &'static str,
    /// The option that it goes with.
    pub need: Need,
}

impl Scenario {
    /// The scenario with the command line's options laid over it.
    ///
    /// A value that the options make useless is dropped: with `--op read` the
    /// share of reads of a scenario's mixed actor means nothing any more. An
    /// option that is useless beside the others or the scenario is returned.
    ///
    /// Without any actor there is one reader, or fio alone.
    ///
    /// # Errors
    /// Two actors of one name.
    pub fn overlaid(mut self, over: Options) -> Result<(Scenario, Vec<Idle>), ScenarioError> {
        let mut idle = Vec::new();
        let remount = over.general.remount;
        self.general.overlay(over.general);
        if self.general.control != Some(true) && remount != Some(true) {
            self.general.forget("remount");
        }
        self.foreground.overlay(over.foreground);
        if over.phases.baseline.is_some() {
            self.deletion.forget("event-at");
        }
        self.phases.overlay(over.phases);
        lay_deletion(&mut self.deletion, over.deletion, &mut idle);

        let fio_alone = self.general.fio.is_some() && over.first.given().is_empty();
        if self.actors.is_empty() && !fio_alone {
            self.actors.push(Actor::default());
        }
        if let Some(first) = self.actors.first_mut() {
            lay_first(first, over.first, &mut idle);
        }
        self.name_actors()?;
        let names: Vec<_> = over.beside.iter().filter_map(|a| a.name.clone()).collect();
        if let Some(twice) = (1..names.len()).find(|&i| names[..i].contains(&names[i])) {
            let name = names[twice].clone();
            return Err(ScenarioError::SameName { name });
        }
        for actor in over.beside {
            let same = |other: &&mut Actor| actor.name.is_some() && other.name == actor.name;
            match self.actors.iter_mut().find(same) {
                Some(replaced) => *replaced = actor,
                None => self.actors.push(actor),
            }
        }
        self.name_actors()?;
        Ok((self, idle))
    }
}

fn lay_deletion(deletion: &mut Deletion, over: Deletion, idle: &mut Vec<Idle>) {
    let given = over.given();
    // Each says how, and the later word counts.
    if over.how.is_some() || over.event.is_some() {
        deletion.forget("command");
    }
    if over.command.is_some() || over.event.is_some() {
        deletion.forget("how");
    }
    deletion.overlay(over);
    for (key, need) in deletion.idle() {
        if given.contains(&key) {
            let part = Part::Deletion;
            idle.push(Idle { part, key, need });
        } else {
            deletion.forget(key);
        }
    }
}

fn lay_first(actor: &mut Actor, over: Actor, idle: &mut Vec<Idle>) {
    let given = over.given();
    actor.overlay(over);
    for (key, need) in actor.idle() {
        if given.contains(&key) {
            let part = Part::Actor;
            idle.push(Idle { part, key, need });
        } else {
            actor.forget(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{ActorOp, How};

    fn scenario(text: &str) -> Scenario {
        text.parse().unwrap()
    }

    fn options(first: &[(&str, &str)], deletion: &[(&str, &str)], beside: &[&str]) -> Options {
        let mut options = Options::default();
        for (key, text) in first {
            options.first.set(key, text).unwrap();
        }
        for (key, text) in deletion {
            options.deletion.set(key, text).unwrap();
        }
        options.beside = beside.iter().map(|spec| spec.parse().unwrap()).collect();
        options
    }

    const TABLE: &str = "
        [[actor]]
        name = \"db\"
        op = \"mixed\"
        reads = \"70%\"
        [[actor]]
        name = \"wal\"
        op = \"append\"
        [deletion]
        how = \"truncate\"
        chunk = \"64M\"
        size = \"1G\"
    ";

    #[test]
    fn nothing_over_nothing_is_one_reader() {
        let (plain, idle) = Scenario::default().overlaid(Options::default()).unwrap();
        assert_eq!(plain.actors.len(), 1);
        assert_eq!(plain.actors[0].name.as_deref(), Some("reader"));
        assert!(idle.is_empty());
    }

    #[test]
    fn fio_is_alone_unless_a_reader_is_asked_for() {
        let fio = || scenario("fio = \"job.fio\"");
        let (alone, _) = fio().overlaid(Options::default()).unwrap();
        assert!(alone.actors.is_empty());
        let (beside, _) = fio()
            .overlaid(options(&[("op", "read")], &[], &[]))
            .unwrap();
        assert_eq!(beside.actors.len(), 1);
        let (saving, _) = fio().overlaid(options(&[], &[], &["save"])).unwrap();
        assert_eq!(saving.actors.len(), 1);
        assert_eq!(saving.actors[0].op(), ActorOp::Task("save"));
    }

    #[test]
    fn options_win_and_what_they_make_useless_goes() {
        let over = options(&[("op", "read"), ("depth", "3")], &[("how", "unlink")], &[]);
        let (merged, idle) = scenario(TABLE).overlaid(over).unwrap();
        assert!(idle.is_empty(), "{idle:?}");
        assert_eq!(merged.actors[0].name.as_deref(), Some("db"));
        assert_eq!(merged.actors[0].op(), ActorOp::Read);
        assert_eq!(merged.actors[0].depth, Some(3));
        assert_eq!(merged.actors[0].read_percent, None);
        assert_eq!(merged.deletion.how(), Some(How::Unlink));
        assert_eq!(merged.deletion.chunk_bytes, None);
        assert_eq!(merged.deletion.size_bytes, Some(1 << 30));
        let over = options(&[], &[("command", "rm {}")], &[]);
        let (program, _) = scenario(TABLE).overlaid(over).unwrap();
        assert_eq!(program.deletion.how(), None);
    }

    #[test]
    fn an_option_that_would_do_nothing_is_told() {
        let over = options(&[("arrival", "poisson")], &[("parallel", "2")], &[]);
        let (_, idle) = scenario(TABLE).overlaid(over).unwrap();
        let keys: Vec<_> = idle.iter().map(|idle| (idle.part, idle.key)).collect();
        assert_eq!(
            keys,
            [(Part::Deletion, "parallel"), (Part::Actor, "arrival")]
        );
    }

    #[test]
    fn an_actor_of_the_same_name_replaces() {
        let over = options(&[], &[], &["name=wal,op=save", "append"]);
        let (merged, _) = scenario(TABLE).overlaid(over).unwrap();
        let actors: Vec<_> = merged
            .actors
            .iter()
            .map(|actor| (actor.name.as_deref().unwrap(), actor.op()))
            .collect();
        assert_eq!(
            actors,
            [
                ("db", ActorOp::Mixed),
                ("wal", ActorOp::Task("save")),
                ("appender", ActorOp::Append)
            ]
        );
        let twice = options(&[], &[], &["name=x,op=read", "name=x,op=read"]);
        let error = scenario(TABLE).overlaid(twice).unwrap_err().to_string();
        assert!(error.contains("two actors are named 'x'"), "{error}");
    }

    #[test]
    fn a_switch_of_the_scenario_is_turned_off() {
        let controlled = scenario("control = true\nremount = true");
        let mut over = Options::default();
        over.general.control = Some(false);
        let (merged, _) = controlled.overlaid(over).unwrap();
        assert_eq!(merged.general.control, Some(false));
        assert_eq!(merged.general.remount, None);
    }
}
