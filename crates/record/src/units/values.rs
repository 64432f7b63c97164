//! Values as texts: of a file and of the command line alike. An error says
//! what is allowed.

use std::path::PathBuf;
use std::time::Duration;

/// Most bytes of an operation.
const LARGEST_BLOCK: u64 = 16 * crate::units::MIB;
/// Longest name of an actor, so that columns stay readable.
const LONGEST_NAME: usize = 24;

fn above_0<T: Default + PartialEq>(value: T) -> Result<T, String> {
    if value == T::default() {
        Err("must be more than 0".into())
    } else {
        Ok(value)
    }
}

/// A whole number.
///
/// # Errors
/// If it is none from `least` to `most`.
pub fn whole(text: &str, least: u32, most: u32) -> Result<u32, String> {
    Ok(crate::units::parse_whole(text, least..=most)?)
}

/// Any text but an empty one.
///
/// # Errors
/// If it is empty.
pub fn text(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("is empty".into()),
        text => Ok(text.to_owned()),
    }
}

/// One line that can be printed.
pub fn line(given: &str) -> Result<String, String> {
    match given.contains(char::is_control) {
        true => Err("give one line, without control characters".into()),
        false => text(given),
    }
}

/// A path.
///
/// # Errors
/// If it is empty.
pub fn path(given: &str) -> Result<PathBuf, String> {
    text(given).map(PathBuf::from)
}

/// True or false.
///
/// # Errors
/// If it is neither.
pub fn truth(text: &str) -> Result<bool, String> {
    Ok(crate::units::parse_truth(text)?)
}

/// A whole number.
///
/// # Errors
/// If it is none.
pub fn number(text: &str) -> Result<u64, String> {
    let wrong = |_| format!("'{text}': give a whole number from 0");
    text.trim().parse().map_err(wrong)
}

/// A size in bytes, more than 0.
///
/// # Errors
/// If it is none.
pub fn size(text: &str) -> Result<u64, String> {
    above_0(crate::units::parse_size(text)?)
}

/// Bytes of an operation.
///
/// # Errors
/// If it is none, or more than 16 MiB.
pub fn block_size(text: &str) -> Result<u32, String> {
    match size(text)? {
        bytes if bytes <= LARGEST_BLOCK => Ok(bytes as u32),
        _ => Err("must be at most 16M".into()),
    }
}

/// Bytes per second, more than 0.
///
/// # Errors
/// If it is none.
pub fn byte_rate(text: &str) -> Result<u64, String> {
    above_0(crate::units::parse_byte_rate(text)?)
}

/// A duration.
///
/// # Errors
/// If it is none.
pub fn duration(text: &str) -> Result<Duration, String> {
    Ok(crate::units::parse_duration(text)?)
}

/// A duration that is more than nothing.
///
/// # Errors
/// If it is none.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    above_0(duration(text)?)
}

/// The length of a record's intervals.
///
/// # Errors
/// If it isn't from 10 ms to 10 s.
pub fn interval(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if (Duration::from_millis(10)..=Duration::from_secs(10)).contains(&time) {
        Ok(time)
    } else {
        Err("must be from 10ms to 10s".into())
    }
}

/// Operations per second, above 0.
///
/// # Errors
/// If it is none, or more than 10 million.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate = crate::units::parse_rate(text)?;
    if rate <= 10e6 {
        Ok(rate)
    } else {
        Err("must be at most 10000000 per second".into())
    }
}

/// Operations per second; 0 for none.
///
/// # Errors
/// As [`rate`].
pub fn rate_or_none(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(0.0) => Ok(0.0),
        _ => rate(text),
    }
}

/// The share of reads of a mixed load, in percent.
///
/// # Errors
/// If it isn't from 1 % to 99 %.
pub fn read_percent(text: &str) -> Result<u8, String> {
    let percent = (crate::units::parse_share(text)? * 100.0).round();
    if (1.0..=99.0).contains(&percent) {
        Ok(percent as u8)
    } else {
        Err("must be from 1% to 99% (for nothing but reads or writes take op read or write)".into())
    }
}

/// The share of the baseline below which an interval counts as stalled.
///
/// # Errors
/// If it isn't between 0 and 1.
pub fn low(text: &str) -> Result<f64, String> {
    let share = crate::units::parse_share(text)?;
    if share > 0.0 && share < 1.0 {
        Ok(share)
    } else {
        Err("must be between 0% and 100%".into())
    }
}

/// Operations in flight, or at once.
pub fn depth(text: &str) -> Result<u32, String> {
    whole(text, 1, 4096)
}

/// A number of files.
pub fn files(text: &str) -> Result<u32, String> {
    whole(text, 1, 100_000)
}

/// Calls in flight of a deletion.
pub fn parallel(text: &str) -> Result<u32, String> {
    whole(text, 1, 256)
}

/// Levels of an LSM tree.
pub fn levels(text: &str) -> Result<u32, String> {
    whole(text, 2, 7)
}

/// An actor's name, which heads a column of the record.
pub fn actor_name(text: &str) -> Result<String, String> {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= LONGEST_NAME
        && text.chars().all(letters);
    match text {
        "canary" => Err("'canary' is the name of trimbench's own reader: give another".into()),
        _ if fits => Ok(text.to_owned()),
        _ => Err(format!(
            "'{text}': give a name of at most {LONGEST_NAME} lower-case letters, digits and '-', \
             beginning with a letter"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_what_would_do() {
        for (error, words) in [
            (size("0").map(drop), "more than 0"),
            (block_size("64M").map(drop), "at most 16M"),
            (rate("0").map(drop), "above 0"),
            (rate("20M/s").map(drop), "10000000"),
            (rate_or_none("-1").map(drop), "-1"),
            (read_percent("100%").map(drop), "1% to 99%"),
            (files("0").map(drop), "from 1 to 100000"),
            (levels("1").map(drop), "from 2 to 7"),
            (truth("yes").map(drop), "neither true nor false"),
            (actor_name("Log").map(drop), "lower-case"),
            (actor_name("canary").map(drop), "another"),
            (interval("1ms").map(drop), "10ms to 10s"),
        ] {
            let why = error.unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn what_is_right_is_taken() {
        assert_eq!(read_percent("70%"), Ok(70));
        assert_eq!(rate_or_none("0"), Ok(0.0));
        assert_eq!(rate("2k/s"), Ok(2000.0));
        assert_eq!(byte_rate("1M/s"), Ok(1 << 20));
        assert_eq!(actor_name("wal-2"), Ok("wal-2".into()));
    }
}
