//! `iostat -x -o JSON`, in whatever way it is laid out: as iostat prints it, indented
//! again (`jq .`), sorted (`jq -S`), in one line (`jq -c`), or only its reports
//! (`jq .sysstat.hosts[0].statistics`). One that was cut off is read as far as it goes.
//!
//! `sadf -j -- -d` prints much the same, but counts all operations of a device in one figure. So
//! their bytes tell how many were reads: those of the seconds in which a device only read.

use std::collections::HashMap;
use std::io::{self, BufRead};

use super::builder::Builder;
use super::columns::{Row, field, known, sharpen};
use super::number::{number, unit_bytes};
use super::stamp::{Stamp, date};
use crate::lines::Lines;

/// Longest name or value that is kept, in bytes.
const LONGEST: usize = 256;

/// Objects and lists in each other; iostat has seven.
const DEEPEST: usize = 64;

/// Words of which one is near the begin of any of iostat's JSON.
const WORDS: [&[u8]; 7] = [
    b"\"sysstat\"",
    b"\"hosts\"",
    b"\"statistics\"",
    b"\"avg-cpu\"",
    b"\"disk\"",
    b"\"disk_device\"",
    b"\"disk-device\"",
];

/// Whether a text that begins so is one.
pub(super) fn begins(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let begin = &text[..text.len().min(512)];
    matches!(begin.first(), Some(b'{' | b'['))
        && WORDS
            .iter()
            .any(|word| memchr::memmem::find(begin, word).is_some())
}

/// Reads all that is left. A report that isn't whole at its end is left open, and cut off.
pub(super) fn read<R: BufRead>(lines: &mut Lines<R>, builder: &mut Builder) -> io::Result<()> {
    let mut reader = Reader {
        builder,
        frames: Vec::new(),
        token: Vec::new(),
        mode: Mode::Between,
        number: lines.number() + 1,
        foreign: 0,
        date: String::new(),
        time: String::new(),
        sizes: HashMap::new(),
    };
    loop {
        let chunk = lines.chunk()?;
        if chunk.is_empty() {
            break;
        }
        for &byte in chunk {
            reader.take(byte);
        }
    }
    let open = reader.builder.open;
    if open {
        builder.finish(false);
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Between,
    Text,
    /// After a backslash in a text.
    Escaped,
    Bare,
    /// After a comma behind a number in an object: of the number, in some locales?
    Comma,
}

/// An object or a list that isn't closed yet.
#[derive(Debug, Default)]
struct Frame {
    list: bool,
    /// The name of the value that comes next, or is being read.
    key: Vec<u8>,
    /// Whether a colon followed the name.
    named: bool,
    /// Whether a list of devices was in it: it is a report.
    report: bool,
    /// A device's figures in an object.
    device: Device,
}

#[derive(Debug, Default)]
struct Device {
    name: Option<Vec<u8>>,
    row: Row,
    /// All operations per second together (sadf).
    together: Option<f64>,
    coarse: bool,
    discards: bool,
    damaged: bool,
}

struct Reader<'a> {
    builder: &'a mut Builder,
    frames: Vec<Frame>,
    token: Vec<u8>,
    mode: Mode,
    /// Number of the line.
    number: u64,
    /// The last line that was reported as foreign.
    foreign: u64,
    /// sadf's date and time of a report, which are two.
    date: String,
    time: String,
    /// The mean size of each device's reads, writes and discards, from sadf's seconds in which it
    /// did nothing else.
    sizes: HashMap<Vec<u8>, [f64; 3]>,
}

