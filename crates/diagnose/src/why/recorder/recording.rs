//! A recorder's memory as text: a line of JSON for each piece, and the way back.

use std::io::{self, BufRead, Write};

use linux::mounts::DeviceNumber;
use record::Origin;
use serde::{Deserialize, Serialize};
use storage::disks::{Disks, Place};

use super::super::Missing;
use super::super::observe::Observation;
use super::super::spans::Spans;
use super::ring::Piece;

/// The form that the first line names.
pub const SCHEMA: &str = "trimbench.recording/1";

/// A look at a thread stands for at most so much time before it, in seconds. So pieces that begin
/// later than this after the end don't matter.
const MARGIN_S: f64 = 5.0;

/// The first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Head {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version that wrote it.
    #[serde(default)]
    pub version: String,
    /// Whose it is; unknown in older ones.
    #[serde(default)]
    pub origin: Origin,
    /// When it was written, in seconds since 1970.
    pub unix_s: f64,
    /// The same moment on the monotonic clock, in seconds.
    pub now_s: f64,
    /// Everything since then is in it, on the monotonic clock.
    pub complete_s: f64,
    /// The devices: number, whole device, name.
    pub disks: Vec<(DeviceNumber, DeviceNumber, String)>,
    /// The mounted file systems.
    pub mounted: Vec<Place>,
    /// Share of one processor that the recorder has taken.
    pub cpu_share: f64,
    /// The pause between two looks at a thread, in seconds.
    pub period_s: f64,
    /// Facts that the recorder could not find out.
    pub missing: Vec<Missing>,
}

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Head(Box<Head>),
    Piece(Piece),
    End,
}

/// Why a recording can't be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RecordingError {
    #[error("it can't be read: {0}")]
    Read(#[from] io::Error),
    #[error("line {0} is no line of a recording of `trimbench why --record`: {1}")]
    Line(usize, String),
    #[error("it can't be read: {0}")]
    Version(String),
    #[error("it ends early; its recorder was stopped while it wrote")]
    Ends,
}

/// A recording.
#[derive(Debug)]
pub struct Recording {
    /// Its first line.
    pub head: Head,
    pieces: Vec<Piece>,
}

/// Writes a recording.
///
/// # Errors
/// Those of `to`.
pub fn write<'a>(
    head: &'a Head,
    pieces: impl Iterator<Item = &'a Piece>,
    to: &mut dyn Write,
) -> io::Result<()> {
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    enum Out<'a> {
        Head(&'a Head),
        Piece(&'a Piece),
        End,
    }
    let mut to = io::BufWriter::new(to);
    let lines = std::iter::once(Out::Head(head)).chain(pieces.map(Out::Piece));
    for line in lines.chain(std::iter::once(Out::End)) {
        serde_json::to_writer(&mut to, &line)?;
        to.write_all(b"\n")?;
    }
    to.flush()
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// When it can't be read, is none, or is not complete.
    pub fn read(from: impl BufRead) -> Result<Recording, RecordingError> {
        let (mut head, mut pieces) = (None, Vec::new());
        for (text, number) in from.lines().zip(1..) {
            let text = text?;
            if let Some(why) = record::form::refusal(text.as_bytes(), SCHEMA) {
                return Err(RecordingError::Version(why));
            }
            let line = serde_json::from_str(&text);
            match line.map_err(|error| RecordingError::Line(number, error.to_string()))? {
                Line::Head(found) if found.schema == SCHEMA => head = Some(*found),
                Line::Head(found) => {
                    let why = format!("its form is {:?}, not {SCHEMA:?}", found.schema);
                    return Err(RecordingError::Line(number, why));
                }
                Line::Piece(piece) => {
                    check(&piece).map_err(|why| RecordingError::Line(number, why.to_owned()))?;
                    pieces.push(piece);
                }
                Line::End => {
                    return head
                        .map(|head| Recording { head, pieces })
                        .ok_or(RecordingError::Ends);
                }
            }
        }
        Err(RecordingError::Ends)
    }

    /// The moment from which on everything is kept, in seconds since 1970.
    pub fn begins_unix_s(&self) -> f64 {
        self.head.unix_s - (self.head.now_s - self.head.complete_s)
    }

    /// Returns the observation between two moments, in seconds since 1970; of one process alone if
    /// `pid` is given.
    pub fn observed(self, from_unix_s: f64, to_unix_s: f64, pid: Option<u32>) -> Observation {
        let monotonic = |unix_s: f64| unix_s - self.head.unix_s + self.head.now_s;
        let from_s = monotonic(from_unix_s).max(self.head.complete_s);
        let to_s = monotonic(to_unix_s).min(self.head.now_s).max(from_s);
        let mut seen = Observation {
            origin: self.head.origin,
            from_s,
            to_s,
            disks: Disks::from_list(self.head.disks),
            mounted: self.head.mounted,
            cpu_share: self.head.cpu_share,
            period_s: self.head.period_s,
            missing: self.head.missing,
            ..Observation::default()
        };
        seen.sampled.stacks.push(Vec::new());
        for piece in self.pieces {
            match piece {
                Piece::Work(work) if work.to_s > from_s && work.from_s < to_s => {
                    work.add_to(&mut seen.trace, &mut seen.devices);
                }
                Piece::Looks(looks) if looks.from_s < to_s + MARGIN_S => {
                    looks.add_to(&mut seen.sampled);
                }
                _ => {}
            }
        }
        cut(&mut seen, pid);
        seen
    }
}

/// Whether the indices of a piece are those of its own lists.
fn check(piece: &Piece) -> Result<(), &'static str> {
    let Piece::Looks(looks) = piece else {
        return Ok(());
    };
    let all = &looks.sampled;
    let fits = all.samples.iter().all(|sample| {
        sample.thread < all.threads.len()
            && sample.stack < all.stacks.len()
            && sample.below.is_none_or(|below| below < all.places.len())
    });
    fits.then_some(())
        .ok_or("a look names a thread or a stack that is missing")
}

/// Leaves what lies within the observation's time.
fn cut(seen: &mut Observation, pid: Option<u32>) {
    let (from_s, to_s) = (seen.from_s, seen.to_s);
    let threads = &seen.sampled.threads;
    seen.sampled.samples.retain_mut(|sample| {
        // A look stands for the time before it.
        let began_s = (sample.at_s - sample.stands_for_s).max(from_s);
        sample.at_s = sample.at_s.min(to_s);
        sample.stands_for_s = sample.at_s - began_s;
        let asked = pid.is_none_or(|pid| threads[sample.thread].thread.pid == pid);
        asked && sample.stands_for_s > 0.0
    });
    seen.sampled
        .samples
        .sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let within = |spans: &mut Spans| *spans = spans.within(from_s, to_s);
    seen.trace.discards.values_mut().for_each(within);
    for did in seen.devices.values_mut() {
        did.retain(|one| one.at_s > from_s && one.at_s - one.seconds < to_s);
    }
}
