//! Where the command line is wrong, adds what was probably meant.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Command, CommandFactory};

use crate::cli::Cli;
use crate::commands::scenarios::ending_in;

/// Options as other programs name them, and as these commands do.
const OF_OTHERS: [(&str, &str); 4] = [
    ("--duration", "--for"),
    ("--runtime", "--for"),
    ("--time", "--for"),
    ("--overwrite", "--force"),
];

/// The error with what was probably meant.
pub(crate) fn explained(mut shown: Error) -> Error {
    match shown.kind() {
        ErrorKind::UnknownArgument => name_owners(&mut shown),
        ErrorKind::InvalidSubcommand => name_commands(&mut shown),
        _ => {}
    }
    shown
}

/// Names the keys and the commands that have an option, in place of clap's advice to give it as a
/// value.
fn name_owners(shown: &mut Error) {
    let Some(ContextValue::String(option)) = shown.get(ContextKind::InvalidArg).cloned() else {
        return;
    };
    if !option.starts_with('-') || option == "-" {
        return;
    }
    shown.remove(ContextKind::Suggested);
    let meant = match OF_OTHERS.iter().find(|(theirs, _)| *theirs == option) {
        Some((_, own)) => (*own).to_owned(),
        None => option.clone(),
    };
    let mut tips = Vec::new();
    let keys = ending_in(meant.trim_start_matches('-'));
    if !keys.is_empty() || meant != option {
        shown.remove(ContextKind::SuggestedArg);
    }
    if !keys.is_empty() {
        tips.push(format!("{meant} is a key: {}", keys.join(", ")));
    }
    let option = meant;
    let mut owners = Vec::new();
    owners_of(&option, &Cli::command(), "", &mut owners);
    if let Some((last, others)) = owners.split_last()
        && shown.get(ContextKind::SuggestedArg).is_none()
    {
        tips.push(match others.is_empty() {
            true => format!("`trimbench {last}` has {option}"),
            false => format!("{option} is an option of {} and {last}", others.join(", ")),
        });
    }
    if !tips.is_empty() {
        let tips = tips.into_iter().map(StyledStr::from).collect();
        shown.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
}

/// Adds the commands that have an option, by the words that call them.
fn owners_of(option: &str, command: &Command, path: &str, owners: &mut Vec<String>) {
    let has = |argument: &clap::Arg| match option.strip_prefix("--") {
        Some(long) => argument.get_long() == Some(long) && !argument.is_hide_set(),
        None => argument.get_short() == option.chars().nth(1),
    };
    if !path.is_empty() && command.get_arguments().any(has) {
        owners.push(path.to_owned());
    }
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        let path = format!("{path} {}", below.get_name());
        owners_of(option, below, path.trim_start(), owners);
    }
}

/// Names the commands that one letter too many, too few or wrong leads away from.
fn name_commands(shown: &mut Error) {
    let Some(ContextValue::String(typed)) = shown.get(ContextKind::InvalidSubcommand).cloned()
    else {
        return;
    };
    let commands = Cli::command();
    let near = |name: &&str| strsim::damerau_levenshtein(&typed, name) == 1;
    let names: Vec<String> = commands
        .get_subcommands()
        .map(Command::get_name)
        .filter(near)
        .map(str::to_owned)
        .collect();
    if !names.is_empty() && shown.get(ContextKind::SuggestedSubcommand).is_none() {
        shown.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(names),
        );
    }
}

#[cfg(test)]
mod tests;
