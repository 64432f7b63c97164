//! Figures as people read them: few digits, always with the unit.

use std::time::Duration;

use super::{GIB, KIB, MIB, TIB};

/// A size in binary units, e.g. `8.0 GiB`, `124 MiB`, `512 B`.
pub fn bytes(n: u64) -> String {
    match n {
        _ if n >= TIB => three_digits(n as f64 / TIB as f64, "TiB"),
        _ if n >= GIB => three_digits(n as f64 / GIB as f64, "GiB"),
        _ if n >= MIB => three_digits(n as f64 / MIB as f64, "MiB"),
        _ if n >= KIB => three_digits(n as f64 / KIB as f64, "KiB"),
        _ => format!("{n} B"),
    }
}

/// A size in decimal units, e.g. `8.6 GB`.
pub fn bytes_decimal(n: u64) -> String {
    let n = n as f64;
    match n {
        _ if n >= 1e12 => three_digits(n / 1e12, "TB"),
        _ if n >= 1e9 => three_digits(n / 1e9, "GB"),
        _ if n >= 1e6 => three_digits(n / 1e6, "MB"),
        _ if n >= 1e3 => three_digits(n / 1e3, "kB"),
        _ => format!("{n} B"),
    }
}

/// A size that [`parse_size`](super::parse_size) reads back exactly, in its
/// largest whole unit, e.g. `8G`, `4k`, `513`.
pub fn bytes_exact(n: u64) -> String {
    for (unit, suffix) in [(TIB, "T"), (GIB, "G"), (MIB, "M"), (KIB, "k")] {
        if n >= unit && n.is_multiple_of(unit) {
            return format!("{}{suffix}", n / unit);
        }
    }
    n.to_string()
}

/// Bytes per second both ways, since data sheets and tools differ: `9.1 GB/s (8.5 GiB/s)`.
pub fn byte_rate(per_s: f64) -> String {
    if !(per_s.is_finite() && per_s >= 0.0) {
        return "–".to_owned();
    }
    let n = per_s as u64;
    format!("{}/s ({}/s)", bytes_decimal(n), bytes(n))
}

/// A count with thousands separators, e.g. `65,300`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Operations per second, e.g. `65,300/s`, `3.2/s`; three or so significant digits.
pub fn rate(per_s: f64) -> String {
    if !per_s.is_finite() {
        return "–".to_owned();
    }
    if per_s.abs() < 9.95 {
        return format!("{per_s:.1}/s");
    }
    // Digits that the next run would not repeat only distract.
    let step = 10_f64.powi((per_s.abs().log10().floor() as i32 - 2).max(0));
    let rounded = (per_s / step).round() * step;
    format!(
        "{}{}/s",
        if rounded < 0.0 { "-" } else { "" },
        count(rounded.abs() as u64)
    )
}

/// A number of things, e.g. `1 name`, `20,000 names`; `one` is the word for one of them.
pub fn counted(n: u64, one: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {one}{plural}", count(n))
}

/// A length of time in seconds, e.g. `16.9 s`, `0.40 s`, `86 ms`, `3 min 20 s`.
pub fn seconds(s: f64) -> String {
    if !s.is_finite() {
        return "–".to_owned();
    }
    let magnitude = s.abs();
    if magnitude == 0.0 {
        return "0 s".to_owned();
    }
    if magnitude >= 3600.0 {
        let minutes = (s / 60.0).round();
        return format!("{} h {:02} min", (minutes / 60.0).floor(), minutes % 60.0);
    }
    if magnitude >= 120.0 {
        let whole = s.round();
        return format!("{} min {:02} s", (whole / 60.0).floor(), whole % 60.0);
    }
    if magnitude >= 99.95 {
        format!("{s:.0} s")
    } else if magnitude >= 0.995 {
        format!("{s:.1} s")
    } else if magnitude >= 0.1 {
        format!("{s:.2} s")
    } else {
        latency_us(s * 1e6)
    }
}

/// A latency given in microseconds, e.g. `73 µs`, `1.6 ms`, `1.02 s`.
pub fn latency_us(us: f64) -> String {
    if !us.is_finite() {
        return "–".to_owned();
    }
    match us.abs() {
        x if x >= 99.95e6 => format!("{:.0} s", us / 1e6),
        x if x >= 0.9995e6 => three_digits(us / 1e6, "s"),
        x if x >= 999.5 => three_digits(us / 1e3, "ms"),
        x if x >= 0.9995 || x == 0.0 => three_digits(us, "µs"),
        _ => format!("{:.0} ns", us * 1e3),
    }
}

