//! Recognises discards of devices whose counters are off.
//!
//! The discards are done when reads take no longer than usual. Their number and size stay unknown.
//! Freed bytes count as discarded once some reads in a row are as quick as before. The time until
//! then counts as the time of their discards.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linux::SysRoot;
use linux::vm::{Traffic, Vmstat};
use pace::{Discards, Io, Others};

use super::counters::CanaryIo;

const BLOCK: usize = 4096;

/// The number of consecutive reads that must be quick.
const QUICK: u32 = 3;

/// Discards are sent within this time of the call that makes them come.
const SENT: Duration = Duration::from_millis(2);

/// A read is slow if it takes more than this many times the usual, and [`HELD_MORE`] more.
const HELD: u32 = 3;
const HELD_MORE: Duration = Duration::from_micros(200);

/// The time between two looks at the reads and writes of the whole machine. The kernel adds up all
/// processors' counters for each look.
const TRAFFIC_EVERY: Duration = Duration::from_millis(10);

/// Reads to learn what is usual.
const LEARN: usize = 9;

/// Recognises by its own reads when discards are done.
#[derive(Debug)]
pub(super) struct Uncounted {
    file: Arc<File>,
    buffer: Vec<u8>,
    usual: Duration,
    reads: u64,
    discards: Discards,
    quick: u32,
    /// When the last call returned that may send discards.
    called: Instant,
    vmstat: Option<Vmstat>,
    before: Traffic,
    traffic: Traffic,
    asked: Option<Instant>,
}

impl Uncounted {
    /// Starts with reads of this file, which is open for direct reads, to learn their usual time.
    ///
    /// # Errors
    /// If the file can't be read.
    pub(super) fn new(file: Arc<File>) -> io::Result<Uncounted> {
        let vmstat = Vmstat::open(&SysRoot::host()).ok();
        let before = vmstat.as_ref().and_then(Vmstat::read).unwrap_or_default();
        let mut uncounted = Uncounted {
            file,
            buffer: vec![0; 2 * BLOCK],
            usual: Duration::ZERO,
            reads: 0,
            discards: Discards::default(),
            quick: 0,
            called: Instant::now(),
            vmstat,
            before,
            traffic: before,
            asked: None,
        };
        let mut waits = Vec::with_capacity(LEARN);
        for _ in 0..LEARN {
            waits.push(uncounted.read()?);
        }
        waits.sort();
        uncounted.usual = waits[LEARN / 2];
        Ok(uncounted)
    }

    /// Notes that a call has returned that frees or commits: its discards begin.
    pub(super) fn called(&mut self) {
        self.called = Instant::now();
        self.quick = 0;
    }

    /// Returns the discards as of the last call of [`discards`](Self::discards).
    pub(super) fn last(&self) -> Discards {
        self.discards
    }

    /// Returns the discards so far, if `freed` bytes were freed for which discards come.
    pub(super) fn discards(&mut self, freed: u64) -> Discards {
        while self.discards.bytes < freed {
            let Ok(wait) = self.read() else { break };
            if wait > self.usual * HELD + HELD_MORE {
                self.quick = 0;
                break;
            }
            self.quick += 1;
            if self.quick >= QUICK {
                if self.called.elapsed() >= SENT {
                    self.discards.bytes = freed;
                    self.discards.commands += 1;
                }
                break;
            }
        }
        self.discards
    }

    /// Returns the I/O of other processes on any disk, or `None` where the kernel doesn't show it.
    /// It counts reads as writes: reads of another disk would otherwise suggest that discards on
    /// this one slow down no reader.
    pub(super) fn others(&mut self, canary: CanaryIo) -> Option<Others> {
        let vmstat = self.vmstat.as_ref()?;
        if self.asked.is_none_or(|at| at.elapsed() >= TRAFFIC_EVERY) {
            self.asked = Some(Instant::now());
            self.traffic = vmstat.read()?;
        }
        let bytes = self.traffic.read - self.before.read.min(self.traffic.read);
        let written = self.traffic.written - self.before.written.min(self.traffic.written);
        let own = self.reads + canary.ops;
        let all = (bytes + written) / BLOCK as u64;
        Some(Others {
            reads: Io::default(),
            writes: all.saturating_sub(own),
        })
    }

    fn read(&mut self) -> io::Result<Duration> {
        let skip = self.buffer.as_ptr().align_offset(BLOCK);
        let blocks = (self.file.metadata()?.len() / BLOCK as u64).max(1);
        let at = fastrand::u64(..blocks) * BLOCK as u64;
        let began = Instant::now();
        self.file
            .read_at(&mut self.buffer[skip..skip + BLOCK], at)?;
        self.reads += 1;
        Ok(began.elapsed())
    }
}
