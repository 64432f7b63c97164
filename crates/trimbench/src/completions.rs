//! Words that a shell offers next. The shell's script asks the program itself, so that it knows this
//! machine's devices and mounts.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use linux::{SysRoot, mounts};

/// The variable by which a shell's script asks: it names the shell.
pub const VARIABLE: &str = "TRIMBENCH_COMPLETE";

/// Answers a shell that asks for words, and ends the program then.
pub(crate) fn answer() {
    CompleteEnv::with_factory(|| with_values(crate::cli::command()))
        .var(VARIABLE)
        .complete();
}

/// The command and all below it, where each argument for a device, mount, profile or scenario has
/// a list of them.
fn with_values(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|arg| match values(&name, &arg) {
        Some(list) => {
            let paths = takes_paths(&arg);
            arg.add(ArgValueCompleter::new(move |word: &OsStr| {
                offered(word, list(), paths)
            }))
        }
        None => arg,
    });
    command.mut_subcommands(with_values)
}

/// The function that lists the values of an argument, by its name in the help.
fn values(command: &str, arg: &Arg) -> Option<fn() -> Vec<PathBuf>> {
    let named = |name| words(arg).any(|word| word == name);
    let id = arg.get_id().as_str();
    if named("PROFILE") || id == "profile" {
        Some(profiles)
    } else if id == "scenario" || (command, id) == ("show", "name") {
        Some(scenarios)
    } else if named("MOUNT") {
        Some(mount_points)
    } else if named("DEVICE") || named("DEV") {
        Some(devices)
    } else {
        None
    }
}

/// Whether an argument takes any file or directory as well.
fn takes_paths(arg: &Arg) -> bool {
    words(arg).any(|word| ["FILE", "PATH", "DIR", "RUN"].contains(&word))
}

/// The kinds of value in an argument's help: `PATH|DEVICE` has two.
fn words(arg: &Arg) -> impl Iterator<Item = &str> {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().flat_map(|name| name.split('|'))
}

/// The values that begin with what was typed, and the files that do where a file is taken.
fn offered(word: &OsStr, values: Vec<PathBuf>, paths: bool) -> Vec<CompletionCandidate> {
    let mut found = match paths {
        true => PathCompleter::any().complete(word),
        false => Vec::new(),
    };
    let typed = word.as_encoded_bytes();
    let fits = |value: &PathBuf| value.as_os_str().as_encoded_bytes().starts_with(typed);
    found.extend(
        values
            .into_iter()
            .filter(fits)
            .map(CompletionCandidate::new),
    );
    found.sort_by(|a, b| a.get_value().cmp(b.get_value()));
    found.dedup_by(|a, b| a.get_value() == b.get_value());
    found
}

fn scenarios() -> Vec<PathBuf> {
    let all = bench::scenario::all().iter();
    all.map(|shipped| shipped.name.into()).collect()
}

fn profiles() -> Vec<PathBuf> {
    let all = ssd::profiles::all().iter();
    all.map(|card| card.name().into()).collect()
}

/// The mount points of file systems on devices.
fn mount_points() -> Vec<PathBuf> {
    let all = mounts::list(&SysRoot::host()).unwrap_or_default();
    all.into_iter()
        .filter(|mount| mount.source.starts_with("/dev/"))
        .map(|mount| mount.mount_point)
        .collect()
}

fn devices() -> Vec<PathBuf> {
    let all = SysRoot::host().devices().into_iter();
    all.map(|name| Path::new("/dev").join(name))
        .filter(|path| path.exists())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the words that are offered for an argument of the command at this path.
    fn asked(path: &[&str], argument: &str, typed: &str) -> Vec<String> {
        let mut command = with_values(crate::cli::command());
        let mut at = &mut command;
        for name in path {
            at = at.find_subcommand_mut(name).unwrap();
        }
        let arg = at.get_arguments().find(|arg| arg.get_id() == argument);
        let completer = arg.unwrap().get::<ArgValueCompleter>().unwrap();
        let found = completer.complete(OsStr::new(typed)).into_iter();
        found
            .map(|word| word.get_value().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn profiles_and_scenarios_are_offered_where_they_are_taken() {
        assert_eq!(
            asked(&["lab", "up"], "profile", "samsung-8"),
            ["samsung-870-evo-2tb"]
        );
        assert_eq!(asked(&["sim", "run"], "profile", "ide"), ["ideal"]);
        assert_eq!(asked(&["suite"], "lab", "ocz-v"), ["ocz-vertex-2"]);
        assert_eq!(
            asked(&["lab", "profiles", "show"], "name", "fus"),
            ["fusionio"]
        );
        assert_eq!(asked(&["run"], "scenario", "drop-t"), ["drop-table"]);
        assert_eq!(
            asked(&["scenarios", "show"], "name", "drop-t"),
            ["drop-table"]
        );
    }

    #[test]
    fn mounts_and_devices_are_those_of_this_machine() {
        let listed = |paths: Vec<PathBuf>| -> BTreeSet<String> {
            paths.iter().map(|p| p.display().to_string()).collect()
        };
        let offered = |path, argument| BTreeSet::from_iter(asked(path, argument, "/"));
        assert_eq!(offered(&["fstrim"], "mounts"), listed(mount_points()));
        assert_eq!(offered(&["guard", "stop"], "mount"), listed(mount_points()));
        assert_eq!(offered(&["blkdiscard"], "device"), listed(devices()));
        assert!(offered(&["watch"], "paths").is_superset(&listed(devices())));
    }

    #[test]
    fn a_file_is_offered_where_one_is_taken() {
        let found = asked(&["lab", "up"], "profile", "src/comp");
        assert_eq!(found, ["src/completions.rs"]);
    }
}
