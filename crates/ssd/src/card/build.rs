//! From figures as they were written to figures to compute with.

use std::collections::BTreeMap;

use super::{CardError, Discard, Entry, Figures, Fold, Transfer, error::At, keys, value};

/// Computes a card's figures.
///
/// # Errors
/// If a figure is missing, or one isn't what its key takes. The error has no
/// place; who has the text adds it.
pub(super) fn figures(entries: &BTreeMap<&'static str, Entry>) -> Result<Figures, CardError> {
    let get = Getter { entries };
    // Also of a drive without discards, every figure given must be a good one.
    let supported = get.value("discard.supported", value::boolean)?;
    let queue_given = entries.contains_key("discard.queue");
    let complete =
        queue_given && entries.contains_key("discard.a") && entries.contains_key("discard.b");
    let discard = if supported || complete {
        Some(discard(&get)?).filter(|_| supported)
    } else {
        None
    };
    Ok(Figures {
        discard,
        read: transfer(
            &get,
            "read.latency",
            "read.per_mib",
            "read.parallelism",
            "read.jitter",
        )?,
        write: transfer(
            &get,
            "write.latency",
            "write.per_mib",
            "write.parallelism",
            "write.jitter",
        )?,
        fold: Fold {
            per_mib: get.value("fold.per_mib", value::per_mib)?,
            longest: get.value("fold.longest", value::duration)?,
            read_share: get.value("fold.read_share", value::share_above_0)?,
        },
        flush: get.value("flush.latency", value::duration)?,
        granule: get.value("map.granule", value::granule)?,
    })
}

fn discard(get: &Getter<'_>) -> Result<Discard, CardError> {
    let b = get.value("discard.b", value::per_mib)?;
    let phi = get.value("discard.phi", value::share)?;
    Ok(Discard {
        a: get.value("discard.a", value::duration)?,
        b,
        b_unmapped: get.value("discard.b_unmapped", |text| match text.trim() {
            "b" => Ok(b),
            text => value::per_mib(text),
        })?,
        per_range: get.value("discard.per_range", value::duration)?,
        max_ranges: get.value("discard.max_ranges", value::count)?,
        max_bytes: get.value("discard.max_bytes", |text| match value::size(text)? {
            bytes if bytes >= 512 => Ok(bytes),
            _ => Err(format!("'{text}' is less than a sector: give 512 or more")),
        })?,
        queue: get.value("discard.queue", |text| value::queue(text, phi))?,
        jitter: get.value("discard.jitter", value::jitter)?,
        smallest: get.value("discard.smallest", value::size)?,
        read_after_trim: get.value("discard.read_after_trim", value::read_after_trim)?,
    })
}

fn transfer(
    get: &Getter<'_>,
    latency: &str,
    per_mib: &str,
    parallelism: &str,
    jitter: &str,
) -> Result<Transfer, CardError> {
    Ok(Transfer {
        latency: get.value(latency, value::duration)?,
        per_mib: get.value(per_mib, value::per_mib)?,
        parallelism: get.value(parallelism, value::count)?,
        jitter: get.value(jitter, value::jitter)?,
    })
}

struct Getter<'a> {
    entries: &'a BTreeMap<&'static str, Entry>,
}

impl Getter<'_> {
    fn value<T>(
        &self,
        path: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, CardError> {
        let unknown = || CardError::UnknownKey {
            at: At(None),
            key: path.to_owned(),
            nearest: None,
        };
        let key = keys::by_path(path).ok_or_else(unknown)?;
        let given = self.entries.get(path).map(|e| e.text.as_str());
        let text = given.or(key.default).ok_or(CardError::Missing {
            key: key.path,
            about: key.about,
        })?;
        read(text).map_err(|why| CardError::Value {
            at: At(None),
            key: key.path,
            why,
        })
    }
}
