//! The command line's options laid over a scenario.

use record::units::settings::{Section, SetError};

use super::{
    Actor, AskedDeletion, Foreground, General, Judging, Phases, Scenario, ScenarioError, keys,
};

/// The command line's settings: those of `--set`, and the options that stand for a key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    general: General,
    foreground: Foreground,
    /// Changes the first actor.
    first: Actor,
    /// Change actors by name.
    named: Vec<(String, Actor)>,
    /// Actors beside those of the scenario; one with the name of one of those replaces it.
    beside: Vec<Actor>,
    deletion: AskedDeletion,
    phases: Phases,
    judging: Judging,
}

/// A setting that would do nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    /// The path of the key.
    pub path: String,
    /// The setting that it goes with.
    pub need: String,
}

impl Options {
    /// No setting, and these actors beside those of the scenario.
    pub fn beside(actors: Vec<Actor>) -> Options {
        Options {
            beside: actors,
            ..Options::default()
        }
    }

    /// Sets a key: its path, as `deletion.chunk`, or its name where one section alone has it.
    /// `actor.KEY` is the first actor's, `actor.NAME.KEY` that of the actor of this name.
    ///
    /// # Errors
    /// If there is no such key, it doesn't take the value, or it is set already.
    pub fn set(&mut self, typed: &str, text: &str) -> Result<(), SetError> {
        if let Some((name, key)) = typed
            .strip_prefix("actor.")
            .and_then(|it| it.split_once('.'))
        {
            let at = self.named.iter().position(|(other, _)| other == name);
            let at = at.unwrap_or_else(|| {
                self.named.push((name.to_owned(), Actor::default()));
                self.named.len() - 1
            });
            return once(&mut self.named[at].1, key, text);
        }
        let path = keys::path_of(typed)?;
        match path.split_once('.') {
            None => once(&mut self.general, &path, text),
            Some((Foreground::NAME, key)) => once(&mut self.foreground, key, text),
            Some((AskedDeletion::NAME, key)) => once(&mut self.deletion, key, text),
            Some((Phases::NAME, key)) => once(&mut self.phases, key, text),
            Some((Judging::NAME, key)) => once(&mut self.judging, key, text),
            Some((_, key)) => once(&mut self.first, key, text),
        }
    }
}

fn once<S: Section>(section: &mut S, key: &str, text: &str) -> Result<(), SetError> {
    match section.given().contains(&key) {
        true => Err(SetError::Value("it is set twice".to_owned())),
        false => section.set(key, text),
    }
}

impl Scenario {
    /// The scenario with the command line's settings laid over it.
    ///
    /// A value that they make useless is dropped: with `--op read` the share of reads of a
    /// scenario's mixed actor means nothing any more. A setting that is useless beside the others
    /// or the scenario is returned.
    ///
    /// Without any actor there is one reader.
    ///
    /// # Errors
    /// Two actors of one name, or no actor of a name.
    pub fn overlaid(mut self, over: Options) -> Result<(Scenario, Vec<Idle>), ScenarioError> {
        let mut idle = Vec::new();
        let asked = [over.general.given(), over.foreground.given()].concat();
        self.general.overlay(over.general);
        self.foreground.overlay(over.foreground);
        self.phases.overlay(over.phases);
        self.judging.overlay(over.judging);
        // Each says how, and the later word counts.
        let given = over.deletion.given();
        if given.contains(&"how") || given.contains(&"event") {
            self.deletion.forget("command");
        }
        if given.contains(&"command") || given.contains(&"event") {
            self.deletion.forget("how");
        }
        lay(&mut self.deletion, over.deletion, "deletion", &mut idle);

        if self.actors.is_empty() {
            self.actors.push(Actor::default());
        }
        if let Some(first) = self.actors.first_mut() {
            lay(first, over.first, "actor", &mut idle);
        }
        self.name_actors()?;
        for (name, over) in over.named {
            let is_named = |actor: &&mut Actor| actor.name.as_ref() == Some(&name);
            let Some(actor) = self.actors.iter_mut().find(is_named) else {
                return Err(ScenarioError::no_actor(name, &self.actors));
            };
            lay(actor, over, &format!("actor.{name}"), &mut idle);
        }
        self.add(over.beside)?;
        for (path, need) in self.unused() {
            let key = path.strip_prefix("foreground.");
            match key {
                _ if asked.contains(&key.unwrap_or(path)) => idle.push(Idle {
                    path: path.to_owned(),
                    need: need.to_owned(),
                }),
                Some(key) => self.foreground.forget(key),
                None => self.general.forget(path),
            }
        }
        Ok((self, idle))
    }

    /// Adds actors, or replaces those of the same name.
    fn add(&mut self, beside: Vec<Actor>) -> Result<(), ScenarioError> {
        let names: Vec<_> = beside.iter().filter_map(|a| a.name.clone()).collect();
        if let Some(twice) = (1..names.len()).find(|&i| names[..i].contains(&names[i])) {
            let name = names[twice].clone();
            return Err(ScenarioError::SameName { name });
        }
        for actor in beside {
            let same = |other: &&mut Actor| actor.name.is_some() && other.name == actor.name;
            match self.actors.iter_mut().find(same) {
                Some(replaced) => *replaced = actor,
                None => self.actors.push(actor),
            }
        }
        self.name_actors()
    }
}

