//! Sizes, durations, rates and shares: as people type them and as they read them.
//!
//! One grammar serves every option, scenario and condition. Sizes take `k`, `M`,
//! `G`, `T` (1024; also `KiB`, `MiB`, …) and `kB`, `MB`, `GB`, `TB` (1000).
//! Durations take `ns`, `us`, `ms`, `s`, `m`, `h`. Nothing is guessed: a
//! duration without its unit is refused, since 5 could be seconds or
//! milliseconds.

pub mod document;
pub mod kinds;
pub mod names;
pub mod settings;
mod show;
mod statistics;
pub mod typed;
pub mod values;

use std::time::Duration;

pub use show::{
    byte_rate, bytes, bytes_decimal, bytes_exact, count, counted, duration_exact, is_unit,
    latency_us, mean_ms, minutes, percent, percent_exact, rate, seconds, utc,
};
pub use statistics::median;

/// One KiB, in bytes.
pub const KIB: u64 = 1 << 10;
/// One MiB, in bytes.
pub const MIB: u64 = 1 << 20;
/// One GiB, in bytes.
pub const GIB: u64 = 1 << 30;
/// One TiB, in bytes.
pub const TIB: u64 = 1 << 40;

/// Why a text isn't a size, duration, rate, share, number or truth value, with what would do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(String);

impl UnitError {
    /// A text that isn't of a kind, such as `size`; `example` is one that is.
    pub fn not_a(text: &str, what: &str, example: &str) -> UnitError {
        UnitError(format!("'{text}' is not a {what}: give {example}"))
    }

    fn range(text: &str, why: &str) -> UnitError {
        UnitError(format!("'{}' is out of range: {why}", text.trim()))
    }

    fn unit(text: &str, unit: &str, what: &str, allowed: &str) -> UnitError {
        let text = text.trim();
        UnitError(format!(
            "'{text}': '{unit}' is not a unit of a {what}; use {allowed}"
        ))
    }
}

impl From<UnitError> for String {
    fn from(error: UnitError) -> String {
        error.0
    }
}

/// Parses a size in bytes, e.g. `4k`, `8GiB`, `1.5T`, `500MB`, `512`.
///
/// `k`, `M`, `G`, `T` count in 1024 (so do `KiB` … `TiB`), `kB` … `TB` in 1000;
/// no unit or `B` is bytes. Only the first letter's case is free.
///
/// # Errors
/// If it is no number, has an unknown unit, is not a whole number of bytes or
/// doesn't fit into 64 bits.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    const ALLOWED: &str = "k, M, G, T or KiB, MiB, GiB, TiB (1024), or kB, MB, GB, TB (1000)";
    let (number, unit) = split(text, "size", "e.g. 4k, 8G or 500MB")?;
    let scale = match unit {
        "" | "B" | "b" => 1,
        "k" | "K" | "KiB" | "kiB" | "Ki" => KIB,
        "M" | "m" | "MiB" | "Mi" => MIB,
        "G" | "g" | "GiB" | "Gi" => GIB,
        "T" | "t" | "TiB" | "Ti" => TIB,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return Err(UnitError::unit(text, unit, "size", ALLOWED)),
    };
    scaled(number, scale).map_err(|why| UnitError::range(text, why))
}

/// Parses a duration, e.g. `100ms`, `20s`, `1.5m`, `8h`; `0` needs no unit.
///
/// # Errors
/// If it is no number, its unit is missing or unknown, it is not a whole
/// number of nanoseconds, or is longer than 584 years.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    const ALLOWED: &str = "ns, us, ms, s, m (minutes) or h";
    let (number, unit) = split(text, "duration", "e.g. 100ms, 20s or 2m")?;
    let scale: u64 = match unit {
        "" if number == "0" => 1,
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => {
            return Err(UnitError(format!(
                "'{number}' has no unit: a duration needs one, e.g. {number}s or {number}ms; use \
                 {ALLOWED}"
            )));
        }
        _ => return Err(UnitError::unit(text, unit, "duration", ALLOWED)),
    };
    scaled(number, scale)
        .map(Duration::from_nanos)
        .map_err(|why| UnitError::range(text, why))
}

