//! The request: the place, and the scenario with the options laid over it.

use std::time::{SystemTime, UNIX_EPOCH};

use bench::plan::{Control, Place};
use bench::scenario::{Idle, Options, Scenario};
use record::Invocation;
use record::units::settings::{Section, pair};

use crate::commands::run::args::RunArgs;
use crate::exit::Error;

/// A scenario, with its name if it has one, and all that the options set.
pub(crate) struct Asked {
    /// The scenario's name.
    pub(crate) name: Option<String>,
    /// The scenario, with the options laid over it.
    pub(crate) scenario: Scenario,
}

impl Asked {
    /// Reads the scenario, if one is named, and lays the options over it.
    pub(crate) fn of(args: &RunArgs) -> Result<Asked, Error> {
        let (name, base) = match &args.scenario {
            Some(name) => {
                let (name, scenario) = Scenario::find(name)?;
                (Some(name), scenario)
            }
            None => (None, Scenario::default()),
        };
        let on_device = args.device.device.is_some();
        if let (Some(name), true) = (&name, on_device)
            && let Some(key) = needs_files(&base)
        {
            return Err(Error::Usage(format!(
                "scenario '{name}' sets {key}, and a raw device has no files: give a directory, or \
                 leave out --scenario"
            )));
        }
        let (scenario, idle) = base.overlaid(options(args)?)?;
        let asked = Asked { name, scenario };
        if on_device && let Some(key) = needs_files(&asked.scenario) {
            return Err(Error::Usage(format!(
                "{} doesn't go with --device: a raw device has no files, and is discarded in steps \
                 of deletion.chunk",
                given_as(args, &key)
            )));
        }
        if let Some(idle) = idle.iter().find(|idle| !(on_device && asked.clears(idle))) {
            return Err(asked.refuse(idle, args));
        }
        Ok(asked)
    }

    /// A raw device is discarded in chunks.
    fn clears(&self, idle: &Idle) -> bool {
        idle.path == "deletion.chunk" && self.scenario.deletion.way().name == "unlink"
    }

    fn refuse(&self, idle: &Idle, args: &RunArgs) -> Error {
        let beside = match &self.name {
            Some(name) => format!(", and not with scenario '{name}' as it is asked for"),
            None => String::new(),
        };
        Error::Usage(format!(
            "{} only does something with {}{beside}: leave it out, or change that",
            given_as(args, &idle.path),
            idle.need,
        ))
    }
}

/// How a key was given: as an option of its own, or by `--set`.
fn given_as(args: &RunArgs, path: &str) -> String {
    let keys = args.keys();
    let option = keys.iter().find(|(_, key, _)| *key == path);
    option.map_or_else(
        || format!("--set {path}"),
        |(option, ..)| (*option).to_owned(),
    )
}

/// The first key that is given and needs files; a raw device has none.
fn needs_files(scenario: &Scenario) -> Option<String> {
    let (general, deletion) = (&scenario.general, &scenario.deletion);
    let own = deletion.given().into_iter();
    let mut own = own.filter(|key| !["how", "size", "chunk"].contains(key));
    let rules = [
        (
            "deletion.how",
            !["unlink", "none"].contains(&deletion.way().name),
        ),
        ("control", general.control() != Control::Off),
    ];
    let rule = rules.iter().find(|(_, needs)| *needs);
    own.next()
        .map(|key| format!("deletion.{key}"))
        .or_else(|| rule.map(|(key, _)| (*key).to_owned()))
}

/// The settings: options that stand for a key, and those of --set.
fn options(args: &RunArgs) -> Result<Options, Error> {
    let mut options = Options::beside(args.foreground.actor.clone());
    for (option, key, text) in args.keys() {
        let set = options.set(key, text);
        set.map_err(|why| Error::Usage(format!("{option} {text}: {why}")))?;
    }
    for setting in &args.set {
        let (key, text) = pair(setting).map_err(Error::Usage)?;
        let set = options.set(key, text);
        set.map_err(|why| Error::Usage(format!("--set {setting}: {why}")))?;
    }
    Ok(options)
}

/// Where the arguments point to.
pub(super) fn place(args: &RunArgs) -> Place {
    match &args.device.device {
        Some(path) => Place::Device {
            path: path.clone(),
            force: args.device.force,
        },
        None => Place::Directory(args.path.clone()),
    }
}

/// How this run was asked for.
pub(super) fn invocation(args: &RunArgs) -> Invocation {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let at = record::units::utc(now.map_or(0.0, |time| time.as_secs_f64()));
    let arguments = std::env::args_os().skip(1);
    let conditions = args.output.fail_on.iter();
    Invocation {
        id: format!("{at}-{:08x}", fastrand::u32(..)),
        arguments: arguments
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect(),
        fail_on: conditions.map(ToString::to_string).collect(),
    }
}