/// A mean wait as the kernel's statistics have it, in whole milliseconds; `-` without operations.
pub fn mean_ms(ms: Option<f64>) -> String {
    match ms {
        None => "-".to_owned(),
        Some(0.0) => "< 1 ms".to_owned(),
        Some(ms) => latency_us(ms * 1e3),
    }
}

/// A share of 1 in per cent, e.g. `0.6 %`, `42 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".to_owned();
    }
    let percent = share * 100.0;
    if percent.abs() < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// A share that [`parse_share`](super::parse_share) reads back within 1e-9.
pub fn percent_exact(share: f64) -> String {
    let shown = percent(share).replace(' ', "").replace(".0%", "%");
    match super::parse_share(&shown) {
        Ok(read) if (read - share).abs() < 1e-9 => shown,
        _ => share.to_string(),
    }
}

/// A duration rounded up, for a forecast: `90 s`, `3 min`.
pub fn minutes(duration: Duration) -> String {
    match duration.as_secs() {
        s if s >= 120 => format!("{} min", s.div_ceil(60)),
        s => format!("{s} s"),
    }
}

/// A duration that [`parse_duration`](super::parse_duration) reads back
/// exactly, in its largest whole unit, e.g. `100ms`, `2m`. From a thousand of a unit below
/// a second on it is in the next unit with decimals, e.g. `12.1ms`.
pub fn duration_exact(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    for (unit, suffix) in [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ] {
        if nanos >= unit && nanos.is_multiple_of(unit) {
            return format!("{}{suffix}", nanos / unit);
        }
        // The next smaller unit would have four digits or more.
        let decimals = nanos % unit;
        if unit <= 1_000_000_000 && nanos >= unit && decimals.is_multiple_of(unit / 1000) {
            let decimals = format!("{:03}", decimals / (unit / 1000));
            let decimals = decimals.trim_end_matches('0');
            return format!("{}.{decimals}{suffix}", nanos / unit);
        }
    }
    format!("{nanos}ns")
}

/// `8.0`, `12.5` and `124`: one decimal until three digits stand before the point.
fn three_digits(value: f64, unit: &str) -> String {
    if value.abs() >= 99.95 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

/// A moment as ISO 8601 has it, to the second, e.g. `2023-11-14T22:13:20Z`.
///
/// From days to a date as in Howard Hinnant's "chrono-compatible low-level date
/// algorithms" (`civil_from_days`).
pub fn utc(unix_s: f64) -> String {
    let seconds = unix_s.clamp(0.0, 2.5e11) as i64;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year_of_era + era * 400 + carry;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns whether a word is a unit that figures are shown with; no line ends before it.
pub fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 18] = [
        "ns", "µs", "us", "ms", "s", "min", "h", "%", "B", "KiB", "MiB", "GiB", "TiB", "kB", "MB",
        "GB", "TB", "points",
    ];
    let word = word
        .split(|c| ",;:.()".contains(c))
        .next()
        .unwrap_or_default();
    UNITS.contains(&word.strip_suffix("/s").unwrap_or(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(bytes(8 * GIB), "8.0 GiB");
        assert_eq!(bytes(124 * MIB), "124 MiB");
        assert_eq!(bytes(4095), "4.0 KiB");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(byte_rate(9.1e9), "9.1 GB/s (8.5 GiB/s)");
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(rate(65_312.4), "65,300/s");
        assert_eq!(rate(3.21), "3.2/s");
        assert_eq!(rate(0.0), "0.0/s");
        assert_eq!(seconds(16.94), "16.9 s");
        assert_eq!(seconds(0.4), "0.40 s");
        assert_eq!(seconds(0.086), "86.0 ms");
        assert_eq!(seconds(200.0), "3 min 20 s");
        assert_eq!(seconds(7200.0), "2 h 00 min");
        assert_eq!(latency_us(73.0), "73.0 µs");
        assert_eq!(latency_us(1580.0), "1.6 ms");
        assert_eq!(latency_us(1_100_000.0), "1.1 s");
        assert_eq!(percent(0.006), "0.6 %");
        assert_eq!(percent(0.42), "42 %");
        assert_eq!(rate(f64::NAN), "–");
    }
}
