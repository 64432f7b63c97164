//! From options to the setups of runs.

use std::path::Path;

use ::sim::{Drives, Named, PolicyKind, SETTINGS, STACKS, Setup, WorkloadKind};
use ssd::profiles;
use units::names;
use units::typed::{hint, nearest};

use crate::card;
use crate::commands::sim::args::Common;
use crate::exit::Error;

/// The drives of a name: a stack's, or a card's as everywhere.
pub(super) fn drives(name: &str) -> Result<Drives, Error> {
    if let Some((_, text)) = STACKS.iter().find(|(own, _)| *own == name) {
        return stack(name, text);
    }
    let path = Path::new(name);
    let is_file = name.contains('/') || path.extension().is_some_and(|e| e == "toml");
    if is_file
        && let Ok(text) = std::fs::read_to_string(path)
        && text
            .lines()
            .any(|line| line.trim_start().starts_with("profile"))
    {
        return stack(name, &text);
    }
    let stacks: Vec<&str> = STACKS.iter().map(|(name, _)| *name).collect();
    card::named_beside(name, &stacks).map(Drives::single)
}

fn stack(name: &str, text: &str) -> Result<Drives, Error> {
    let card = |name: &str| card::named(name).map_err(|error| error.to_string());
    ::sim::stack(text, card)
        .map_err(|error| Error::Usage(format!("{}: {error}", names::shown(name))))
}

/// The policies of a file, if the name is that of one.
fn of_file(name: &str) -> Result<Option<Vec<Named>>, Error> {
    if !name.contains('/') && !name.ends_with(".toml") {
        return Ok(None);
    }
    let usage = |why: String| Error::Usage(format!("{}: {why}", names::shown(name)));
    let text = std::fs::read_to_string(name)
        .map_err(|error| usage(format!("can't be read: {error}; give a file of policies")))?;
    let all = ::sim::policies(&text).map_err(|error| usage(error.to_string()))?;
    Ok(Some(all))
}

/// The policy of a name: one of those there are, or one in a file.
pub(super) fn policy(name: &str) -> Result<Named, Error> {
    let (file, own) = match name.rsplit_once(".toml:") {
        Some((stem, own)) => (format!("{stem}.toml"), Some(own)),
        None => (name.to_owned(), None),
    };
    let Some(all) = of_file(&file)? else {
        return PolicyKind::named(name)
            .map(Named::from)
            .ok_or_else(|| unknown(name, PolicyKind::ALL.iter().map(|kind| kind.name())));
    };
    match (own, &all[..]) {
        (None, [one]) => Ok(one.clone()),
        (None, _) => Err(Error::Usage(format!(
            "--policy {file}: there are {} policies in it; name one, as in {file}:{}",
            all.len(),
            all.first().map_or("NAME", |first| &first.name)
        ))),
        (Some(own), _) => {
            let named = all.iter().find(|named| named.name == own);
            let names = all.iter().map(|named| named.name.as_str());
            named.cloned().ok_or_else(|| unknown(own, names))
        }
    }
}

fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Error {
    Error::Usage(format!(
        "there is no policy '{name}'{} (`trimbench sim list` lists them)",
        hint(&nearest(name, names))
    ))
}

/// Those that are named, alone or by their file; else all.
pub(super) fn policies(names: &[String]) -> Result<Vec<Named>, Error> {
    let all = || PolicyKind::ALL.into_iter().map(Named::from);
    if names.is_empty() {
        return Ok(all().collect());
    }
    let mut policies = Vec::new();
    for name in names {
        match of_file(name)? {
            Some(own) => policies.extend(own),
            None if name == "all" => policies.extend(all()),
            None => policies.push(policy(name)?),
        }
    }
    Ok(policies)
}

/// The setup of a policy.
pub(super) fn of(common: &Common, policy: Named) -> Result<Setup, Error> {
    let workload = ::sim::sweep::workload(&common.workload).map_err(Error::Usage)?;
    let mut setup = Setup::new(drives(&common.profile)?, policy.kind, workload);
    setup.set_policy(&policy);
    Ok(setup)
}

/// Changes a setup as --set says. A parameter that the policy hasn't is left out, unless it is
/// `strict`.
pub(super) fn change(setup: &mut Setup, changes: &[String], strict: bool) -> Result<(), Error> {
    for change in changes {
        let (key, value) = pair(change)?;
        let is_own = |name: &&str| *name == key;
        let used = SETTINGS.iter().any(|setting| setting.name == key)
            || setup.policy.parameters().iter().any(is_own);
        if used || strict {
            setup
                .set(key, value)
                .map_err(|why| Error::Usage(format!("--set {change}: {why}")))?;
        }
    }
    Ok(())
}

fn pair(change: &str) -> Result<(&str, &str), Error> {
    let both = change
        .split_once('=')
        .map(|(key, value)| (key.trim(), value.trim()));
    both.ok_or_else(|| Error::Usage(format!("--set {change}: write KEY=VALUE, e.g. size=8G")))
}

/// Refuses a key that none of the runs has.
pub(super) fn each_is_known(setups: &[Setup], changes: &[String]) -> Result<(), Error> {
    for change in changes {
        let (key, value) = pair(change)?;
        let mut result = Ok(());
        for setup in setups {
            result = setup.clone().set(key, value);
            if result.is_ok() {
                break;
            }
        }
        result.map_err(|why| Error::Usage(format!("--set {change}: {why}")))?;
    }
    Ok(())
}

/// Everything that can be named.
pub(super) fn list() -> String {
    let mut text = String::from("Policies, with their parameters and usual values:\n");
    text += &::sim::describe_policies();
    text += "\nWorkloads:\n";
    for kind in WorkloadKind::ALL {
        text += &format!("{:<12} {}\n", kind.name(), kind.about());
    }
    text += "\nSettings, for --set and grids:\n";
    for key in SETTINGS {
        text += &format!("{:<12} {}\n", key.name, key.about);
    }
    let cards = profiles::all().iter().map(ssd::Card::name);
    let stacks = STACKS.iter().map(|(name, _)| *name);
    text += "\nProfiles and stacks:\n";
    for name in cards.chain(stacks) {
        text += &format!("{name}\n");
    }
    text
}
