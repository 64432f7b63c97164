//! Writes a service of systemd that guards.

use std::path::{Path, PathBuf};

use linux::mounts::Mount;
use storage::FileSystem;
use units::names::shown;

use crate::commands::guard::args::{ByWay, HoldBy, StartArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit};
use crate::goal::{GoalArgs, in_shell};
use crate::systemd::{
    RUNS, There, absolute, difference, in_unit, program, refuse_control, there, with_command,
};

const MARK: &str = "# Written by trimbench guard --install";
const NAME: &str = "trimbench-guard.service";
const SERVICE: &str = include_str!("trimbench-guard.service");

/// Writes the service, unless another is there.
pub(super) fn install(args: &StartArgs) -> Result<Exit, Error> {
    if let Some(name) = &args.goal.profile {
        crate::card::named(name)?;
    }
    let own = std::env::current_exe().map_err(|error| {
        Error::Usage(format!("where trimbench is installed is unknown: {error}"))
    })?;
    let command = command(args, &own)?;
    let text = text(args, &command)?;
    let path = args.unit_dir.join(NAME);
    let changes = match there(&path, MARK)? {
        There::Nothing => String::new(),
        There::Ours(old) => difference(&path, &old, &text),
        There::Others => {
            return Err(Error::Usage(format!(
                "{} is there and wasn't written by trimbench: it is left as it is; remove it, or \
                 give another --unit-dir",
                shown(&path)
            )));
        }
    };
    if !args.force {
        if let Some(why) = program::unfit(&own) {
            return Err(Error::Usage(format!(
                "the service would run {}, and {why}; install trimbench (e.g. into \
                 /usr/local/bin) and run it from there, or give --force",
                shown(&own)
            )));
        }
        if !changes.is_empty() {
            return Err(Error::Usage(format!(
                "a service is there already, and this would change it:\n{changes}name all its \
                 directories and options again, or give --force to replace it"
            )));
        }
    }
    let put = linux::files::replace(&path, text.as_bytes(), 0o644);
    put.map_err(|source| Error::OutputWrite {
        path: path.clone(),
        source,
    })?;
    Stream::Out.print(&format!(
        "Wrote {}. It runs:{}\nTo start it, now and with the machine:\n  systemctl daemon-reload\n  \
         systemctl enable --now {NAME}\n",
        shown(&path),
        in_shell(&command)
    ));
    if !Path::new(RUNS).is_dir() {
        Stream::Err.print(
            "trimbench guard: systemd is not running here, so nothing starts the service; have \
             another service manager run the command above\n",
        );
    }
    Ok(Exit::Done)
}

/// The service, which sees the directories as writable and waits for their mounts.
fn text(args: &StartArgs, command: &[String]) -> Result<String, Error> {
    let paths: Result<Vec<String>, Error> = (args.directories.iter())
        .map(|directory| Ok(in_unit(&absolute(directory)?)))
        .collect();
    let paths = paths?.join(" ");
    let is_btrfs = |path: &PathBuf| {
        Mount::of(path).is_ok_and(|mount| FileSystem::mounted(&mount) == FileSystem::Btrfs)
    };
    // The rate of the kernel's own trims is set there.
    let limits = match args.directories.iter().any(is_btrfs) {
        true => " -/sys/fs/btrfs",
        false => "",
    };
    let lines = |line: &str| match line {
        "RequiresMountsFor=" => format!("{line}{paths}\n"),
        "ReadWritePaths=" => format!("{line}{paths}{limits}\n"),
        line => format!("{line}\n"),
    };
    let service: String = SERVICE.lines().map(lines).collect();
    Ok(with_command(&service, MARK, command))
}

/// Returns the command of the service: the options that were given, with `--keep-names`.
fn command(args: &StartArgs, own: &Path) -> Result<Vec<String>, Error> {
    let mut words = vec![absolute(own)?, "guard".to_owned()];
    let mut add = |option: &str, value: String| words.push(format!("--{option}={value}"));
    match args.by {
        Some(ByWay::Link) => add("by", "link".to_owned()),
        Some(ByWay::Trim) => add("by", "trim".to_owned()),
        None => {}
    }
    if args.hold == HoldBy::Fd {
        add("hold", "fd".to_owned());
    }
    add("min-size", args.min_size.to_string());
    add("scan-every", units::duration_exact(args.scan_every));
    add("max-age", units::duration_exact(args.max_age));
    if let Some(most) = args.most {
        add("most", units::percent_exact(most));
    }
    if let Some(bytes) = args.min_run {
        add("min-run", bytes.to_string());
    }
    if let Some(hours) = args.between {
        add("between", hours.to_string());
    }
    let profile = match &args.goal.profile {
        Some(name) if name.contains('/') || name.ends_with(".toml") => {
            Some(absolute(Path::new(name))?)
        }
        name => name.clone(),
    };
    let goal = GoalArgs {
        // Also where it is the default, which another version may have another of.
        slowdown: Some(args.goal.goal().slowdown),
        max_latency: args.goal.max_latency,
        deadline: args.goal.deadline,
        profile,
    };
    words.extend(goal.given());
    let switches = [
        (args.any_owner, "--any-owner"),
        (args.only_scan, "--only-scan"),
        (args.remount, "--remount"),
        (args.hand_over, "--hand-over"),
        (args.quiet, "--quiet"),
        (true, "--keep-names"),
    ];
    let given = switches.iter().filter(|(given, _)| *given);
    words.extend(given.map(|(_, word)| (*word).to_owned()));
    for directory in &args.directories {
        words.push(absolute(directory)?);
    }
    refuse_control(&words)?;
    Ok(words)
}
