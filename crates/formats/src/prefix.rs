//! Text that other programs put before each line of a log: a time (`ts`, docker, CRI, journald), a
//! host, the `> ` of a mail. Also the JSON around it (docker's `json-file`), and a terminal's colours.

use std::collections::HashMap;

/// So many lines at the begin show the prefix.
const LINES: usize = 400;

/// A prefix has no more parts than this.
const PARTS: usize = 64;

/// A part of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    /// A run of digits: times count up, process numbers differ.
    Digits,
    /// A run of blanks; at the end one blank, or the line's end.
    Blank,
    /// This very byte.
    Byte(u8),
}

/// The shape of the text before each line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prefix(Vec<Part>);

impl Prefix {
    /// The longest prefix that most lines of this begin of a text share; `None` without one.
    ///
    /// It ends before iostat's header, or after a time or a `:`, `]`, `>` or `|` with a blank behind it.
    pub(crate) fn of(begin: &[u8]) -> Option<Prefix> {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for line in begin.split(|&b| b == b'\n').take(LINES) {
            let mut plain = Vec::new();
            unwrapped(line.trim_ascii_end(), &mut plain);
            lines.push(plain);
        }
        let mut counts: HashMap<Vec<Part>, usize> = HashMap::new();
        for line in &lines {
            for end in ends(line) {
                *counts.entry(end).or_default() += 1;
            }
        }
        let headers = lines.iter().filter_map(|line| before_header(line));
        let mut headers: Vec<Prefix> = headers.collect();
        headers.dedup();
        let has = |prefix: &Prefix| lines.iter().filter(|l| prefix.split(l).is_some()).count();
        if let Some(header) = headers.into_iter().find(|one| 2 * has(one) > lines.len()) {
            return Some(header);
        }
        let common = counts.into_iter().filter(|(_, n)| 2 * n > lines.len());
        common
            .map(|(parts, _)| parts)
            .max_by_key(Vec::len)
            .map(Prefix)
    }

    /// A line's prefix, and the line without it; `None` if it doesn't begin so.
    pub(crate) fn split<'a>(&self, line: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let mut at = 0;
        for (i, part) in self.0.iter().enumerate() {
            let rest = &line[at..];
            let last = i + 1 == self.0.len();
            at += match part {
                Part::Blank if last && rest.is_empty() => 0,
                Part::Blank if last => usize::from(is_blank(rest[0])),
                Part::Byte(byte) => usize::from(rest.first() == Some(byte)),
                Part::Blank => length(rest, is_blank),
                Part::Digits => length(rest, |b| b.is_ascii_digit()),
            };
            let taken = line.len() - rest.len() < at;
            if !(taken || last && rest.is_empty()) {
                return None;
            }
        }
        Some(line.split_at(at))
    }
}

/// How a line of docker's `json-file` begins.
pub(crate) const DOCKER: &[u8] = b"{\"log\":";

/// A line of docker's `json-file` as `docker logs -t` prints it.
fn of_docker(line: &[u8]) -> Option<String> {
    let line: serde_json::Value = match line.starts_with(DOCKER) {
        true => serde_json::from_slice(line).ok()?,
        false => return None,
    };
    let text = line["log"].as_str()?.trim_end_matches(['\r', '\n']);
    Some(format!("{} {text}", line["time"].as_str()?))
}

/// Copies a line without a terminal's orders (colours, titles), and out of docker's JSON.
pub(crate) fn unwrapped(line: &[u8], into: &mut Vec<u8>) {
    into.clear();
    let docker = of_docker(line);
    let mut rest = docker.as_deref().map_or(line, str::as_bytes);
    while let Some(at) = memchr::memchr(0x1b, rest) {
        into.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let end = match rest.first() {
            Some(b'[') => rest[1..]
                .iter()
                .position(|b| (0x40..0x7f).contains(b))
                .map(|i| i + 2),
            Some(b']') => rest
                .iter()
                .position(|&b| b == 0x07 || b == b'\\')
                .map(|i| i + 1),
            Some(b'(' | b')') => Some(2),
            _ => Some(1),
        };
        rest = &rest[end.unwrap_or(rest.len()).min(rest.len())..];
    }
    into.extend_from_slice(rest);
}

/// A text without colours and prefix, for readers that need it whole.
pub fn plain(text: &str) -> String {
    let prefix = Prefix::of(text.as_bytes());
    let mut all = Vec::with_capacity(text.len());
    let mut line = Vec::new();
    for one in text.as_bytes().split_inclusive(|&b| b == b'\n') {
        let (one, end) = match one.strip_suffix(b"\n") {
            Some(one) => (one, &b"\n"[..]),
            None => (one, &b""[..]),
        };
        unwrapped(one, &mut line);
        let split = prefix.as_ref().and_then(|prefix| prefix.split(&line));
        all.extend_from_slice(split.map_or(&line, |(_, rest)| rest));
        all.extend_from_slice(end);
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn length(bytes: &[u8], so: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|&&b| so(b)).count()
}

fn parts(line: &[u8]) -> Vec<Part> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let (part, long) = match line[at] {
            b if is_blank(b) => (Part::Blank, length(&line[at..], is_blank)),
            b if b.is_ascii_digit() => (Part::Digits, length(&line[at..], |b| b.is_ascii_digit())),
            b => (Part::Byte(b), 1),
        };
        found.push(part);
        at += long;
    }
    found
}

