//! HdrHistogram interval log, format 1.3, for the field's own viewers
//! (HistogramLogAnalyzer, HistogramLogProcessor, hdr-plot).
//!
//! One line per actor and second; the tag is the actor's name, with `.service`
//! for service times and `.control` for the control part. Values are
//! nanoseconds; the maximum is given in milliseconds, as those tools expect.
//! A record without histograms of seconds gives one line per phase.

use std::io::{self, Write};

use record::RunRecord;
use record::{Latency, Part, PhaseHistogram, decode_histogram, encode_histogram};

use crate::seconds::Seconds;
use crate::words;

/// Nanoseconds in a millisecond.
const MS: f64 = 1e6;

/// Writes the log.
///
/// # Errors
/// Those of the sink.
pub fn write(record: &RunRecord, seconds: &Seconds, mut to: impl Write) -> io::Result<()> {
    let head = &record.head;
    writeln!(to, "#[Logged with trimbench {}]", harmless(&head.version))?;
    writeln!(to, "#[Histogram log format version 1.3]")?;
    writeln!(
        to,
        "#[StartTime: {:.3} (seconds since epoch), {}]",
        head.started_unix_s,
        words::utc(head.started_unix_s)
    )?;
    writeln!(
        to,
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
    )?;
    if seconds.is_empty() {
        return phases(record, to);
    }
    for second in seconds.iter() {
        let Some(actor) = head.actors.get(second.actor) else {
            continue;
        };
        // One that can't be read would stop the viewer at its line.
        let Ok(histogram) = decode_histogram(&second.v2) else {
            continue;
        };
        let max_ms = histogram.max() as f64 / MS;
        let tag = tag(&actor.name, second.latency, second.part);
        writeln!(
            to,
            "Tag={tag},{:.3},{:.3},{max_ms:.3},{}",
            second.at_s, 1.0, second.v2
        )?;
    }
    Ok(())
}

fn phases(record: &RunRecord, mut to: impl Write) -> io::Result<()> {
    for line in &record.histograms {
        let Some(actor) = record.head.actors.get(line.actor) else {
            continue;
        };
        let Some((at_s, length_s)) = stretch(record, line) else {
            continue;
        };
        writeln!(
            to,
            "Tag={},{at_s:.3},{length_s:.3},{:.3},{}",
            tag(&actor.name, line.latency, line.part),
            line.histogram.max() as f64 / MS,
            encode_histogram(&line.histogram)
        )?;
    }
    Ok(())
}

/// Begin and length of a histogram's phase, in seconds.
fn stretch(record: &RunRecord, line: &PhaseHistogram) -> Option<(f64, f64)> {
    let phases = &record.phases;
    let i = phases
        .iter()
        .position(|phase| (phase.name, phase.part) == (line.phase, line.part))?;
    let end = phases
        .get(i + 1)
        .map_or(record.intervals.end_s(), |next| next.at_s);
    Some((phases[i].at_s, (end - phases[i].at_s).max(0.0)))
}

fn tag(name: &str, latency: Latency, part: Part) -> String {
    let mut tag = harmless(name);
    if latency == Latency::Service {
        tag += ".service";
    }
    if part == Part::Control {
        tag += ".control";
    }
    tag
}

/// A tag ends at a comma or a space, a comment at the line's end.
fn harmless(name: &str) -> String {
    let keep = |c: char| {
        if c == ',' || c == ']' || c.is_whitespace() || c.is_control() {
            '_'
        } else {
            c
        }
    };
    name.chars().map(keep).collect()
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use record::{Grain, HistogramLine, Line, PhaseName, latency_histogram, second_histogram};

    use super::*;
    use crate::common::SHORT;

    fn log(record: &RunRecord, seconds: &Seconds) -> String {
        let mut text = Vec::new();
        write(record, seconds, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn another_reader_reads_every_second() {
        let mut record = SHORT.record();
        record.head.actors[0].name = "a b,c".into();
        let seconds: Seconds = (0..3)
            .map(|i| {
                let mut histogram = second_histogram();
                histogram.record(1_000_000 * (i + 1)).unwrap();
                Line::Histogram(HistogramLine {
                    actor: 0,
                    latency: Latency::Service,
                    over: Grain::SecondAt(60.0 + i as f64),
                    part: Part::Main,
                    v2: encode_histogram(&histogram),
                })
            })
            .collect();
        let text = log(&record, &seconds);
        let mut found = 0;
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            match entry.unwrap() {
                LogEntry::Interval(interval) => {
                    assert_eq!(interval.tag().unwrap().as_str(), "a_b_c.service");
                    assert_eq!(interval.start_timestamp().as_secs(), 60 + found);
                    assert!((interval.max() - (found as f64 + 1.0)).abs() < 0.02);
                    assert!(interval.encoded_histogram().starts_with("HISTFAAA"));
                    found += 1;
                }
                LogEntry::StartTime(at) => assert_eq!(at.as_secs(), 1_700_000_000),
                LogEntry::BaseTime(_) => panic!("no base time was written"),
            }
        }
        assert_eq!(found, 3);
        assert!(text.contains(" (seconds since epoch), 2023-11-14T22:13:20Z]"));
    }

    #[test]
    fn without_seconds_the_phases_are_told() {
        let mut record = SHORT.record();
        let mut histogram = latency_histogram();
        histogram.record(5_000_000).unwrap();
        record.histograms.push(PhaseHistogram {
            actor: 0,
            latency: Latency::Response,
            phase: PhaseName::Baseline,
            part: Part::Main,
            histogram,
        });
        let text = log(&record, &Seconds::new());
        assert!(text.contains("\nTag=reader,61.400,40.000,5.0"), "{text}");
    }
}