/// Parses a rate of operations per second, e.g. `1000`, `1000/s`, `20k/s`, `60/m`;
/// here `k` and `M` count in 1000.
///
/// # Errors
/// If it is no number, its unit is unknown, or it isn't above 0.
pub fn parse_rate(text: &str) -> Result<f64, UnitError> {
    const ALLOWED: &str = "k or M (1000), and /s, /m or /h";
    let (number, unit) = split(text, "rate", "operations per second, e.g. 1000 or 20k/s")?;
    let (prefix, per) = unit.split_once('/').unwrap_or((unit, "s"));
    let scale = match prefix.trim() {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        _ => return Err(UnitError::unit(text, unit, "rate", ALLOWED)),
    };
    let seconds = match per.trim() {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(UnitError::unit(text, unit, "rate", ALLOWED)),
    };
    let value: f64 = number.parse().unwrap_or(f64::NAN);
    let rate = value * scale / seconds;
    if rate.is_finite() && rate > 0.0 {
        Ok(rate)
    } else {
        Err(UnitError::range(text, "a rate must be above 0"))
    }
}

/// Parses a rate of bytes per second, e.g. `100M/s`, `1GB/s`, `64M`.
///
/// # Errors
/// As [`parse_size`].
pub fn parse_byte_rate(text: &str) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    parse_size(trimmed.strip_suffix("/s").unwrap_or(trimmed))
}

/// Parses a share, e.g. `10%` or `0.1`, as a number from 0 to 1.
///
/// # Errors
/// If it is no number, has another unit than `%`, or isn't within 0 to 1 (0 % to 100 %).
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let (number, unit) = split(text, "share", "e.g. 10% or 0.1")?;
    let value: f64 = number.parse().unwrap_or(f64::NAN);
    let share = match unit {
        "" => value,
        "%" => value / 100.0,
        _ => return Err(UnitError::unit(text, unit, "share", "% or nothing")),
    };
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        let why = "a share is from 0 to 1 (0.1), or with % from 0% to 100% (10%)";
        Err(UnitError::range(text, why))
    }
}

/// Parses a whole number of a range.
///
/// # Errors
/// If it is none, or outside the range.
pub fn parse_whole<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    text: &str,
    range: std::ops::RangeInclusive<T>,
) -> Result<T, UnitError> {
    let number = text.trim().parse().ok();
    number.filter(|n| range.contains(n)).ok_or_else(|| {
        let (least, most) = range.into_inner();
        UnitError(format!(
            "'{text}': give a whole number from {least} to {most}"
        ))
    })
}

/// Parses `true` or `false`.
///
/// # Errors
/// If it is neither.
pub fn parse_truth(text: &str) -> Result<bool, UnitError> {
    let truth = text.trim().parse();
    truth.map_err(|_| UnitError(format!("'{text}' is neither true nor false")))
}

/// Splits `1.5 GiB` into `1.5` and `GiB`. No signs, no exponents.
fn split<'a>(text: &'a str, what: &str, example: &str) -> Result<(&'a str, &'a str), UnitError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UnitError(format!("empty {what}: give {example}")));
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let plain = number.chars().filter(|&c| c == '.').count() <= 1
        && number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(|c: char| c.is_ascii_digit());
    if !plain {
        return Err(UnitError::not_a(text, what, example));
    }
    Ok((number, unit.trim()))
}