/// The prefixes that a line may have, each with the blank behind it.
fn ends(line: &[u8]) -> Vec<Vec<Part>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut timed = false;
    for word in line.split(|&b| is_blank(b)) {
        let begin = at;
        at += word.len() + 1;
        // None of these is in what programs put before lines; they are in JSON and in tables.
        if word.iter().any(|b| b"\"{=".contains(b)) || word.ends_with(b",") {
            break;
        }
        // After a time: a half of the day, or the stream and its tag (CRI, podman's k8s-file).
        let more = matches!(word, b"AM" | b"PM" | b"stdout" | b"stderr" | b"F");
        timed = is_time(word) || begin == 0 && is_number(word) || timed && more;
        if !(timed || word.ends_with(b":") || word.ends_with(b"]") || matches!(word, b">" | b"|")) {
            continue;
        }
        let mut prefix = parts(&line[..begin + word.len()]);
        prefix.push(Part::Blank);
        if prefix.len() > PARTS {
            break;
        }
        found.push(prefix);
    }
    found
}

/// The text before iostat's header, as a prefix.
fn before_header(line: &[u8]) -> Option<Prefix> {
    let at = memchr::memmem::find(line, b"Device").filter(|&at| at > 0)?;
    let column = |word: &[u8]| matches!(word, b"r/s" | b"tps" | b"rrqm/s");
    let mut words = line[at..].split(|&b| is_blank(b));
    let prefix = parts(&line[..at]);
    (words.any(column) && prefix.len() <= PARTS && prefix != [Part::Blank])
        .then_some(Prefix(prefix))
}

fn digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// Whether a word has a time of day in it.
fn is_time(word: &[u8]) -> bool {
    let fields: Vec<&[u8]> = word.splitn(4, |&b| b == b':').collect();
    let [first, second, third, ..] = fields[..] else {
        return false;
    };
    let begins = |field: &[u8]| digits(&field[..field.len().min(2)]);
    digits(&first[first.len().saturating_sub(2)..]) && begins(second) && begins(third)
}

/// Whether a word is seconds, since 1970 or, with three decimals at least, since the begin.
fn is_number(word: &[u8]) -> bool {
    match word.iter().position(|&b| b == b'.') {
        Some(point) => {
            let exact = point > 8 || word.len() - point > 3;
            exact && digits(&word[..point]) && digits(&word[point + 1..])
        }
        None => digits(word) && (9..=13).contains(&word.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(before: &[&str], lines: &[&str]) -> String {
        let both = lines.iter().zip(before.iter().cycle());
        let text: String = both
            .map(|(line, before)| format!("{before}{line}\n"))
            .collect();
        plain(&text)
    }

    const REPORT: [&str; 6] = [
        "avg-cpu:  %user   %nice",
        "           1.00    0.00",
        "",
        "Device            r/s     rkB/s",
        " all             1.00      4.00",
        "sda              1.00      4.00",
    ];

    #[test]
    fn what_stands_before_each_line_is_stripped() {
        let whole = REPORT.join("\n") + "\n";
        for before in [
            &["2024-06-19T05:02:00.123456789Z ", "2024-06-19T05:02:01.1Z "][..],
            &[
                "Jun  9 05:02:00 box iostat[4711]: ",
                "Jun 19 05:02:01 box iostat[4711]: ",
            ],
            &["Nov 26 10:00:00 ", "Nov 26 10:00:01 "],
            &["[  12.345678] ", "[ 112.345678] "],
            &["1718773354.5 ", "1718773355.25 "],
            &["web-1  | "],
            &["[pod/db-0/iostat] 2024-06-19T05:02:00.1Z "],
            &["> > "],
            &["05:02:00 AM "],
            &["dbhost iostat "],
            &["9:", "10:"],
            &["db1.log:9:", "db1.log:10:"],
            &["+"],
            &["\u{1b}[1m05:02:00\u{1b}[0m "],
            &[""],
        ] {
            assert_eq!(stripped(before, &REPORT), whole, "{before:?}");
        }
    }

    #[test]
    fn the_text_of_the_log_itself_is_none() {
        for lines in [
            &["1000, 7931, 0, 0, 0", "2000, 8069, 0, 0, 0"][..],
            &["\"8960\" : 2,", "\"708\" : 60,"],
            &["sda  1.00 2.00", "sda  3.00 4.00"],
            &["1.00 25.2k sda", "3.00 4.00 sda"],
            &["sda1 1.00 2.00", "sda2 3.00 4.00"],
            &["", "hello"],
        ] {
            assert_eq!(stripped(&[""], lines), lines.join("\n") + "\n");
        }
    }

    #[test]
    fn a_line_without_it_stays_and_one_cut_short_is_empty() {
        let text = "box: a\nbox:\nbox: b\n-- reboot --\nbox: c\n";
        assert_eq!(plain(text), "a\n\nb\n-- reboot --\nc\n");
    }
}
