//! `trimbench lab`: drives that behave like given ones.

use std::process::Command;
use std::time::Duration;

use ::lab::{Down, Info, Lab, LabError};
use record::units::names;

use crate::commands::lab::args::{LabArgs, LabCommand, ProfilesCommand};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::{card, console, simulated};

pub(crate) mod args;
pub(crate) mod near;
mod show;
mod stats;
pub(crate) mod up;

/// Carries out the command.
pub(crate) fn run(args: LabArgs) -> Result<Exit, Error> {
    let lab = simulated::here();
    let needs_drives = !matches!(args.command, LabCommand::Profiles(_));
    if needs_drives {
        need_root()?;
    }
    // A server must not report here: its maker reads this as its last words.
    // `down` finds dead drives, too.
    if needs_drives
        && !matches!(
            args.command,
            LabCommand::Serve { .. } | LabCommand::Down { .. }
        )
    {
        sweep(&lab);
    }
    match args.command {
        LabCommand::Up(args) => up::up(&lab, &args)?,
        LabCommand::List { json } => {
            // A drive that doesn't answer is listed as well.
            let with_stats = |info: Info| (lab.stats(&info.spec.name).ok(), info);
            let drives: Vec<_> = lab.list()?.into_iter().map(with_stats).collect();
            Stream::Out.print(&show::list(&drives, json));
        }
        LabCommand::Stats(args) => stats::stats(&lab, &args)?,
        LabCommand::Set { name, changes } => lab.set(&name, &changes)?,
        LabCommand::Fault { name, words } => fault(&lab, &name, &words)?,
        LabCommand::Exec { name, command } => {
            let Some((program, arguments)) = command.split_first() else {
                return Err(usage("there is no command to run"));
            };
            let error = lab.exec(&name, Command::new(program).args(arguments));
            return not_run(error);
        }
        LabCommand::Down { names, all, force } => return down(&lab, &names, all, force),
        LabCommand::Profiles(args) => match args.command {
            None => Stream::Out.print(&show::profiles()),
            Some(ProfilesCommand::Show { name }) => {
                Stream::Out.print(&show::profile(&card::named(&name)?));
            }
        },
        LabCommand::Serve { with_parent, dir } => {
            if with_parent {
                end_with_parent();
            }
            ::lab::serve(&dir)?;
        }
    }
    Ok(Exit::Done)
}

/// Has the kernel kill this process when the thread that started it ends.
fn end_with_parent() {
    let parent = rustix::process::getppid();
    let kill = Some(rustix::process::Signal::KILL);
    // Who is killed between these two calls leaves a drive that `lab down` takes away.
    if rustix::process::set_parent_process_death_signal(kill).is_err()
        || rustix::process::getppid() != parent
    {
        std::process::exit(1);
    }
}

/// A program that can't be started has the exit code that a shell gives it.
fn not_run(error: LabError) -> Result<Exit, Error> {
    let exit = match &error {
        LabError::NotRun { error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
            Exit::NoProgram
        }
        LabError::NotRun { .. } => Exit::CannotRun,
        _ => return Err(error.into()),
    };
    console::error(&Error::from(error));
    Ok(exit)
}

fn need_root() -> Result<(), Error> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(usage(
        "trimbench lab needs root, for it mounts and makes loop devices: run it with sudo",
    ))
}

/// Takes down the dead drives, and reports each.
fn sweep(lab: &Lab) {
    // What can't be listed is told by the command.
    for swept in lab.sweep().unwrap_or_default() {
        match swept.outcome {
            Ok(()) => {
                let killed = if swept.was_made {
                    "its server"
                } else {
                    "who made it"
                };
                let name = swept.name;
                Stream::Err.print(&format!(
                    "drive `{name}` was dead ({killed} had been killed) and is down now\n"
                ));
            }
            Err(error) => console::error(&Error::from(error)),
        }
    }
}

/// Takes down the drives, and reports each that stays.
fn down(lab: &Lab, names: &[String], all: bool, force: bool) -> Result<Exit, Error> {
    let how = match force {
        true => Down::ByForce,
        false => Down::UnlessUsed,
    };
    let errors = if all {
        let errors = lab.down_all(how).err().unwrap_or_default();
        if errors.is_empty() {
            let root = names::shown(lab.root());
            Stream::Out.print(&format!(
                "{root}: no mount, loop device, process, cgroup or socket is left\n"
            ));
        }
        errors
    } else {
        let downs = names.iter().map(|name| lab.down(name, how));
        downs.filter_map(Result::err).collect()
    };
    let mut exit = Exit::Done;
    for error in errors {
        let in_use = !force && matches!(error, LabError::Left { .. });
        let error = Error::from(error);
        if exit != Exit::Failed {
            exit = error.exit();
        }
        console::error(&error);
        if in_use {
            Stream::Err.print(
                "Stop what uses it, or add --force: then whoever uses it gets I/O errors.\n",
            );
        }
    }
    Ok(exit)
}

/// Adds a fault, takes all back, or lists them, on each of these drives, e.g. `a,b`. The power of
/// several drives goes within about a millisecond.
fn fault(lab: &Lab, names: &str, words: &[String]) -> Result<(), Error> {
    let names: Vec<&str> = names.split(',').collect();
    // Nothing happens to one where another doesn't exist.
    for name in names.iter().filter(|_| names.len() > 1) {
        lab.stats(name)?;
    }
    names.into_iter().try_for_each(|name| on(lab, name, words))
}

fn on(lab: &Lab, name: &str, words: &[String]) -> Result<(), Error> {
    // Each word may come by itself, or all as one argument.
    let text = words.join(" ");
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        [] => {
            let faults = show::faults(&lab.stats(name)?);
            Stream::Out.print(&faults.iter().map(|f| format!("{f}\n")).collect::<String>());
        }
        ["clear"] => lab.clear_faults(name)?,
        ["hang", span] => lab.hang(name, length(span)?)?,
        ["power", "off"] => lab.cut_power(name)?,
        ["power", "on"] => lab.restore_power(name)?,
        ["hang" | "power", ..] => {
            return Err(usage(format!(
                "fault `{text}`: it is `hang TIME`, e.g. `hang 2s`, `power off` or `power on`"
            )));
        }
        _ => lab.add_fault(name, &text.parse().map_err(LabError::from)?)?,
    }
    Ok(())
}

fn length(text: &str) -> Result<Duration, Error> {
    record::units::parse_duration(text).map_err(|error| usage(format!("fault hang: {error}")))
}
