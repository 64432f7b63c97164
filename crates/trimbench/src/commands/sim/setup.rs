//! From options to the setups of runs.

use std::path::Path;
use std::str::FromStr;

use ::sim::{Drives, Named, PolicyKind, STACKS, Setup, WorkloadKind};
use record::units::settings::pair;
use record::units::{UnitError, kinds, names};
use ssd::profiles;

use crate::card;
use crate::commands::sim::args::Common;
use crate::exit::{Error, usage};

/// The drives of a name: a stack's, or a card's as everywhere.
pub(super) fn drives(name: &str) -> Result<Drives, Error> {
    if let Some((_, text)) = STACKS.iter().find(|(own, _)| *own == name) {
        return stack(name, text);
    }
    let path = Path::new(name);
    let is_file = name.contains('/') || path.extension().is_some_and(|e| e == "toml");
    if is_file
        && let Ok(text) = std::fs::read_to_string(path)
        && (text.lines()).any(|line| line.trim_start().starts_with("profile"))
    {
        return stack(name, &text);
    }
    let stacks: Vec<&str> = STACKS.iter().map(|(name, _)| *name).collect();
    card::named_beside(name, &stacks).map(Drives::single)
}

fn stack(name: &str, text: &str) -> Result<Drives, Error> {
    let card = |name: &str| card::named(name).map_err(|error| error.to_string());
    ::sim::stack(text, card).map_err(|error| usage(format!("{}: {error}", names::shown(name))))
}

/// The policies of a file, if the name is that of one.
fn of_file(name: &str) -> Result<Option<Vec<Named>>, Error> {
    if !name.contains('/') && !name.ends_with(".toml") {
        return Ok(None);
    }
    let wrong = |why: String| usage(format!("{}: {why}", names::shown(name)));
    let text = std::fs::read_to_string(name)
        .map_err(|error| wrong(format!("can't be read: {error}; give a file of policies")))?;
    let all = ::sim::policies(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(Some(all))
}

/// The policy of a name: one of those there are, or one in a file.
pub(super) fn policy(name: &str) -> Result<Named, Error> {
    let (file, own) = match name.rsplit_once(".toml:") {
        Some((stem, own)) => (format!("{stem}.toml"), Some(own)),
        None => (name.to_owned(), None),
    };
    let Some(all) = of_file(&file)? else {
        return PolicyKind::from_str(name).map(Named::from).map_err(unknown);
    };
    match (own, &all[..]) {
        (None, [one]) => Ok(one.clone()),
        (None, _) => {
            let (count, first) = (all.len(), all.first().map_or("NAME", |first| &first.name));
            Err(usage(format!(
                "--policy {file}: there are {count} policies in it; name one, as in {file}:{first}"
            )))
        }
        (Some(own), _) => {
            let named = all.iter().find(|named| named.name == own);
            let names = all.iter().map(|named| named.name.as_str());
            let unknown = || unknown(kinds::unknown("policy", own, names));
            named.cloned().ok_or_else(unknown)
        }
    }
}

fn unknown(why: UnitError) -> Error {
    usage(format!("{why} (`trimbench sim list` lists them)"))
}

/// Those that are named, alone or by their file; else all.
pub(super) fn policies(names: &[String]) -> Result<Vec<Named>, Error> {
    let all = || PolicyKind::ALL.iter().map(|&kind| Named::from(kind));
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
    let workload = common.workload.parse();
    let workload = workload.map_err(usage)?;
    Ok(Setup::new(drives(&common.profile)?, policy, workload))
}

/// Changes setups as --set says. Each needs to have a parameter that is set; or with `any`, one of
/// them, and the others leave it out.
pub(super) fn change(setups: &mut [Setup], changes: &[String], any: bool) -> Result<(), Error> {
    for change in changes {
        let (key, value) = pair(change).map_err(Error::Usage)?;
        let results = setups.iter_mut().map(|setup| setup.set(key, value));
        let results: Vec<_> = results.collect();
        let is_set = any && results.iter().any(Result::is_ok);
        if let (Some(why), false) = (results.into_iter().find_map(Result::err), is_set) {
            return Err(usage(format!("--set {change}: {why}")));
        }
    }
    Ok(())
}

fn line(name: &str, about: &str) -> String {
    format!("{name:<12} {}\n", about.trim())
}

/// Everything that can be named.
pub(super) fn list() -> String {
    let mut text = String::from("Policies, with their parameters and usual values:\n");
    for kind in PolicyKind::ALL {
        text += &line(kind.name(), kind.about());
        for (key, usual) in Named::from(*kind).parameters() {
            text += &format!("  {:<18}{usual:<12}{}\n", key.name, key.about.trim());
        }
    }
    text += "\nWorkloads:\n";
    for kind in WorkloadKind::ALL {
        text += &line(kind.name(), kind.about());
    }
    text += "\nSettings, for --set and grids:\n";
    for key in Setup::KEYS {
        text += &line(key.name, key.about);
    }
    let cards = profiles::all().iter().map(ssd::Card::name);
    let stacks = STACKS.iter().map(|(name, _)| *name);
    text += "\nProfiles and stacks:\n";
    for name in cards.chain(stacks) {
        text += &format!("{name}\n");
    }
    text
}
