//! `iostat -x -o JSON`, in whatever way it is laid out: as iostat prints it, indented
//! again (`jq .`), sorted (`jq -S`), in one line (`jq -c`), or only its reports
//! (`jq .sysstat.hosts[0].statistics`). One that was cut off is read as far as it goes.
//!
//! `sadf -j -- -d` prints much the same, but counts all operations of a device in one figure. So
//! their bytes tell how many were reads: those of the seconds in which a device only read.

use std::collections::HashMap;
use std::io::{self, BufRead};

use super::builder::{Builder, MOST_COLUMNS};
use super::columns::{Row, field, figure, known, sharpen};
use super::stamp::{Stamp, date};
use crate::lines::Lines;

/// Longest name or value that is kept, in bytes.
const LONGEST: usize = 256;

/// Objects and lists in each other; iostat has seven.
const DEEPEST: usize = 64;

/// Words of which one is near the begin of any of iostat's JSON.
const WORDS: &str =
    "\"sysstat\" \"hosts\" \"statistics\" \"avg-cpu\" \"disk\" \"disk_device\" \"disk-device\"";

/// Whether a text that begins so is one.
pub(super) fn begins(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let begin = &text[..text.len().min(512)];
    let has = |word: &str| memchr::memmem::find(begin, word.as_bytes()).is_some();
    matches!(begin.first(), Some(b'{' | b'[')) && WORDS.split(' ').any(has)
}

/// Reads all that is left. A report that isn't whole at its end is left open, and cut off.
pub(super) fn read<R: BufRead>(lines: &mut Lines<R>, builder: &mut Builder) -> io::Result<()> {
    let mut reader = Reader {
        number: lines.number() + 1,
        lines,
        chunk: Vec::new(),
        at: 0,
        builder,
        frames: Vec::new(),
        token: Vec::new(),
        key: Vec::new(),
        named: false,
        foreign: 0,
        date: String::new(),
        time: String::new(),
        sizes: HashMap::new(),
    };
    while let Some(token) = reader.token()? {
        reader.accept(token);
    }
    builder.finish(false);
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Token {
    /// Of a list, or else an object.
    Open(bool),
    Close(bool),
    Colon,
    Text,
    /// A number or a word.
    Bare,
}

/// An object or a list that isn't closed yet.
#[derive(Default)]
struct Frame {
    list: bool,
    /// Whether a list of devices was in it: it is a report.
    report: bool,
    /// A device's figures in an object.
    device: Device,
}

#[derive(Default)]
struct Device {
    name: Option<Vec<u8>>,
    row: Row,
    /// All operations per second together (sadf).
    together: Option<f64>,
    coarse: bool,
    discards: bool,
    damaged: bool,
}

struct Reader<'a, R> {
    lines: &'a mut Lines<R>,
    /// A part of the text, and the place of its next byte.
    chunk: Vec<u8>,
    at: usize,
    /// Number of the line.
    number: u64,
    builder: &'a mut Builder,
    frames: Vec<Frame>,
    /// The content of the last text, number or word.
    token: Vec<u8>,
    /// The name of the value that comes next, and whether a colon followed it.
    key: Vec<u8>,
    named: bool,
    /// The last line that was reported as foreign.
    foreign: u64,
    /// sadf's date and time of a report, which are two.
    date: String,
    time: String,
    /// The mean size of each device's reads, writes and discards, from sadf's seconds in which it
    /// did nothing else.
    sizes: HashMap<Vec<u8>, [f64; 3]>,
}

