//! Reading iostat's text, report by report.

use std::io::{self, BufRead};

use super::builder::Builder;
use super::columns::{Columns, Read, Row, indent_of};
use super::json;
use super::log::{Banner, Log};
use super::stamp::{Stamp, date};
use crate::Unfit;
use crate::lines::{Lines, TextLine};

impl Log {
    /// Reads the output of `iostat -x`, as text or JSON. Lines that aren't
    /// iostat's are counted and left out; so is a last report that was cut off.
    ///
    /// # Errors
    /// If the text can't be read, or has no report of `iostat -x` in it.
    pub fn read(from: impl BufRead) -> Result<Log, Unfit> {
        let read = Log::scan(from);
        read.map_err(|e| Unfit::Broken(format!("can't read the iostat log: {e}")))?
    }

    fn scan(from: impl BufRead) -> io::Result<Result<Log, Unfit>> {
        let mut lines = Lines::new(from);
        let mut builder = Builder::default();
        let mut state = State::default();
        let mut ended = true;
        loop {
            if state.header.is_empty() && json::begins(lines.peek()?) {
                json::read(&mut lines, &mut builder)?;
                break;
            }
            let Some(line) = lines.next()? else { break };
            ended = line.ended;
            builder.beside(line.prefix);
            state.line(&mut builder, line);
        }
        let whole = !state.cut && (!state.in_rows || ended && !builder.short());
        builder.finish(whole);
        let mut log = builder.log;
        if !log.columns.is_empty() {
            log.headerless = state.header.is_empty() && state.columns.is_some();
            log.forget_groups();
            return Ok(Ok(log));
        }
        let lines = lines.number();
        let why = match (state.basic, log.cut_off) {
            (Some((line, true)), _) => format!(
                "line {line}: reads, writes and discards are added up in these reports; record without -s"
            ),
            (Some((line, false)), _) => {
                format!("line {line}: these are basic reports; record with iostat -x (and -y -t)")
            }
            (None, Some(line)) => {
                format!("the only report, which begins in line {line}, is cut off")
            }
            (None, None) => {
                let why = format!("not an iostat log: none of its {lines} lines begins a report");
                return Ok(Err(Unfit::Other(why)));
            }
        };
        Ok(Err(Unfit::Broken(why)))
    }
}

#[derive(Debug, Default)]
struct State {
    /// The header that is in force, and its bytes.
    columns: Option<Columns>,
    header: Vec<u8>,
    in_rows: bool,
    /// The next line has the processors' figures.
    cpu: bool,
    /// How many rows the part of the report has by now.
    at: usize,
    /// The first header that isn't of `-x`, or is of `-s`, too.
    basic: Option<(u64, bool)>,
    /// Whether the text ended within a row.
    cut: bool,
}

impl State {
    fn line(&mut self, builder: &mut Builder, line: TextLine<'_>) {
        let (bytes, number) = (line.bytes, line.number);
        if self.in_rows {
            self.in_rows = !bytes.is_empty();
            if !self.in_rows || bytes != self.header && self.row(builder, line) {
                return;
            }
        }
        if bytes.trim_ascii().is_empty() || std::mem::take(&mut self.cpu) {
            return;
        }
        if self.columns.is_none() {
            // A log without a header begins with a row (`grep sda`).
            self.columns = Columns::of_row(bytes);
            if self.columns.is_some() {
                self.head(builder, number);
                if self.row(builder, line) {
                    return;
                }
            }
        }
        if self.is_row(bytes) {
            (self.in_rows, self.at) = (true, 0);
            self.row(builder, line);
        } else if bytes == self.header {
            self.head(builder, number);
        } else if let Some(columns) = Columns::of_header(bytes) {
            self.header = bytes.to_vec();
            self.columns = Some(columns);
            self.head(builder, number);
        } else if bytes.starts_with(b"avg-cpu") {
            builder.finish(true);
            self.cpu = true;
        } else if let Some(banner) = banner(bytes) {
            builder.banner(banner);
        } else if let Some(stamp) = Stamp::parse(bytes) {
            builder.report_of(stamp);
        } else {
            builder.log.foreign.add(number);
        }
    }

