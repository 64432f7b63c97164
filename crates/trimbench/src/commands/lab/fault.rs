//! `trimbench lab fault`.

use std::time::Duration;

use ::lab::{Lab, LabError};

use super::show;
use crate::console::Stream;
use crate::exit::{Error, usage};

/// Adds a fault, takes all back, or lists them, on each of these drives, e.g. `a,b`. The power of
/// several drives goes within about a millisecond.
pub(super) fn fault(lab: &Lab, names: &str, words: &[String]) -> Result<(), Error> {
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
