//! Numbers as iostat prints them, straight from bytes.

/// Reads the token that begins at `at`, up to a blank. Returns its value and
/// where it ends; no value if it is no number.
///
/// The decimal mark is a point or a comma, as the locale has it. With `--human`
/// a `k`, `M`, `G` or `T` (1024) follows and is given back beside the value.
pub(super) fn number(line: &[u8], mut at: usize) -> (Option<(f64, Option<u8>)>, usize) {
    let begin = at;
    let mut digits = 0_u64;
    let mut fraction = 0_u32;
    let mut in_fraction = false;
    let mut plain = true;
    let mut suffix = None;
    while at < line.len() {
        let byte = line[at];
        match byte {
            b'0'..=b'9' if suffix.is_none() => {
                plain &= digits < 1_000_000_000_000_000;
                digits = digits.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                fraction += u32::from(in_fraction);
            }
            b'.' | b',' if !in_fraction && suffix.is_none() => in_fraction = true,
            b' ' | b'\t' => break,
            b'B' | b'k' | b'M' | b'G' | b'T' | b'%' if suffix.is_none() && at > begin => {
                suffix = Some(byte);
            }
            _ => plain = false,
        }
        at += 1;
    }
    if !plain || at == begin || !line[begin].is_ascii_digit() {
        return (None, at);
    }
    const POWERS: [f64; 8] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];
    match POWERS.get(fraction as usize) {
        Some(power) => (Some((digits as f64 / power, suffix)), at),
        None => (None, at),
    }
}

/// The bytes that a suffix of `--human` stands for.
pub(super) fn unit_bytes(suffix: u8) -> Option<f64> {
    match suffix {
        b'B' => Some(1.0),
        b'k' => Some(1024.0),
        b'M' => Some(1024.0 * 1024.0),
        b'G' => Some(1024.0 * 1024.0 * 1024.0),
        b'T' => Some(1024.0 * 1024.0 * 1024.0 * 1024.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_locales_and_options_have_it() {
        let value = |text: &str| number(text.as_bytes(), 0).0;
        assert_eq!(value("67975.00"), Some((67975.0, None)));
        assert_eq!(value("67975,25 1"), Some((67975.25, None)));
        assert_eq!(value("8"), Some((8.0, None)));
        assert_eq!(value("1.5M"), Some((1.5, Some(b'M'))));
        assert_eq!(value("99.1%"), Some((99.1, Some(b'%'))));
        for none in [
            "",
            "sda",
            "1.2.3",
            "-1.0",
            "1e5",
            "nan",
            "05:02:34",
            ".5",
            "1M2",
            "9".repeat(30).as_str(),
        ] {
            assert_eq!(value(none), None, "{none}");
        }
        assert_eq!(number(b"12.5  7", 0).1, 4);
    }
}
