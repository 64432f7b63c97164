//! How to delete, and the control.

use bench::Survey;
use bench::plan::{Control, Method, Place, Trigger};
use bench::scenario::{self, Deletion, How};

use crate::exit::Error;
use storage::FileSystem;

/// A way to delete, before sizes are chosen.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Way {
    /// One of our own.
    Ours(How),
    /// An outside program.
    Program(Vec<String>),
    /// A deletion by another program, which is watched.
    Event(Trigger),
    /// A raw device's.
    Device,
}

impl Way {
    /// The plan's method.
    pub(super) fn method(&self, deletion: &Deletion, size_bytes: u64) -> Option<Method> {
        match self {
            Way::Ours(how) => deletion.planned(*how, size_bytes),
            Way::Program(argv) => Some(Method::Command { argv: argv.clone() }),
            Way::Event(trigger) => Some(deletion.planned_event(trigger.clone())),
            Way::Device => Some(deletion.planned_on_device()),
        }
    }
}

/// The way that was asked for, if any.
pub(super) fn way(deletion: &Deletion, place: &Place) -> Result<Option<Way>, Error> {
    let how = deletion.way();
    if let Place::Device { .. } = place {
        return Ok((how != Some(How::None)).then_some(Way::Device));
    }
    match (how, &deletion.command) {
        (Some(How::None), _) => Ok(None),
        (Some(How::Event), _) => {
            let event = deletion.event.as_deref().unwrap_or_default();
            trigger(event).map(|trigger| Some(Way::Event(trigger)))
        }
        (Some(how), _) => Ok(Some(Way::Ours(how))),
        (None, command) => {
            let command = command.as_deref().unwrap_or_default();
            program("--delete", command, "rm {}").map(|argv| Some(Way::Program(argv)))
        }
    }
}

fn trigger(event: &str) -> Result<Trigger, Error> {
    match event {
        "manual" => Ok(Trigger::Manual),
        command => Ok(Trigger::Command {
            text: command.to_owned(),
            argv: program("--event", command, "rm -r /data/old")?,
        }),
    }
}

fn program(option: &str, command: &str, example: &str) -> Result<Vec<String>, Error> {
    match shlex::split(command) {
        Some(argv) if !argv.is_empty() => Ok(argv),
        Some(_) => Err(Error::Usage(format!(
            "{option}: empty; give a program, e.g. '{example}'"
        ))),
        None => Err(Error::Usage(format!(
            "{option}: a quote is not closed in: {command}"
        ))),
    }
}

/// The control, if one was asked for and can be had.
pub(super) fn control(
    general: &scenario::General,
    method: Option<&Method>,
    survey: &Survey,
) -> Result<Option<Control>, Error> {
    let Some(wanted) = general.control() else {
        return Ok(None);
    };
    let remount = wanted == Control::Nodiscard;
    let remounts = FileSystem::named(&survey.target).remount_switches_discard();
    match method {
        None => Err(Error::Usage(
            "--control compares deletions, and --delete none asks for none".into(),
        )),
        Some(method) if method.event().is_some() => Err(Error::Usage(
            "--control repeats a deletion, and an event happens only once: leave out --control"
                .into(),
        )),
        Some(_) if remount && remounts => Ok(Some(Control::Nodiscard)),
        Some(method) if method.takes(Control::SecondName) => Ok(Some(Control::SecondName)),
        Some(_) if remount => Err(Error::Usage(
            "XFS keeps discard when it is remounted, so --control=remount can't be had here: \
             use --delete unlink, or make a run of its own on the file system mounted nodiscard"
                .into(),
        )),
        Some(Method::Lsm { .. } | Method::Spill { .. } | Method::Fstrim) => Err(Error::Usage(
            "--control unlinks second names of the files, and this deletion has no files that could \
             get one: use --control=remount, or leave it out"
                .into(),
        )),
        // Whether it can be had, the preflight tells.
        Some(_) => Ok(Some(Control::SecondName)),
    }
}