impl<R: BufRead> Reader<'_, R> {
    /// The next byte, which stays; `None` at the end.
    fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.at == self.chunk.len() {
            self.chunk.clear();
            self.chunk.extend_from_slice(self.lines.chunk()?);
            self.at = 0;
        }
        Ok(self.chunk.get(self.at).copied())
    }

    fn pass(&mut self, byte: u8) {
        self.at += 1;
        self.number += u64::from(byte == b'\n');
    }

    fn keep(&mut self, byte: u8) {
        if self.token.len() < LONGEST {
            self.token.push(byte);
        }
    }

    /// The next token; `None` at the end, and of one that is cut off.
    fn token(&mut self) -> io::Result<Option<Token>> {
        self.token.clear();
        while let Some(byte) = self.peek()? {
            if !matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b':' | b',')
                && !byte.is_ascii_whitespace()
            {
                return Ok(self.bare()?.then_some(Token::Bare));
            }
            self.pass(byte);
            return Ok(Some(match byte {
                b'"' => return Ok(self.text()?.then_some(Token::Text)),
                b'{' | b'[' => Token::Open(byte == b'['),
                b'}' | b']' => Token::Close(byte == b']'),
                b':' => Token::Colon,
                _ => continue,
            }));
        }
        Ok(None)
    }

    /// Reads a text up to its end; false if it has none.
    fn text(&mut self) -> io::Result<bool> {
        let mut escaped = false;
        while let Some(byte) = self.peek()? {
            self.pass(byte);
            match byte {
                b'"' if !escaped => return Ok(true),
                b'\\' if !escaped => escaped = true,
                _ => {
                    self.keep(byte);
                    escaped = false;
                }
            }
        }
        Ok(false)
    }

    /// Reads a number or a word up to its end. In an object a comma between digits is of the number,
    /// as some locales have it.
    fn bare(&mut self) -> io::Result<bool> {
        let in_object = self.in_object();
        while let Some(mut byte) = self.peek()? {
            if byte == b',' && in_object {
                self.pass(byte);
                match self.peek()? {
                    Some(next) if next.is_ascii_digit() => {
                        self.keep(b'.');
                        byte = next;
                    }
                    next => return Ok(next.is_some()),
                }
            }
            if matches!(byte, b',' | b'}' | b']' | b'"' | b'{' | b'[' | b':')
                || byte.is_ascii_whitespace()
            {
                return Ok(true);
            }
            self.pass(byte);
            self.keep(byte);
        }
        Ok(false)
    }

    fn in_object(&self) -> bool {
        self.frames.last().is_some_and(|frame| !frame.list)
    }

    fn accept(&mut self, token: Token) {
        match token {
            Token::Open(list) => self.open(list),
            Token::Close(list) => self.close(list),
            Token::Colon => self.named = self.in_object(),
            Token::Text | Token::Bare if self.named => self.value(),
            Token::Text if self.in_object() => {
                self.key.clone_from(&self.token);
                if self.key == b"sysstat" && self.frames.len() > 1 {
                    // Another text begins, and the one before was cut off.
                    self.builder.finish(false);
                    self.frames.drain(..self.frames.len() - 1);
                }
            }
            Token::Text => {}
            Token::Bare if self.foreign == self.number => {}
            Token::Bare => {
                self.foreign = self.number;
                self.builder.log.foreign.add(self.number);
            }
        }
    }

    fn open(&mut self, list: bool) {
        if self.frames.len() == DEEPEST {
            self.frames.clear();
        }
        if let Some(report) = self.frames.last_mut()
            && list
            && self.named
            && self.key == b"disk"
        {
            report.report = true;
            self.builder.header(self.number, true);
        }
        self.frames.push(Frame {
            list,
            ..Frame::default()
        });
        self.named = false;
        self.key.clear();
    }

    fn close(&mut self, list: bool) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
        self.named = false;
        if frame.list != list {
            // Something is missing, and what was being read with it.
            if self.builder.open {
                self.builder.damage(self.number);
            }
            if self.frames.last().is_some_and(|above| above.list == list) {
                self.close(list);
            }
            return;
        }
        self.device(frame.device);
        if frame.report {
            self.builder.finish(true);
        }
    }

    /// A value of the object's key is over.
    fn value(&mut self) {
        self.named = false;
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let value = String::from_utf8_lossy(&self.token);
        let banner = &mut self.builder.log.banner;
        match self.key.as_slice() {
            b"disk_device" | b"disk-device" => frame.device.name = Some(self.token.clone()),
            b"timestamp" => self.builder.stamp(Stamp::parse(&self.token)),
            b"time" => {
                self.time = format!("{} {value}", self.date);
                self.builder.stamp(Stamp::parse(self.time.as_bytes()));
            }
            b"utc" if self.token == b"1" => {
                let time = format!("{}Z", self.time);
                self.builder.stamp(Stamp::parse(time.as_bytes()));
            }
            b"nodename" => {
                if banner.host.is_empty() {
                    banner.host = value.into_owned();
                }
                self.builder.run();
            }
            b"release" if banner.kernel.is_empty() => banner.kernel = value.into_owned(),
            b"number-of-cpus" => banner.cpus = value.parse().unwrap_or(0),
            b"date" => {
                banner.day = banner.day.or(date(&value, false));
                self.date = value.into_owned();
            }
            // With units (-h) figures are texts.
            key => frame.device.figure(key, &self.token),
        }
    }

    /// Ends an object, which may have held a device.
    fn device(&mut self, mut device: Device) {
        let Some(name) = device.name.filter(|_| self.builder.open) else {
            return;
        };
        if device.damaged {
            self.builder.damage(self.number);
            return;
        }
        if let Some(together) = device.together {
            self.builder.log.together = true;
            if self.sizes.len() > MOST_COLUMNS {
                self.sizes.clear();
            }
            let sizes = self.sizes.entry(name.clone()).or_default();
            split(&mut device.row, together, sizes);
        }
        if device.coarse {
            sharpen(&mut device.row);
        }
        self.builder.log.discards |= device.discards;
        let group = name.starts_with(b" ");
        let name = name.trim_ascii();
        *self.builder.row(name, usize::MAX, group, self.number) = device.row;
    }
}

