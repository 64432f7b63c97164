//! How values of `import` are read.

use bench::scenario::values::duration;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use formats::Moment;
use formats::iostat::First;

/// The handling of iostat's first report.
pub(super) fn first_report() -> impl TypedValueParser<Value = First> {
    let values = [
        PossibleValue::new("keep").help("It is of an interval"),
        PossibleValue::new("drop").help("Leave it out"),
    ];
    PossibleValuesParser::new(values).map(|word| match word.as_str() {
        "keep" => First::Keep,
        _ => First::Drop,
    })
}

/// `md0=nvme0n1,nvme1n1`: a device, and the devices that it consists of.
pub(super) fn members(text: &str) -> Result<(String, Vec<String>), String> {
    let (whole, parts) = text
        .split_once('=')
        .ok_or("give a device and what it is made of, e.g. md0=nvme0n1,nvme1n1")?;
    let named = |name: &str| name.trim().trim_start_matches("/dev/").to_owned();
    let parts: Vec<String> = parts.split(',').map(named).collect();
    let whole = named(whole);
    if whole.is_empty() || parts.iter().any(String::is_empty) {
        return Err("a name is empty; give e.g. md0=nvme0n1,nvme1n1".to_owned());
    }
    if parts.contains(&whole) {
        return Err(format!("{whole} can't be a part of itself"));
    }
    Ok((whole, parts))
}

/// A time after the begin, or a date and time in UTC.
pub(super) fn at(text: &str) -> Result<Moment, String> {
    if let Some(unix_s) = utc(text) {
        return Ok(Moment::Unix(unix_s));
    }
    duration(text)
        .map(|after| Moment::After(after.as_secs_f64()))
        .map_err(|e| format!("{e}; or give a time in UTC like 2024-06-19T05:02:34Z"))
}

/// RFC 3339 in UTC: `2024-06-19T05:02:34Z`, in seconds since 1970.
fn utc(text: &str) -> Option<f64> {
    let (date, time) = text.strip_suffix('Z')?.split_once(['T', ' '])?;
    let numbers = |text: &str, between: char| -> Option<Vec<f64>> {
        text.split(between).map(|n| n.parse().ok()).collect()
    };
    let [year, month, day] = numbers(date, '-')?[..] else {
        return None;
    };
    let [hours, minutes, seconds] = numbers(time, ':')?[..] else {
        return None;
    };
    let sound = (1970.0..10_000.0).contains(&year)
        && (1.0..13.0).contains(&month)
        && (1.0..32.0).contains(&day)
        && (0.0..24.0).contains(&hours)
        && (0.0..60.0).contains(&minutes)
        && (0.0..61.0).contains(&seconds);
    sound.then(|| {
        let days = days(year as i64, month as i64, day as i64) as f64;
        days * 86_400.0 + hours * 3600.0 + minutes * 60.0 + seconds
    })
}

/// Days from 1970-01-01 to a date of the Gregorian calendar
/// (<https://howardhinnant.github.io/date_algorithms.html#days_from_civil>).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(at("30s"), Ok(Moment::After(30.0)));
        let second = 1_718_773_354.0;
        assert_eq!(at("2024-06-19T05:02:34Z"), Ok(Moment::Unix(second)));
        assert_eq!(at("1970-01-01 00:00:00Z"), Ok(Moment::Unix(0.0)));
        for wrong in ["", "soon", "2024-13-19T05:02:34Z", "05:02:34Z", "-3s"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn made_of() {
        let (whole, parts) = members("md0=nvme0n1,/dev/nvme1n1").unwrap();
        assert_eq!(
            (whole.as_str(), parts),
            ("md0", vec!["nvme0n1".to_owned(), "nvme1n1".to_owned()])
        );
        for wrong in ["md0", "md0=", "=sda", "md0=sda,,sdb", "md0=md0"] {
            assert!(members(wrong).is_err(), "{wrong}");
        }
    }
}