    /// Whether a line after a blank one is the row of a report whose header was left out
    /// (`grep -v Device`).
    fn is_row(&self, line: &[u8]) -> bool {
        let columns = self.columns.as_ref().filter(|c| c.begins_report);
        let read = columns.map(|columns| columns.read(line, &mut [0.0; 14]));
        matches!(read, Some(Read::Row(name)) if name[0].is_ascii_alphabetic())
    }

    fn head(&mut self, builder: &mut Builder, number: u64) {
        let Some(columns) = &self.columns else { return };
        if !columns.extended() || columns.short {
            self.basic.get_or_insert((number, columns.short));
            self.in_rows = false;
            return;
        }
        builder.header(number, columns.begins_report);
        builder.log.discards |= columns.discards;
        self.in_rows = builder.open;
        self.at = 0;
    }

    /// Takes a line below a header; false if it isn't a row.
    fn row(&mut self, builder: &mut Builder, line: TextLine<'_>) -> bool {
        let Some(columns) = &self.columns else {
            return false;
        };
        let mut row: Row = [0.0; 14];
        match columns.read(line.bytes, &mut row) {
            Read::Row(name) if line.ended => {
                let group = columns.is_group(line.bytes, indent_of(&self.header));
                let known = builder.row(name, self.at, group, line.number);
                for (known, new) in known.iter_mut().zip(row) {
                    // A part of a report brings some of the figures.
                    *known = known.max(new);
                }
            }
            Read::Row(name) | Read::Damaged(name) if !line.ended && !name.is_empty() => {
                self.cut = true;
                return true;
            }
            Read::Damaged(name) if builder.knows(name) => builder.damage(line.number),
            _ => return false,
        }
        self.at += 1;
        true
    }
}