impl Reader<'_> {
    fn take(&mut self, byte: u8) {
        match self.mode {
            Mode::Text => match byte {
                b'"' => self.text(),
                b'\\' => self.mode = Mode::Escaped,
                _ => self.keep(byte),
            },
            Mode::Escaped => {
                self.keep(byte);
                self.mode = Mode::Text;
            }
            Mode::Comma if byte.is_ascii_digit() => {
                self.keep(b'.');
                self.keep(byte);
                self.mode = Mode::Bare;
            }
            Mode::Comma => {
                self.bare();
                self.between(byte);
            }
            Mode::Bare => match byte {
                b',' if self.frames.last().is_some_and(|frame| !frame.list) => {
                    self.mode = Mode::Comma;
                }
                b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'{' | b'[' | b':' => {
                    self.bare();
                    self.between(byte);
                }
                _ => self.keep(byte),
            },
            Mode::Between => self.between(byte),
        }
        if byte == b'\n' {
            self.number += 1;
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.token.len() < LONGEST {
            self.token.push(byte);
        }
    }

    fn between(&mut self, byte: u8) {
        self.mode = Mode::Between;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b',' => {}
            b'"' => {
                self.token.clear();
                self.mode = Mode::Text;
            }
            b':' => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.named = true;
                }
            }
            b'{' | b'[' => self.open(byte == b'['),
            b'}' | b']' => self.close(byte == b']'),
            _ => {
                self.token.clear();
                self.keep(byte);
                self.mode = Mode::Bare;
            }
        }
    }

    fn open(&mut self, list: bool) {
        if self.frames.len() == DEEPEST {
            self.frames.clear();
        }
        let named = |frame: &&mut Frame| frame.named && frame.key == b"disk";
        if list && let Some(report) = self.frames.last_mut().filter(named) {
            report.report = true;
            self.builder.header(self.number, true);
        }
        self.frames.push(Frame {
            list,
            ..Frame::default()
        });
    }

    fn close(&mut self, list: bool) {
        let Some(frame) = self.frames.pop() else {
            return;
        };
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
        if let Some(above) = self.frames.last_mut() {
            above.named = false;
        }
    }

    /// A text is over: a name, or a value.
    fn text(&mut self) {
        self.mode = Mode::Between;
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        if frame.list {
            return;
        }
        if !frame.named {
            frame.key.clone_from(&self.token);
            if frame.key == b"sysstat" && self.frames.len() > 1 {
                // Another text begins, and the one before was cut off.
                self.builder.finish(false);
                let last = self.frames.pop();
                self.frames.clear();
                self.frames.extend(last);
            }
            return;
        }
        frame.named = false;
        let value = String::from_utf8_lossy(&self.token);
        let log = &mut self.builder.log;
        match frame.key.as_slice() {
            b"disk_device" | b"disk-device" => frame.device.name = Some(self.token.clone()),
            b"timestamp" => {
                if let Some(stamp) = Stamp::parse(&self.token) {
                    self.builder.stamp(stamp);
                }
            }
            b"time" => {
                self.time = format!("{} {value}", self.date);
                if let Some(stamp) = Stamp::parse(self.time.as_bytes()) {
                    self.builder.stamp(stamp);
                }
            }
            b"nodename" => {
                if log.banner.host.is_empty() {
                    log.banner.host = value.into_owned();
                }
                self.builder.run();
            }
            b"release" if log.banner.kernel.is_empty() => log.banner.kernel = value.into_owned(),
            b"date" => {
                log.banner.day = log.banner.day.or(date(&value, false));
                self.date = value.into_owned();
            }
            // With units (-h) figures are texts.
            _ => frame.device.figure(&frame.key, &self.token),
        }
    }

    /// A number or a word is over.
    fn bare(&mut self) {
        self.mode = Mode::Between;
        let Some(frame) = self.frames.last_mut().filter(|f| !f.list && f.named) else {
            if self.foreign != self.number {
                self.foreign = self.number;
                self.builder.log.foreign.add(self.number);
            }
            return;
        };
        frame.named = false;
        if frame.key == b"number-of-cpus" {
            let cpus = std::str::from_utf8(&self.token).ok();
            self.builder.log.banner.cpus = cpus.and_then(|n| n.parse().ok()).unwrap_or(0);
        }
        if frame.key == b"utc" && self.token == b"1" {
            let stamp = Stamp::parse(format!("{}Z", self.time).as_bytes());
            stamp.into_iter().for_each(|s| self.builder.stamp(s));
        }
        frame.device.figure(&frame.key, &self.token);
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
            self.together = value(token).map(|(rate, _)| rate);
        }
        let Some((place, unit)) = std::str::from_utf8(key).ok().and_then(known) else {
            return;
        };
        let Some((value, suffix)) = value(token) else {
            self.damaged = true;
            return;
        };
        let told = suffix.and_then(unit_bytes).filter(|_| unit > 1.0);
        self.row[place] = value * told.unwrap_or(unit);
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
fn value(token: &[u8]) -> Option<(f64, Option<u8>)> {
    if let (Some(value), end) = number(token, 0) {
        return (end == token.len()).then_some(value);
    }
    let text = std::str::from_utf8(token).ok()?;
    let value = text.parse().ok().filter(|value: &f64| value.is_finite());
    Some((value.filter(|&value| value >= 0.0)?, None))
}

#[cfg(test)]
mod tests {
    use crate::iostat::{Log, Options};

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
        Log::read(text.as_bytes(), &Options::default()).unwrap()
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
        assert_eq!(log.rows[0].printed_s.unwrap().0, 1_718_773_350.0);
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
