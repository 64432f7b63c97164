//! From figures as they were written to figures to compute with.

use std::collections::BTreeMap;
use std::str::FromStr;

use record::units::settings::Key;
use record::units::{parse_duration, parse_share, parse_size, parse_truth};

use super::{Discard, Entry, Figures, Fold, KEYS, ReadAfterTrim, Transfer, value};

/// A figure that makes no card.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) key: &'static Key,
    /// The fault of its value; `None`: it is missing.
    pub(super) why: Option<String>,
}

/// Computes a card's figures.
///
/// # Errors
/// If a figure is missing, or one isn't what its key takes.
pub(super) fn figures(entries: &BTreeMap<&'static str, Entry>) -> Result<Figures, Fault> {
    let get = Getter { entries };
    // Also of a drive without discards, every figure given must be a good one.
    let supported = get.value("discard.supported", parse_truth)?;
    let needed = ["discard.a", "discard.b", "discard.queue"];
    let complete = needed.iter().all(|path| entries.contains_key(path));
    let discard = if supported || complete {
        Some(discard(&get)?).filter(|_| supported)
    } else {
        None
    };
    Ok(Figures {
        discard,
        read: transfer(&get, "read")?,
        write: transfer(&get, "write")?,
        fold: Fold {
            per_mib: get.value("fold.per_mib", value::per_mib)?,
            longest: get.value("fold.longest", parse_duration)?,
            read_share: get.value("fold.read_share", value::share_above_0)?,
        },
        flash: get.value("flash.geometry", value::flash)?,
        flush: get.value("flush.latency", parse_duration)?,
        granule: get.value("map.granule", value::granule)?,
    })
}

fn discard(get: &Getter<'_>) -> Result<Discard, Fault> {
    let b = get.value("discard.b", value::per_mib)?;
    let phi = get.value("discard.phi", parse_share)?;
    Ok(Discard {
        a: get.value("discard.a", parse_duration)?,
        b,
        b_unmapped: get.value("discard.b_unmapped", |text| match text.trim() {
            "b" => Ok(b),
            text => value::per_mib(text),
        })?,
        per_range: get.value("discard.per_range", parse_duration)?,
        max_ranges: get.value("discard.max_ranges", value::count)?,
        max_bytes: get.value("discard.max_bytes", |text| match parse_size(text)? {
            bytes if bytes >= 512 => Ok(bytes),
            _ => Err(format!("'{text}' is less than a sector: give 512 or more")),
        })?,
        queue: get.value("discard.queue", |text| value::queue(text, phi))?,
        jitter: get.value("discard.jitter", value::jitter)?,
        smallest: get.value("discard.smallest", parse_size)?,
        read_after_trim: get.value("discard.read_after_trim", ReadAfterTrim::from_str)?,
    })
}

fn transfer(get: &Getter<'_>, section: &str) -> Result<Transfer, Fault> {
    let path = |name: &str| format!("{section}.{name}");
    Ok(Transfer {
        latency: get.value(&path("latency"), parse_duration)?,
        per_mib: get.value(&path("per_mib"), value::per_mib)?,
        parallelism: get.value(&path("parallelism"), value::count)?,
        jitter: get.value(&path("jitter"), value::jitter)?,
    })
}

struct Getter<'a> {
    entries: &'a BTreeMap<&'static str, Entry>,
}

impl Getter<'_> {
    fn value<T, E: Into<String>>(
        &self,
        path: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Fault> {
        let Some(key) = KEYS.iter().find(|key| key.name == path) else {
            unreachable!("no key {path}")
        };
        let given = self.entries.get(path).map(|entry| &*entry.text);
        let text = given.or(key.default).ok_or(Fault { key, why: None })?;
        read(text).map_err(|why| Fault {
            key,
            why: Some(why.into()),
        })
    }
}