/// The first line, e.g. `Linux 6.5.0-35-generic (socket2)  06/19/2024  _x86_64_  (24 CPU)`.
fn banner(line: &[u8]) -> Option<Banner> {
    let text = std::str::from_utf8(line).ok()?;
    let tokens: Vec<&str> = text.split_ascii_whitespace().collect();
    let host = tokens.get(2)?.strip_prefix('(')?.strip_suffix(')')?;
    let cpus = text.trim_end().strip_suffix(')')?;
    let cpus = cpus.rsplit('(').next()?.split(' ').next()?;
    Some(Banner {
        kernel: tokens[1].to_owned(),
        host: host.to_owned(),
        cpus: cpus.parse().ok()?,
        day: tokens[3..].iter().find_map(|token| date(token, false)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Log {
        Log::read(text.as_bytes()).unwrap()
    }

    const HEADER: &str = "Device            r/s     rkB/s     d/s     dkB/s d_await\n";

    fn report(reads: u32) -> String {
        format!("{HEADER}sda   {reads}.00  4.00 1.00 2.00 3.00\nsdb 0.00 0.00 0.00 0.00 0.00\n\n")
    }

    #[test]
    fn reports_follow_each_other() {
        let text = "Linux 6.5.0 (box) \t06/19/2024 \t_x86_64_\t(24 CPU)\n\n".to_owned()
            + "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n\
               1.47    0.00    4.83    0.13    0.00   93.57\n\n"
            + &report(10)
            + &report(20);
        let log = read(&text);
        assert_eq!(log.reports, 2);
        assert_eq!((log.banner.host.as_str(), log.banner.cpus), ("box", 24));
        assert_eq!(log.columns[0].at(1).count[0], 20.0);
        assert!(log.columns[1].is_idle());
        assert_eq!(log.foreign.lines, 0, "{:?}", log.foreign);
        assert!(log.discards && !log.timed);
    }

    #[test]
    fn what_is_cut_off_is_left_out() {
        let text = report(10) + &report(20);
        for cut in [12, 20, 35] {
            let log = read(&text[..text.len() - cut]);
            assert_eq!((log.reports, log.cut_off), (1, Some(5)), "{cut}");
        }
        let log = read(&text[..text.len() - 1]);
        assert_eq!(
            (log.reports, log.cut_off),
            (2, None),
            "only the blank line is missing"
        );
    }

    #[test]
    fn other_lines_are_named() {
        let text = report(10) + "fio: something\n" + &report(20).replace("20.00 ", "20.0x");
        let log = read(&text);
        assert_eq!((log.foreign.lines, log.foreign.first), (1, 5));
        assert_eq!((log.damaged_lines.first, log.rows.len()), (7, 1));
        let within = report(10).replace("\nsdb", "\nread 7 blocks\nsdb");
        let log = read(&(within + &report(20)));
        assert_eq!((log.reports, log.foreign.first, log.rows.len()), (2, 3, 2));
    }

    #[test]
    fn reports_without_their_headers_begin_at_their_times_and_processors() {
        let rows = |names: &str| -> String {
            let row = |name| format!("{name}  7.00  4.00 1.00 2.00 3.00\n");
            names.split(' ').map(row).collect()
        };
        let cpu = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n 1 2 3 4 5 6\n\n";
        let reports = |before: &dyn Fn(u32) -> String| -> String {
            let names = ["sda sdb", "sdb", "sda", "sdc", "sda sdb"];
            let report = |(at, names): (u32, &&str)| before(at) + &rows(names);
            (0..).zip(&names).map(report).collect()
        };
        let stamp = |at: u32| format!("06/19/2024 05:02:{at:02}\n");
        for text in [
            HEADER.to_owned() + &reports(&stamp),
            HEADER.to_owned() + &reports(&|at| format!("\n{}{cpu}", stamp(at))),
            HEADER.to_owned() + &reports(&|at| format!("\n{cpu}").repeat(at.min(1) as usize)),
        ] {
            let log = read(&text);
            assert_eq!(
                (log.reports, log.rows.len(), log.foreign.lines),
                (5, 5, 0),
                "{text}"
            );
            assert_eq!(log.columns[0].at(2).count[0], 7.0, "{text}");
            assert_eq!(log.columns[2].at(3).count[0], 7.0, "{text}");
        }
        let damaged = (HEADER.to_owned() + &reports(&stamp)).replace("sdc  7.00", "sda  7.0x");
        let log = read(&damaged);
        assert_eq!(
            (log.reports, log.rows.len(), log.damaged_lines.lines),
            (5, 4, 1)
        );
    }

    fn times(log: &Log) -> Vec<f64> {
        let rows = log.rows.iter();
        rows.map(|row| row.printed_s.unwrap()).collect()
    }

    #[test]
    fn times_are_kept_over_midnight() {
        let at = |time: &str| format!("{time}\n{}", report(1));
        let text = at("Time: 11:59:59 PM") + &at("Time: 12:00:00 AM") + &at("Time: 12:00:01 AM");
        let log = read(&text);
        assert_eq!(times(&log), [86_399.0, 86_400.0, 86_401.0]);
        assert_eq!(log.dated, None);
        let dated = read(&(at("2024-06-19T05:02:34+0200") + &at("2024-06-19T05:02:35+0200")));
        assert_eq!(times(&dated)[1], 1_718_766_155.0);
        assert_eq!(dated.dated, Some(true));
    }

    #[test]
    fn parts_of_a_pretty_report_are_one() {
        let part = |header: &str, row: &str| format!("{header} Device\n{row} sda\n\n");
        let one = part("r/s rkB/s", "5.00 20.00")
            + &part("d/s dkB/s", "7.00 28.00")
            + &part("f/s aqu-sz", "0.00 1.50");
        let log = read(&(one.clone() + &one));
        assert_eq!(log.reports, 2);
        let sample = log.columns[0].at(1);
        assert_eq!(
            (sample.count[0], sample.count[2], sample.queue),
            (5.0, 7.0, 1.5)
        );
    }

    #[test]
    fn what_is_no_such_log_is_said() {
        let error = |text: &str| {
            let read = Log::read(text.as_bytes());
            read.unwrap_err().to_string()
        };
        assert!(error("hello\nworld\n").contains("2 lines"));
        assert!(error("Device tps kB_read/s\nsda 1.0 2.0\n").contains("-x"));
        assert!(error("Device r/s\nsda 1.").contains("line 1"));
        let short =
            "Device tps kB/s rqm/s await areq-sz aqu-sz %util\nsda 1.0 2.0 0.0 1.0 4.0 0.1 9.0\n";
        assert!(error(short).contains("without -s"), "{}", error(short));
    }
}