/// `number × scale`, exactly. Integer arithmetic, because a float would turn
/// the last bytes of a large size into other ones.
fn scaled(number: &str, scale: u64) -> Result<u64, &'static str> {
    const TOO_LARGE: &str = "it must fit into 64 bits";
    const TOO_FINE: &str = "it must be a whole number of bytes, or of nanoseconds";
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u128 = whole.parse().map_err(|_| TOO_LARGE)?;
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 15 {
        return Err(TOO_FINE);
    }
    let mut total = whole.checked_mul(u128::from(scale)).ok_or(TOO_LARGE)?;
    if !fraction.is_empty() {
        let digits: u128 = fraction.parse().map_err(|_| TOO_FINE)?;
        let divisor = 10_u128.pow(fraction.len() as u32);
        let part = digits * u128::from(scale);
        // 1.1M is 1153433.6 bytes: people mean about that, and a byte is near enough;
        // but half a byte is a mistake.
        if scale == 1 && !part.is_multiple_of(divisor) {
            return Err(TOO_FINE);
        }
        total += (part + divisor / 2) / divisor;
    }
    u64::try_from(total).map_err(|_| TOO_LARGE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes() {
        for (text, value) in [
            ("0", 0),
            ("512", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("4kB", 4000),
            ("1MB", 1_000_000),
            ("8G", 8 * GIB),
            (" 8 GiB ", 8 * GIB),
            ("1.5T", 3 << 39),
            ("2TB", 2_000_000_000_000),
            ("0.5k", 512),
            ("1.1M", 1_153_434),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(value), "{text}");
        }
        for text in [
            "",
            " ",
            "k",
            "-1",
            "+1",
            "1e3",
            "1.2.3",
            ".5",
            "5.",
            "1X",
            "1mB",
            "0.5",
            "18446744073709551616",
            "20000000T",
            "NaN",
            "inf",
            "1 2",
            "１",
        ] {
            assert!(
                parse_size(text).is_err(),
                "{text:?} was taken for {:?}",
                parse_size(text)
            );
        }
    }

    #[test]
    fn durations() {
        for (text, nanos) in [
            ("0", 0),
            ("7ns", 7),
            ("1.5us", 1_500),
            ("100ms", 100_000_000),
            ("20 s", 20_000_000_000),
            ("2m", 120_000_000_000),
            ("8h", 28_800_000_000_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_nanos(nanos)),
                "{text}"
            );
        }
        for text in ["", "5", "s", "-1s", "1d", "0.5ns", "99999999999h", "1 M"] {
            assert!(parse_duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn rates_and_shares() {
        assert_eq!(parse_rate("1000"), Ok(1000.0));
        assert_eq!(parse_rate("20k/s"), Ok(20_000.0));
        assert_eq!(parse_rate("60/m"), Ok(1.0));
        assert!(parse_rate("0").is_err());
        assert!(parse_rate("10G").is_err());
        assert!(parse_rate("10/d").is_err());
        assert_eq!(parse_byte_rate("100M/s"), Ok(100 * MIB));
        assert_eq!(parse_share("10%"), Ok(0.1));
        assert_eq!(parse_share("0.25"), Ok(0.25));
        assert!(parse_share("110%").is_err());
        assert!(parse_share("10").is_err());
    }

    #[test]
    fn errors_say_what_would_do() {
        let message = parse_duration("5").unwrap_err().to_string();
        assert!(
            message.contains("has no unit") && message.contains("e.g. 5s or 5ms"),
            "{message}"
        );
        let message = parse_size("5X").unwrap_err().to_string();
        assert!(
            message.contains("'X'") && message.contains("MiB"),
            "{message}"
        );
    }

    proptest! {
        #[test]
        fn exact_sizes_come_back(size: u64) {
            prop_assert_eq!(parse_size(&bytes_exact(size)), Ok(size));
        }

        #[test]
        fn round_sizes_come_back(n in 0_u64..10_000, shift in 0_u32..45) {
            prop_assert_eq!(parse_size(&bytes_exact(n << shift)), Ok(n << shift));
        }

        #[test]
        fn exact_durations_come_back(nanos: u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse_duration(&duration_exact(duration)), Ok(duration));
        }

        #[test]
        fn shown_sizes_are_near(size in 0_u64..(1 << 60)) {
            let back = parse_size(&bytes(size)).unwrap() as f64;
            prop_assert!((back - size as f64).abs() <= 0.051 * size as f64, "{}", bytes(size));
        }

        #[test]
        fn shown_shares_come_back(share in 0.0_f64..=1.0) {
            let back = parse_share(&percent(share)).unwrap();
            prop_assert!((back - share).abs() <= 0.005_001, "{}", percent(share));
        }

        #[test]
        fn exact_shares_come_back(share in 0.0_f64..=1.0) {
            let back = parse_share(&percent_exact(share)).unwrap();
            prop_assert!((back - share).abs() < 1e-9, "{}", percent_exact(share));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = (parse_size(&text), parse_duration(&text), parse_rate(&text),
                     parse_byte_rate(&text), parse_share(&text));
        }
    }
}