impl Device {
    fn figure(&mut self, key: &[u8], token: &[u8]) {
        if key == b"tps" {
            self.together = value(token, 1.0);
        }
        let Some((place, unit)) = std::str::from_utf8(key).ok().and_then(known) else {
            return;
        };
        match value(token, unit) {
            Some(value) => self.row[place] = value,
            None => self.damaged = true,
        }
        self.coarse |= unit > 1024.0;
        self.discards |= key.starts_with(b"d/s") || key == b"dkB";
    }
}

/// Splits all operations into reads, writes and discards by their bytes. Their wait is a mean of all
/// three, so it is kept where there is one of them.
fn split(row: &mut Row, together: f64, sizes: &mut [f64; 3]) {
    let moved: Vec<usize> = (0..3)
        .filter(|&kind| row[field::BYTES[kind]] > 0.0)
        .collect();
    let wait_ms = std::mem::take(&mut row[field::AWAIT_ALL]);
    if let [kind] = moved[..] {
        row[field::COUNT[kind]] = together;
        row[field::AWAIT[kind]] = wait_ms;
        sizes[kind] = row[field::BYTES[kind]] / together.max(1e-9);
        return;
    }
    let mut rest = together;
    for kind in moved {
        let size = match sizes[kind] {
            0.0 => DEFAULT_SIZES[kind],
            known => known,
        };
        let count = (row[field::BYTES[kind]] / size).min(rest);
        row[field::COUNT[kind]] = if kind == 2 { rest } else { count };
        rest -= count;
    }
}

/// Mean sizes in bytes where nothing tells them.
const DEFAULT_SIZES: [f64; 3] = [4096.0, 16384.0, 1048576.0];

/// A figure, as JSON or iostat prints it: tools that lay JSON out again write `1e-05`, too.
fn value(token: &[u8], unit: f64) -> Option<f64> {
    figure(token, unit).or_else(|| {
        let value: f64 = std::str::from_utf8(token).ok()?.parse().ok()?;
        (value.is_finite() && value >= 0.0).then_some(value * unit)
    })
}

#[cfg(test)]
mod tests {
    use crate::iostat::Log;

