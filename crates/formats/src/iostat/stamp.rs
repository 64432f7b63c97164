//! Times that `iostat -t` and a report's first line print, in the formats of
//! several locales.

/// A time as printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stamp {
    /// Seconds since midnight; since 1970 if `zoned`.
    pub(super) seconds: f64,
    /// Days from 1970 to its date, where it has one.
    pub(crate) day: Option<i64>,
    /// Whether it has a time zone (or counts from 1970).
    pub(crate) zoned: bool,
}

impl Stamp {
    /// Seconds since 1970, in UTC if it has no zone; `None` without a date.
    pub(crate) fn unix_s(&self) -> Option<f64> {
        if self.zoned {
            return Some(self.seconds);
        }
        Some(self.day? as f64 * 86_400.0 + self.seconds)
    }

    /// Reads a line that is a time and nothing else.
    pub(crate) fn parse(line: &[u8]) -> Option<Stamp> {
        if line.len() > 96 {
            return None;
        }
        let text = western(std::str::from_utf8(line).ok()?);
        let text = text.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        if (9..=12).contains(&digits) && text.parse::<f64>().is_ok() {
            return Some(Stamp {
                seconds: text.parse().ok()?,
                day: None,
                zoned: true,
            });
        }
        let (seconds, rest) = clock(text)?;
        let mut tokens = text.split(|c: char| c.is_whitespace() || matches!(c, 'T' | '[' | ']'));
        let day = tokens.find_map(|token| date(token, rest.half));
        let since_1970 = zone(rest.after).zip(day);
        let since_1970 = since_1970.map(|(zone_s, day)| day as f64 * 86_400.0 + seconds - zone_s);
        Some(Stamp {
            seconds: since_1970.unwrap_or(seconds),
            day,
            zoned: since_1970.is_some(),
        })
    }

    /// The time in what another program put before a line, beside a host or a process.
    pub(super) fn within(prefix: &[u8]) -> Option<Stamp> {
        Stamp::parse(prefix).or_else(|| Stamp::parse(prefix.split(|&b| b == b' ').next()?))
    }
}

/// Words for the halves of the day, where iostat's locale counts twelve hours.
const MORNING: &str = "am a.m 上午 午前 오전 πμ पूर्वाह्न";
const AFTERNOON: &str = "pm p.m 下午 午後 오후 μμ अपराह्न";

/// A time with ASCII digits, `-` and `:`, whatever the locale puts there: `2024年06月19日 05時02分34秒`,
/// `19.06.2024 05.02.34`.
fn western(text: &str) -> String {
    let digit = |c: char| {
        [0x660, 0x6f0, 0x966, 0x9e6, 0xff10]
            .iter()
            .find_map(|zero| char::from_digit(u32::from(c).checked_sub(*zero)?, 10))
    };
    let mut plain = String::with_capacity(text.len());
    let mut after_mark = false;
    for c in text.chars() {
        let mark = match c {
            '年' | '년' | '月' | '월' => Some('-'),
            '時' | '时' | '시' | '点' | '分' | '분' => Some(':'),
            '日' | '일' | '秒' | '초' => Some(' '),
            _ => None,
        };
        if !(after_mark && c == ' ') {
            plain.push(mark.or(digit(c)).unwrap_or(c));
        }
        after_mark = matches!(mark, Some('-' | ':')) || after_mark && c == ' ';
    }
    let dotted = |word: &str| {
        let fields: Vec<&str> = word.split('.').collect();
        let two = |f: &&str| matches!(f.len(), 1 | 2) && f.bytes().all(|b| b.is_ascii_digit());
        fields.len() == 3 && fields.iter().all(two)
    };
    let time = plain
        .rsplit(' ')
        .find(|word| dotted(word))
        .map(str::to_owned);
    match time.filter(|_| !plain.contains(':')) {
        Some(time) => plain.replace(&time, &time.replace('.', ":")),
        None => plain,
    }
}

/// The text around a time of day.
pub(super) struct Rest<'a> {
    after: &'a str,
    /// Whether it says which half of the day it is.
    half: bool,
}

