//! From options to the setups of runs.

use std::path::Path;
use std::str::FromStr;

use ::sim::{Drives, PolicyKind, STACKS, Setup, WorkloadKind};
use record::units::names;
use record::units::settings::pair;
use ssd::profiles;

use crate::card;
use crate::commands::sim::args::Common;
use crate::exit::{Error, usage};

/// The drive where none is named.
const USUAL_DRIVE: &str = "crucial-t500-2tb";

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

/// The policy of a name.
pub(super) fn policy(name: &str) -> Result<PolicyKind, Error> {
    PolicyKind::from_str(name)
        .map_err(|why| usage(format!("{why} (`trimbench sim list` lists them)")))
}

/// The setup of a policy.
pub(super) fn of(common: &Common, policy: PolicyKind) -> Result<Setup, Error> {
    let workload = common.workload.parse();
    let workload = workload.map_err(usage)?;
    let profile = common.profile.as_deref().unwrap_or(USUAL_DRIVE);
    Ok(Setup::new(drives(profile)?, policy, workload))
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
        for (key, usual) in kind.shown(&kind.usual()) {
            text += &format!("  {:<18}{usual:<12}{}\n", key.name, key.about.trim());
        }
    }
    text += "\nWorkloads:\n";
    for kind in WorkloadKind::ALL {
        text += &line(kind.name(), kind.about());
    }
    text += "\nSettings, for --set, each with its usual value:\n";
    for key in Setup::KEYS {
        let usual = key.default.unwrap_or_default();
        text += &format!("{:<13}{} [{usual}]\n", key.name, key.about.trim());
    }
    let cards = profiles::all().iter().map(ssd::Card::name);
    let stacks = STACKS.iter().map(|(name, _)| *name);
    text += "\nProfiles and stacks:\n";
    for name in cards.chain(stacks) {
        text += &format!("{name}\n");
    }
    text
}