    const TEXT: &str = r#"{"sysstat": {
	"hosts": [
		{
			"nodename": "box",
			"release": "6.5.0",
			"number-of-cpus": 9,
			"date": "06/01/20",
			"statistics": [
				{
					"timestamp": "06/01/20 10:00:01",
					"avg-cpu":  {"user": 1.49, "idle": 56.00},
					"disk": [
						{"disk_device": "sda", "r/s": 6.00, "d/s": 2.00, "rMB/s": 0.02, "dMB/s": 0.00, "dareq-sz": 4.00, "aqu-sz": 1.5},
						{"disk_device": "sdb", "r/s": 0.00, "d/s": 0.00}
					]
				},
				{
					"timestamp": "06/01/20 10:00:02",
					"disk": [
						{"disk_device": "sda", "r/s": 7.00, "d/s": 0.00},
						{"disk_device": "sdb", "r/s": 0.00, "d/s": 0.00}
					]
				}
			]
		}
	]
}}
"#;

    fn read(text: &str) -> Log {
        Log::read(text.as_bytes()).unwrap()
    }

    /// The text with its values laid out differently.
    fn laid_out(how: impl Fn(&serde_json::Value) -> String) -> String {
        how(&serde_json::from_str(TEXT).unwrap())
    }

    #[test]
    fn is_read_like_text() {
        let log = read(TEXT);
        assert_eq!(log.reports, 2);
        assert_eq!((log.banner.host.as_str(), log.banner.cpus), ("box", 9));
        assert_eq!(log.columns[0].at(0).bytes[2], 8192.0);
        assert_eq!(log.columns[0].at(1).count[0], 7.0);
        assert_eq!(log.steps.median_s(), Some(1.0));
        assert_eq!(log.foreign.lines, 0);
        assert!(log.discards && log.timed);
    }

    #[test]
    fn the_layout_changes_nothing() {
        let plain = read(TEXT);
        let reports =
            |value: &serde_json::Value| value["sysstat"]["hosts"][0]["statistics"].clone();
        // serde_json sorts names, so times come after their devices, as of `jq -S`.
        let pretty = laid_out(|v| serde_json::to_string_pretty(v).unwrap());
        let line = laid_out(|v| v.to_string());
        for text in [
            &pretty,
            &line,
            &pretty.replace('\n', "\r\n"),
            &TEXT.replace("0,", "0 ,").replace(": ", " :\n\n "),
            &TEXT.replace(".00", ",00").replace("1.5", "1,5"),
            &format!("a script ran iostat\n{line}"),
        ] {
            let log = read(text);
            assert_eq!(log.rows, plain.rows, "{text}");
            assert_eq!(log.columns, plain.columns, "{text}");
            assert_eq!(log.banner, plain.banner, "{text}");
        }
        let list = laid_out(|v| reports(v).to_string());
        let one_each = laid_out(|v| {
            let all = reports(v);
            let lines = all.as_array().unwrap().iter().map(|r| r.to_string() + "\n");
            lines.collect()
        });
        for text in [list, one_each] {
            assert_eq!(read(&text).columns, plain.columns, "{text}");
        }
    }

    #[test]
    fn sadf_counts_all_operations_in_one() {
        let disk = |tps: u32, read: u32, written: u32, discarded: u32| {
            format!(
                "{{\"timestamp\": {{\"date\": \"2024-06-19\", \"time\": \"05:02:3{}\", \"utc\": 1}}, \"disk\": \
                 [{{\"disk-device\": \"sda\", \"tps\": {tps}.00, \"rd_sec\": 7.00, \"rkB\": {read}.00, \
                 \"wkB\": {written}.00, \"dkB\": {discarded}.00, \"areq-sz\": 1.00, \"await\": 0.50}}]}}",
                tps % 10
            )
        };
        let reports = [
            disk(1000, 8000, 0, 0),
            disk(501, 4000, 0, 2048),
            disk(2, 0, 32, 0),
        ];
        let text = format!(
            "{{\"sysstat\": {{\"hosts\": [{{\"nodename\": \"b\", \"statistics\": [{}]}}]}}}}",
            reports.join(",\n")
        );
        let log = read(&text);
        let sda = |row| log.columns[0].at(row);
        assert_eq!(sda(0).count, [1000.0, 0.0, 0.0]);
        assert_eq!(sda(0).wait_ms, [0.5, 0.0, 0.0]);
        // Reads of 8 KiB, as before; the rest was discarded.
        assert_eq!(sda(1).count, [500.0, 0.0, 1.0]);
        assert_eq!(sda(1).wait_ms, [0.0; 3]);
        assert_eq!(sda(2).count, [0.0, 2.0, 0.0]);
        assert!(log.discards && log.together);
        assert_eq!(log.rows[0].printed_s.unwrap(), 1_718_773_350.0);
        assert_eq!(log.dated, Some(true));
    }

    #[test]
    fn one_that_was_cut_off_is_kept_as_far_as_it_goes() {
        let cut = TEXT.find("7.00").unwrap();
        let log = read(&TEXT[..cut]);
        assert_eq!((log.reports, log.cut_off), (1, Some(19)));
        // Another run's follows.
        let log = read(&(TEXT[..cut].to_owned() + "\n" + TEXT));
        assert_eq!(log.reports, 3);
        let firsts: Vec<bool> = log.rows.iter().map(|row| row.first).collect();
        assert_eq!(firsts, [true, true, false]);
    }

    #[test]
    fn what_is_damaged_is_left_out_with_its_report() {
        let log = read(&TEXT.replace("7.00", "7x00"));
        assert_eq!((log.reports, log.rows.len()), (2, 1));
        assert_eq!(log.damaged_lines.first, 20);
        let log = read(&TEXT.replacen("]\n", "\n", 1));
        assert_eq!(log.rows.len(), 1, "{log:?}");
    }
}