/// Lays a section over another. Forgets what that makes useless, and notes each new key that is.
fn lay<S: Section>(section: &mut S, over: S, path: &str, idle: &mut Vec<Idle>) {
    let given = over.given();
    section.overlay(over);
    for (key, need) in section.idle() {
        match given.contains(&key) {
            true => idle.push(Idle {
                path: format!("{path}.{key}"),
                need,
            }),
            false => section.forget(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Control;

    fn scenario(text: &str) -> Scenario {
        text.parse().unwrap()
    }

    fn options(settings: &[(&str, &str)], beside: &[&str]) -> Options {
        let beside = beside.iter().map(|spec| spec.parse().unwrap());
        let mut options = Options::beside(beside.collect());
        for (key, text) in settings {
            options.set(key, text).unwrap();
        }
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
    fn options_win_and_what_they_make_useless_goes() {
        let over = options(&[("op", "read"), ("depth", "3"), ("how", "unlink")], &[]);
        let (merged, idle) = scenario(TABLE).overlaid(over).unwrap();
        assert!(idle.is_empty(), "{idle:?}");
        assert_eq!(merged.actors[0].name.as_deref(), Some("db"));
        assert_eq!(merged.actors[0].op().name(), "read");
        assert_eq!(merged.actors[0].depth, Some(3));
        assert_eq!(merged.actors[0].read_percent, None);
        assert_eq!(merged.deletion.way().name, "unlink");
        assert_eq!(merged.deletion.chunk_bytes, None);
        assert_eq!(merged.deletion.size_bytes, Some(1 << 30));
        let over = options(&[("command", "rm {}")], &[]);
        let (program, _) = scenario(TABLE).overlaid(over).unwrap();
        assert_eq!(program.deletion.way().name, "command");
    }

    #[test]
    fn an_option_that_would_do_nothing_is_told() {
        let over = options(
            &[
                ("arrival", "poisson"),
                ("parallel", "2"),
                ("actor.wal.reads", "9%"),
            ],
            &[],
        );
        let (_, idle) = scenario(TABLE).overlaid(over).unwrap();
        let paths: Vec<_> = idle.iter().map(|idle| &*idle.path).collect();
        assert_eq!(
            paths,
            ["deletion.parallel", "actor.arrival", "actor.wal.reads"]
        );
    }

    #[test]
    fn an_actor_of_the_same_name_replaces() {
        let over = options(&[], &["name=wal,op=save", "append"]);
        let (merged, _) = scenario(TABLE).overlaid(over).unwrap();
        let actors: Vec<_> = merged
            .actors
            .iter()
            .map(|actor| (actor.name.as_deref().unwrap(), actor.op().name()))
            .collect();
        assert_eq!(
            actors,
            [("db", "mixed"), ("wal", "save"), ("appender", "append")]
        );
        let twice = options(&[], &["name=x,op=read", "name=x,op=read"]);
        let error = scenario(TABLE).overlaid(twice).unwrap_err().to_string();
        assert!(error.contains("two actors are named 'x'"), "{error}");
    }

    #[test]
    fn a_control_of_the_scenario_is_turned_off() {
        let controlled = scenario("control = \"remount\"");
        assert_eq!(controlled.general.control(), Control::Nodiscard);
        let (merged, _) = controlled
            .overlaid(options(&[("control", "off")], &[]))
            .unwrap();
        assert_eq!(merged.general.control(), Control::Off);
    }

    #[test]
    fn a_scenarios_actor_is_changed_by_its_name() {
        let over = options(&[("actor.wal.rate", "50"), ("actor.wal.depth", "2")], &[]);
        let (merged, idle) = scenario(TABLE).overlaid(over).unwrap();
        assert!(idle.is_empty(), "{idle:?}");
        let wal = &merged.actors[1];
        assert_eq!((wal.rate_per_s, wal.depth), (Some(50.0), Some(2)));
        let over = options(&[("actor.wall.rate", "50")], &[]);
        let error = scenario(TABLE).overlaid(over).unwrap_err().to_string();
        assert!(error.contains("'wall'; did you mean 'wal'?"), "{error}");
    }

    #[test]
    fn a_key_is_found_by_its_path_or_by_a_name_that_no_other_section_has() {
        let wrong = |key: &str, text: &str| {
            let mut options = options(&[("files", "3")], &[]);
            options.set(key, text).unwrap_err().to_string()
        };
        for (key, text, words) in [
            (
                "size",
                "1G",
                "foreground.size or actor.size or deletion.size",
            ),
            ("deletion.chnk", "1G", "did you mean 'deletion.chunk'?"),
            ("chnk", "1G", "did you mean 'chunk'?"),
            ("chunk", "0", "more than 0"),
            ("deletion.files", "4", "set twice"),
            ("actor.wal.rte", "4", "did you mean 'rate'?"),
            ("", "4", "no such key"),
        ] {
            let why = wrong(key, text);
            assert!(why.contains(words), "{key}: {why}");
        }
    }

    #[test]
    fn what_nobody_uses_is_returned_if_it_was_asked_for() {
        let saving = "canary = 0\n[[actor]]\nop = \"save\"";
        let over = options(&[("engine", "sync"), ("foreground.size", "1G")], &[]);
        let (_, idle) = scenario(saving).overlaid(over).unwrap();
        let paths: Vec<_> = idle.iter().map(|idle| &*idle.path).collect();
        assert_eq!(paths, ["foreground.size", "engine"]);
        let over = options(&[("op", "save"), ("canary", "0")], &[]);
        let reading = scenario("engine = \"sync\"\n[foreground]\nsize = \"1G\"");
        let (merged, idle) = reading.overlaid(over).unwrap();
        assert!(idle.is_empty(), "{idle:?}");
        assert_eq!(merged.foreground.size_bytes, None);
    }
}