/// The time of day in a text, in seconds since midnight: `HH:MM:SS`, with AM or PM.
pub(super) fn clock(text: &str) -> Option<(f64, Rest<'_>)> {
    let is_digit = |c: char| c.is_ascii_digit();
    let after_digit = |(at, _): &(usize, &str)| text[..*at].ends_with(is_digit);
    let (colon, _) = text.match_indices(':').find(after_digit)?;
    let before = text[..colon].trim_end_matches(is_digit).len();
    let begin = before.max(colon.saturating_sub(2));
    let mut hours = f64::from(text[begin..colon].parse::<u8>().ok()?);
    let (minutes, after) = two_digits(&text[colon + 1..])?;
    let (mut seconds, mut after) = two_digits(after.strip_prefix(':')?)?;
    if hours > 23.0 || minutes > 59.0 || seconds > 60.0 {
        return None;
    }
    if let Some(fraction) = after.strip_prefix(['.', ',']) {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        seconds += format!("0.{}", &fraction[..digits]).parse().unwrap_or(0.0);
        after = &fraction[digits..];
    }
    // Before or behind the clock; as a part of a host's name it says nothing.
    let near = [text[..begin].trim_end(), after.trim_start()].map(str::to_lowercase);
    let says = |word: &str| {
        let behind = near[1].strip_prefix(word);
        near[0].ends_with(word) && !word.is_ascii()
            || behind.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    let [morning, afternoon] = [MORNING, AFTERNOON].map(|words| words.split(' ').any(says));
    if morning || afternoon {
        hours = hours % 12.0 + if morning { 0.0 } else { 12.0 };
    }
    let rest = Rest {
        after,
        half: morning || afternoon,
    };
    Some((hours * 3600.0 + minutes * 60.0 + seconds, rest))
}

fn two_digits(text: &str) -> Option<(f64, &str)> {
    let (digits, after) = text.split_at_checked(2)?;
    Some((f64::from(digits.parse::<u8>().ok()?), after))
}

/// `Z`, `UTC`, `+0200` or `+02:00`, in seconds east of Greenwich.
fn zone(after: &str) -> Option<f64> {
    let word = after.split_whitespace().next()?;
    if matches!(word, "Z" | "UTC") || after.trim_end().ends_with("UTC") {
        return Some(0.0);
    }
    let sign = match word.bytes().next()? {
        b'+' => 1.0,
        b'-' => -1.0,
        _ => return None,
    };
    let digits: String = word[1..].chars().filter(char::is_ascii_digit).collect();
    let number: f64 = digits.get(..4)?.parse::<u16>().ok().map(f64::from)?;
    Some(sign * ((number / 100.0).floor() * 3600.0 + number % 100.0 * 60.0))
}

/// Days since 1970 of `2024-06-19`, `06/19/2024`, `19.06.2024` or `19/06/24`. Where two numbers
/// could both be months, a dot has the day first. A slash has it first too, unless the clock has AM
/// or PM or the year has four digits.
pub(super) fn date(token: &str, half: bool) -> Option<i64> {
    let parts: Vec<&str> = token
        .split(['-', '/', '.'])
        .filter(|p| !p.is_empty())
        .collect();
    let [a, b, c] = parts[..] else { return None };
    let number = |text: &str| text.parse::<i64>().ok().filter(|_| text.len() <= 4);
    let (x, y, z) = (number(a)?, number(b)?, number(c)?);
    let (year, month, day) = if a.len() == 4 {
        (x, y, z)
    } else {
        let year = if c.len() == 4 { z } else { 2000 + z };
        let day_first =
            x > 12 || y <= 12 && (token.contains('.') || !(half || token.contains('/')));
        if day_first {
            (year, y, x)
        } else {
            (year, x, y)
        }
    };
    let fits = (1970..2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    fits.then(|| days(year, month, day))
}

/// Days from 1970 to a date of the Gregorian calendar.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    // March is the first month, so that the leap day is the last of a year.
    let (year, month) = if month < 3 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    year * 365 + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (month * 153 + 2) / 5
        + day
        - 1
        - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_moment_in_many_formats() {
        let moment = 1_718_773_354.0;
        for text in [
            "06/19/2024 05:02:34 AM",
            "2024-06-19 05:02:34",
            "2024-06-19T05:02:34+0000",
            "2024-06-19T07:02:34+0200",
            "2024-06-19T05:02:34Z",
            "19.06.2024 05:02:34",
            "19/06/24 05:02:34",
            "1718773354",
            "2024年06月19日 05時02分34秒",
            "2024년 06월 19일 (수) 오전 05시 02분 34초",
            "2024年06月19日 上午05時02分34秒",
            "19.06.2024 05.02.34",
            "2024-06-19 05.02.34",
            "19/06/2024 05:02:34",
            "١٩.٠٦.٢٠٢٤ ٠٥:٠٢:٣٤",
        ] {
            let stamp = Stamp::parse(text.as_bytes()).unwrap();
            assert_eq!(stamp.unix_s(), Some(moment), "{text}");
        }
        let afternoon = Stamp::parse(b"06/19/2024 12:00:01 PM").unwrap();
        assert_eq!(afternoon.seconds, 43_201.0);
        let korean = Stamp::parse("오후 01시 02분 03초".as_bytes()).unwrap();
        assert_eq!(korean.seconds, 46_923.0);
        let bare = Stamp::parse(b"Time: 17:02:34").unwrap();
        assert_eq!((bare.seconds, bare.unix_s()), (61_354.0, None));
    }

    #[test]
    fn a_time_before_a_line_stands_beside_other_words() {
        for (prefix, unix_s) in [
            ("2024-06-19T05:02:34.500000000Z ", Some(1_718_773_354.5)),
            (
                "2024-06-19T07:02:34.5+02:00 ampere iostat[12]: ",
                Some(1_718_773_354.5),
            ),
            ("[pod/a-0/b] 2024-06-19T05:02:34.5Z ", Some(1_718_773_354.5)),
            ("1718773354.5 box iostat: ", Some(1_718_773_354.5)),
            ("Jun 19 17:02:34 ampere iostat[12]: ", None),
        ] {
            let stamp = Stamp::within(prefix.as_bytes()).unwrap();
            assert_eq!(stamp.unix_s(), unix_s, "{prefix}");
            assert!(stamp.seconds > 61_353.0, "the afternoon");
        }
        assert_eq!(Stamp::within(b"iostat[4711]: "), None);
    }

    #[test]
    fn other_lines_are_none() {
        for text in [
            "",
            "avg-cpu:  %user",
            "Linux 6.5",
            "25:00:00",
            "1:2",
            "a:b:c",
            "12345",
        ] {
            assert_eq!(Stamp::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 3, 1), 11_017);
    }
}
