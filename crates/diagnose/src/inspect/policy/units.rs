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

// Calendar expressions of systemd, as far as timers that trim use them (systemd.time(7)).

const DAY: i64 = 86_400;

const DAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// When a timer elapses, in local time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    /// The days of the week on which it does, Monday first.
    weekdays: [bool; 7],
    /// The day of the month; `None`: any.
    day: Option<u32>,
    /// The hour; `None`: each.
    hour: Option<u32>,
    minute: u32,
    second: u32,
}

impl Calendar {
    /// Reads an expression; `None` for one that this doesn't understand.
    pub fn parse(text: &str) -> Option<Calendar> {
        let text = text.trim().to_ascii_lowercase();
        let mut found = Calendar {
            weekdays: [true; 7],
            day: None,
            hour: Some(0),
            minute: 0,
            second: 0,
        };
        let text = match text.as_str() {
            "hourly" => "*:00",
            "daily" => "00:00",
            "weekly" => "mon",
            "monthly" => "*-*-1",
            other => other,
        };
        for word in text.split_whitespace() {
            if word.contains(':') {
                let mut parts = word.split(':');
                found.hour = match parts.next()? {
                    "*" => None,
                    hour => Some(number(hour, 23)?),
                };
                found.minute = number(parts.next()?, 59)?;
                found.second = parts.next().map_or(Some(0), |second| number(second, 59))?;
            } else if word.contains('*') {
                let (_, day) = word.strip_prefix("*-")?.split_once('-')?;
                if !word.starts_with("*-*-") {
                    return None;
                }
                found.day = match day {
                    "*" => None,
                    day => Some(number(day, 31)?),
                };
            } else {
                found.weekdays = weekdays(word)?;
            }
        }
        Some(found)
    }

    /// The first moment after `now` at which it elapses. Both are in seconds of local time since
    /// 1970; `None` if it never does.
    pub fn next(&self, now: i64) -> Option<i64> {
        let today = now.div_euclid(DAY);
        (today..today + 400).find_map(|day| {
            if !self.weekdays[(day + 3).rem_euclid(7) as usize]
                || self.day.is_some_and(|wanted| wanted != day_of_month(day))
            {
                return None;
            }
            let hours = match self.hour {
                Some(hour) => hour..=hour,
                None => 0..=23,
            };
            let at =
                |hour: u32| day * DAY + i64::from(hour * 3600 + self.minute * 60 + self.second);
            hours.map(at).find(|&at| at > now)
        })
    }
}

fn number(text: &str, most: u32) -> Option<u32> {
    text.parse().ok().filter(|&number| number <= most)
}

/// `mon`, `mon,thu`, `mon..fri`, also with whole names.
fn weekdays(text: &str) -> Option<[bool; 7]> {
    let is = |day: &str, name: &str| name == day || name == &day[..3];
    let day = |name: &str| DAYS.iter().position(|day| is(day, name));
    let mut found = [false; 7];
    for part in text.trim_end_matches(',').split(',') {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let (first, last) = (day(first)?, day(last)?);
        found.get_mut(first..=last)?.fill(true);
    }
    Some(found)
}

/// The day of the month of a day since 1970 (Hinnant's `civil_from_days`).
fn day_of_month(days: i64) -> u32 {
    let day_of_era = (days + 719_468).rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    (day_of_year - (153 * month + 2) / 5 + 1) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use testkit::Machine;

    use super::*;

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

    /// Tuesday, 2026-11-24 02:00:00.
    const NOW: i64 = 1_795_485_600;

    fn next(text: &str) -> Option<String> {
        let at = Calendar::parse(text)?.next(NOW)?;
        Some(record::units::utc(at as f64))
    }

    #[test]
    fn the_next_time_of_usual_expressions() {
        let of = |text| next(text).unwrap_or_default();
        assert!(
            of("weekly").starts_with("2026-11-30T00:00"),
            "{}",
            of("weekly")
        );
        assert!(of("daily").starts_with("2026-11-25T00:00"));
        assert!(of("hourly").starts_with("2026-11-24T03:00"));
        assert!(of("monthly").starts_with("2026-12-01T00:00"));
        assert!(of("Mon *-*-* 03:10:00").starts_with("2026-11-30T03:10"));
        assert!(of("Tue 04:30").starts_with("2026-11-24T04:30"));
        assert!(of("Sat,Sun 01:00").starts_with("2026-11-28T01:00"));
        assert!(of("*-*-15 12:00").starts_with("2026-12-15T12:00"));
        assert!(of("Mon..Fri *-*-* *:15").starts_with("2026-11-24T02:15"));
    }

    #[test]
    fn others_are_not_guessed() {
        for text in [
            "2026-01-01",
            "*-1..6-*",
            "Mon/2",
            "*:0/15",
            "Fri..Mon",
            "25:00",
        ] {
            assert_eq!(Calendar::parse(text), None, "{text}");
        }
        assert!(Calendar::parse("*-*-31 00:00").unwrap().next(NOW).is_some());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}", now in -1i64 << 40..1i64 << 40) {
            let next = Calendar::parse(&text).and_then(|calendar| calendar.next(now));
            prop_assert!(next.is_none_or(|next| next > now));
        }
    }
}
