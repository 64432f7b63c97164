//! The lines of a card about the drive it was made from, and the time.

use std::path::Path;

use record::DeviceInfo;
use record::RunRecord;
use record::as_drive::slower;
use record::units::names;
use ssd::fit::Made;

/// The leaf devices of some records, each kind once: its model, or else its name.
pub(super) fn devices(records: &[&RunRecord]) -> String {
    let mut kinds: Vec<String> = leaves(records).map(kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    match kinds.is_empty() {
        true => "a drive that the records don't name".to_owned(),
        false => kinds.join(", "),
    }
}

/// Name, drive and date.
pub(crate) fn of(records: &[&RunRecord], name: Option<&str>) -> Made {
    let drive = devices(records);
    let size = leaves(records).map(|d| d.size_bytes).find(|&b| b > 0);
    let size = size.map_or_else(String::new, |b| {
        format!(", {}", record::units::bytes_decimal(b))
    });
    let first = records.first();
    let date = first.map_or_else(String::new, |r| day(r.head.started_unix_s));
    let kernel = first
        .map(|r| r.head.host.kernel.as_str())
        .filter(|k| !k.is_empty());
    let fs = first.and_then(|r| r.head.target.fs.as_deref());
    let slower = first.and_then(|r| slower(&r.head.devices).ok().flatten());
    let slower = slower.map(|slower| {
        let (times, how) = slower.in_words();
        format!("{times} times {how} than this, converted")
    });
    let on = [
        Some(date),
        kernel.map(|k| format!("Linux {k}")),
        fs.map(str::to_owned),
        slower,
    ];
    let name = match name {
        Some(name) => name.to_owned(),
        None => slug(&leaves(records).map(kind).next().unwrap_or_default()),
    };
    Made {
        name,
        drive: format!("{drive}{size}"),
        when: on.into_iter().flatten().collect::<Vec<_>>().join(", "),
    }
}

/// A card's path as `--profile` takes it: one without a slash could be a name.
pub(super) fn as_profile(path: &Path) -> String {
    let text = names::shown(path);
    let plain = path.extension().is_some_and(|e| e == "toml") || text.contains('/');
    if plain { text } else { format!("./{text}") }
}

fn leaves<'r>(records: &'r [&RunRecord]) -> impl Iterator<Item = &'r DeviceInfo> {
    records
        .iter()
        .flat_map(|r| &r.head.devices)
        .filter(|d| d.leaf)
}

/// The model; of a slowed drive without how much slower it is, for a card has the drive's own times.
fn kind(device: &DeviceInfo) -> String {
    let model = device.model.as_deref().map(str::trim);
    let model = model.filter(|m| !m.is_empty());
    let model = model.unwrap_or(&device.name);
    let own = device.slower.and_then(|_| model.rsplit_once(", "));
    own.map_or(model, |(own, _)| own).to_owned()
}

/// Lower case, with hyphens between words.
fn slug(text: &str) -> String {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    match words.is_empty() {
        true => "drive".to_owned(),
        false => words.join("-"),
    }
}

/// The day of a moment, in UTC.
fn day(unix_s: f64) -> String {
    record::units::utc(unix_s)
        .chars()
        .take_while(|c| *c != 'T')
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slowed_drives_card_is_named_after_the_drive() {
        let slower = |times| record::Slower {
            times,
            converted: false,
        };
        let mut device = DeviceInfo::disk("loop4");
        device.model = Some("simulated vertex-2, 3 times faster".to_owned());
        device.slower = Some(slower(1.0 / 3.0));
        assert_eq!(slug(&kind(&device)), "simulated-vertex-2");
        (device.model, device.slower) = (Some("SSD, 4 times slower".to_owned()), None);
        assert_eq!(kind(&device), "SSD, 4 times slower", "a name is a name");
    }

    #[test]
    fn days_and_names() {
        assert_eq!(day(0.0), "1970-01-01");
        assert_eq!(day(1_718_773_354.0), "2024-06-19");
        assert_eq!(day(951_782_400.0), "2000-02-29");
        assert_eq!(day(f64::NAN), "1970-01-01");
        assert_eq!(slug("CT2000T500SSD8 / Crucial"), "ct2000t500ssd8-crucial");
        assert_eq!(slug("–"), "drive");
        assert_eq!(as_profile(Path::new("mine.toml")), "mine.toml");
        assert_eq!(as_profile(Path::new("mine")), "./mine");
    }
}
