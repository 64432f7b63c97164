//! Discards of devices whose counters are off. They are done when reads take no longer than
//! usual.
//!
//! How many there were, and of how many bytes, nobody knows. What was freed counts as
//! discarded once some reads in a row are as quick as before, and the time until then as
//! that of its discards.

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

/// So many reads in a row must be quick.
const QUICK: u32 = 3;

/// Discards are sent within this time of the call that makes them come.
const SENT: Duration = Duration::from_millis(2);

/// A read is held up if it takes so many times the usual, and so much more.
const HELD: u32 = 3;
const HELD_MORE: Duration = Duration::from_micros(200);

/// How often it is asked what the whole machine reads and writes: the kernel adds up all
/// processors' counters for it.
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
    /// By reads of this file, which is open for direct reads.
    ///
    /// # Errors
    /// If it can't be read.
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

    /// A call has returned that frees or commits: its discards begin.
    pub(super) fn called(&mut self) {
        self.called = Instant::now();
        self.quick = 0;
    }

    /// What was discarded when it was last asked.
    pub(super) fn last(&self) -> Discards {
        self.discards
    }

    /// What is discarded, if so many bytes are freed for which discards come.
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

    /// Whether somebody else uses a disk, whichever: as writes, for reads of other disks
    /// would tell that discards on this one hurt nobody.
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
