//! Calendar expressions of systemd, as far as timers that trim use them (systemd.time(7)).

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
    use super::*;
    use proptest::prelude::*;

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
