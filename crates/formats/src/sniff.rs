//! Detects the type of a text from its content: names of files promise nothing.

use crate::Unfit;
use crate::fio::Output;
use crate::fio::logs::{HistogramLog, Log};
use crate::foreign::Foreign;
use crate::iostat::{self, Notes};
use crate::prefix::plain;

/// Kinds of texts that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `iostat -x`, as text or JSON.
    Iostat,
    /// `sadf -j -- -d`.
    Sadf,
    /// A bw, iops or latency log of fio; which of them only its name tells.
    FioLog,
    /// A histogram log of fio.
    FioHistogram,
    /// fio's JSON.
    FioJson,
    /// A job file of fio.
    FioJobs,
    /// Notes of a script that ran iostat, fio and rm.
    Notes,
    /// fio's normal output: it describes the job beside an iostat log.
    FioText,
    /// A record of ours.
    Record,
    /// Something compressed with zstd or gzip: decompress it and look again.
    Compressed,
    /// Another tool's output.
    Foreign(Foreign),
    /// Nothing that is known.
    Unknown,
}

impl std::fmt::Display for Kind {
    /// Such as `fio's JSON`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Iostat => "an iostat log",
            Kind::Sadf => "sadf's JSON",
            Kind::FioLog => "a log of fio",
            Kind::FioHistogram => "a histogram log of fio",
            Kind::FioJson => "fio's JSON",
            Kind::FioJobs => "a job file of fio",
            Kind::Notes => "notes of a script that ran iostat, fio and rm",
            Kind::FioText => "fio's normal output",
            Kind::Record => "a record of trimbench",
            Kind::Compressed => "something compressed",
            Kind::Foreign(tool) => return tool.fmt(f),
            Kind::Unknown => "nothing that is known",
        })
    }
}

/// How many bytes of a text's begin [`sniff`] should see, if it has so many.
pub const ENOUGH: usize = 256 << 10;

/// Whether a text is compressed with zstd or gzip.
fn is_compressed(begin: &[u8]) -> bool {
    begin.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || begin.starts_with(&[0x1f, 0x8b])
}

/// The type of a text, from its begin (all of it, or [`ENOUGH`]).
pub fn sniff(begin: &[u8]) -> Kind {
    if is_compressed(begin) {
        return Kind::Compressed;
    }
    let begin = &begin[..begin.len().min(ENOUGH)];
    let raw = String::from_utf8_lossy(begin);
    let text = plain(&raw);
    let first = text.trim_start().lines().next().unwrap_or_default();
    if first.starts_with('{') && first.contains("\"line\"") && first.contains("trimbench.run/") {
        return Kind::Record;
    }
    let histogram = HistogramLog::read(begin).unwrap_or_default();
    if !histogram.rows.is_empty() && histogram.skipped.lines <= 1 {
        return Kind::FioHistogram;
    }
    let log = Log::read(begin).unwrap_or_default();
    if !log.rows.is_empty() && log.skipped.lines <= 1 {
        return Kind::FioLog;
    }
    match iostat::Log::read(begin) {
        Ok(log) if log.together => return Kind::Sadf,
        Ok(_) | Err(Unfit::Broken(_)) => return Kind::Iostat,
        Err(Unfit::Other(_)) => {}
    }
    if Output::parse(&text).is_ok() || text.contains("\"fio version\"") {
        return Kind::FioJson;
    }
    if Notes::is_one(&text) {
        return Kind::Notes;
    }
    if Notes::parse(&text).job.is_some() || text.contains(": (groupid=") {
        return Kind::FioText;
    }
    if let Some(tool) = Foreign::of(begin, &raw).or_else(|| Foreign::of(begin, &text)) {
        return Kind::Foreign(tool);
    }
    // Other INI files set no I/O.
    let options = ["rw", "ioengine", "filename", "directory", "bs", "size"];
    let sets_io = |line: &str| {
        line.split_once('=')
            .is_some_and(|(name, _)| options.contains(&name.trim()))
    };
    let has_sections = text.lines().any(|line| line.trim_start().starts_with('['));
    match has_sections && text.lines().any(sets_io) {
        true => Kind::FioJobs,
        false => Kind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_content() {
        let histogram = "100, 0, 4096, ".to_owned() + &vec!["0"; 58].join(", ") + "\n";
        let iostat = "Linux 6.5.0 (box) \t06/19/2024 \t_x86_64_\t(24 CPU)\n\n\
                      Device r/s rkB/s\nsda 1.00 4.00\n\n";
        let json = "{\"sysstat\": {\n\"disk\": [\n{\"disk_device\": \"sda\", \"r/s\": 1.00}\n]\n";
        for (text, kind) in [
            ("100, 38300, 0, 0, 0\n200, 383", Kind::FioLog),
            (histogram.as_str(), Kind::FioHistogram),
            (iostat, Kind::Iostat),
            (json, Kind::Iostat),
            (
                "{\"sysstat\": {\"hosts\": [{\"nodename\": \"h\", \"statistics\": [\n\
                 {\"timestamp\": {\"date\": \"2026-11-26\", \"time\": \"10:02:03\", \"utc\": 1, \"interval\": 1},\n\
                 \"disk\": [\n{\"disk-device\": \"vda\", \"tps\": 10.00, \"rkB\": 40.00, \"wkB\": 0.00, \"dkB\": 0.00, \
                 \"areq-sz\": 4.00, \"aqu-sz\": 0.01, \"await\": 1.00, \"util\": 1.00}\n]}]}]}}\n",
                Kind::Sadf,
            ),
            ("Device tps kB_read/s\nsda 1.0 2.0\n", Kind::Iostat),
            ("Device tps kB/s await\nsda 1.0 2.0 3.0\n", Kind::Iostat),
            (
                "note: x\n{\n \"fio version\" : \"fio-3.33\",\n \"jobs\" : [",
                Kind::FioJson,
            ),
            ("; jobs\n[global]\nrw=read\n[a]\n", Kind::FioJobs),
            (
                "Remove /data/f at Wed Jun 19 05:02:34 AM UTC 2024\n",
                Kind::Notes,
            ),
            (
                "{\"line\":\"head\",\"schema\":\"trimbench.run/1\"}\n",
                Kind::Record,
            ),
            ("[package]\nname=x\n", Kind::Unknown),
            ("", Kind::Unknown),
            ("hello\n", Kind::Unknown),
        ] {
            assert_eq!(sniff(text.as_bytes()), kind, "{text}");
            // In the log of a container: docker's json-file, and CRI's.
            let time = "2024-06-19T05:02:00.5Z";
            let docker = |line: &str| serde_json::json!({"log": line, "time": time}).to_string();
            let cri = |line: &str| format!("{time} stdout F {line}");
            for wrap in [&docker as &dyn Fn(&str) -> String, &cri] {
                // A single line shows no prefix.
                if text.lines().count() < 2 {
                    continue;
                }
                let lines = text.lines().map(|line| wrap(line) + "\n");
                assert_eq!(sniff(lines.collect::<String>().as_bytes()), kind, "{text}");
            }
        }
        assert_eq!(sniff(&[0x28, 0xb5, 0x2f, 0xfd, 0]), Kind::Compressed);
        assert_eq!(sniff(&[0x1f, 0x8b, 8]), Kind::Compressed);
    }
}
