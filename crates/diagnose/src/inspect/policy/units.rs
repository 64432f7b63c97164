//! Timers of systemd and the services that they start, from their files.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use linux::SysRoot;
use linux::sysroot::entries;

/// Where units are, the first before the others (systemd.unit(5)).
const PLACES: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// A unit: the values of its keys, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Unit {
    /// Its file; empty if it has none.
    pub(super) file: String,
    values: Vec<(String, String)>,
}

impl Unit {
    /// The unit of this name with its drop-ins; `None` where there is none, or it is masked.
    pub(super) fn of(sys: &SysRoot, name: &str) -> Option<Unit> {
        let file = PLACES
            .iter()
            .map(|place| format!("{place}/{name}"))
            .find(|path| sys.path(path).symlink_metadata().is_ok())?;
        let text = sys.text(&file).ok().filter(|text| !text.is_empty())?;
        let mut unit = Unit {
            file,
            values: Vec::new(),
        };
        unit.read(&text);
        for text in drop_ins(sys, name) {
            unit.read(&text);
        }
        Some(unit)
    }

    fn read(&mut self, text: &str) {
        let joined = text.replace("\\\n", " ");
        for line in joined.lines().map(str::trim) {
            if line.starts_with(['#', ';', '[']) {
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            // An empty value forgets those before it.
            match value.is_empty() {
                true => self.values.retain(|(one, _)| one != key),
                false => self.values.push((key.to_owned(), value.to_owned())),
            }
        }
    }

    /// All values of a key.
    pub(super) fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.values
            .iter()
            .filter(move |(one, _)| one == key)
            .map(|(_, value)| value.as_str())
    }

    /// The last value of a key.
    pub(super) fn last(&self, key: &str) -> Option<&str> {
        self.all(key).last()
    }
}

/// Texts of `NAME.d/*.conf`, by the names of the files; of equal names the first place counts.
fn drop_ins(sys: &SysRoot, name: &str) -> Vec<String> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for place in PLACES {
        let folder = sys.path(format!("{place}/{name}.d"));
        for file in entries(&folder) {
            if file.ends_with(".conf") && found.iter().all(|(one, _)| *one != file) {
                let path = folder.join(&file);
                found.push((file, path));
            }
        }
    }
    found.sort();
    let texts = found.iter().map(|(_, path)| fs::read_to_string(path));
    texts.flatten().collect()
}

/// Names of the timers that some unit wants, and of `fstrim.timer` and ours if they are there.
pub(super) fn timers(sys: &SysRoot) -> Vec<(String, bool)> {
    let mut enabled = BTreeSet::new();
    for place in PLACES {
        let names = entries(&sys.path(format!("{place}/timers.target.wants")));
        enabled.extend(names.into_iter().filter(|name| name.ends_with(".timer")));
    }
    let known = ["fstrim.timer", "trimbench-fstrim.timer"].map(str::to_owned);
    let disabled = known.into_iter().filter(|name| !enabled.contains(name));
    let disabled: Vec<(String, bool)> = disabled.map(|name| (name, false)).collect();
    let enabled = enabled.into_iter().map(|name| (name, true));
    enabled.chain(disabled).collect()
}

/// A time span of systemd, in seconds: `6000`, `100min`, `1h 30min`.
pub(super) fn span_s(text: &str) -> Option<u64> {
    let mut sum = 0u64;
    let compact = text.replace(' ', "");
    let mut rest = compact.as_str();
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "" | "s" | "sec" | "second" | "seconds" => 1,
            "m" | "min" | "minute" | "minutes" => 60,
            "h" | "hr" | "hour" | "hours" => 3600,
            "d" | "day" | "days" => 86_400,
            "w" | "week" | "weeks" => 604_800,
            _ => return None,
        };
        rest = &rest[letters..];
        sum = sum.checked_add(number.checked_mul(unit)?)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use testkit::Machine;

    #[test]
    fn drop_ins_add_and_an_empty_value_forgets() {
        let machine = Machine::new("");
        machine.write(
            "usr/lib/systemd/system/fstrim.timer",
            "[Timer]\nOnCalendar=weekly\nRandomizedDelaySec=6000\n",
        );
        machine.write(
            "etc/systemd/system/fstrim.timer.d/when.conf",
            "[Timer]\n# ours\nOnCalendar=\nOnCalendar=Sat \\\n 01:00\n",
        );
        let sys = SysRoot::at(machine.root());
        let unit = Unit::of(&sys, "fstrim.timer").unwrap();
        assert_eq!(unit.all("OnCalendar").collect::<Vec<_>>(), ["Sat   01:00"]);
        assert_eq!(unit.last("RandomizedDelaySec"), Some("6000"));
        assert_eq!(timers(&sys)[0], ("fstrim.timer".to_owned(), false));
        machine.write("etc/systemd/system/fstrim.timer", "");
        assert_eq!(Unit::of(&sys, "fstrim.timer"), None, "masked");
    }

    #[test]
    fn spans_have_units() {
        assert_eq!(span_s("6000"), Some(6000));
        assert_eq!(span_s("1h 30min"), Some(5400));
        assert_eq!(span_s("100 min"), Some(6000));
        assert_eq!((span_s("x"), span_s("infinity")), (None, None));
    }

    proptest! {
        #[test]
        fn no_unit_panics(text in "\\PC{0,200}") {
            let mut unit = Unit::default();
            unit.read(&text);
            span_s(&text);
        }
    }
}
