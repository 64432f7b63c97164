//! The piece that was freed and isn't acknowledged yet, and what the last ones took.

use std::time::Duration;

use ssd::Time;

use crate::meter::Tick;
use crate::ownership::OwnDiscards;
use crate::quantity::{Bytes, Seconds};

/// How much the latest piece counts in the time around pieces.
const WEIGHT: f64 = 0.3;

/// A piece that was freed and isn't acknowledged yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flight {
    /// When it was allowed.
    pub(crate) sent: Time,
    /// Bytes freed.
    pub(crate) freed: u64,
    /// Its discards so far, and their bytes.
    pub(crate) commands: u64,
    pub(crate) bytes: u64,
    /// Bytes that were discarded before.
    pub(crate) twice: u64,
    /// For how long the device was at them.
    pub(crate) busy: Seconds,
    /// Flushes meanwhile, and their time.
    pub(crate) flushes: u64,
    pub(crate) flushing: Seconds,
    /// Commits meanwhile.
    pub(crate) commits: u64,
    /// This process did not run for a part of the time, so that nothing is learned from it.
    pub(crate) absent: bool,
}

impl Flight {
    /// Adds what happened between two looks.
    pub(crate) fn add(&mut self, freed: u64, own: &OwnDiscards, twice: u64, tick: &Tick) {
        self.freed += freed;
        self.commands += own.commands;
        self.bytes += own.bytes;
        self.twice += twice;
        self.busy += own.busy;
        self.flushes += tick.flushes;
        self.flushing += tick.flushing;
        self.commits += tick.commits;
    }

    /// Returns the bytes and the time of a usual command. Of what was discarded beyond what was
    /// freed, it could be no smaller all the same.
    pub(crate) fn command(&self) -> (Bytes, Seconds) {
        let commands = self.commands.max(1) as f64;
        let bytes = Bytes::from(self.bytes.min(self.freed));
        (bytes / commands, self.busy / commands)
    }
}

/// The times of the pieces that were acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RoundTrips {
    /// From freeing to the acknowledgement, less the device's time.
    overhead: Seconds,
    /// When the last piece was acknowledged, and how long its discards took.
    landed: Time,
    discarding: Seconds,
}

impl RoundTrips {
    /// A piece was acknowledged now.
    pub(crate) fn landed_now(&mut self, now: Time, flight: &Flight) {
        if flight.bytes == 0 {
            return;
        }
        let took = Seconds::from(now.since(flight.sent));
        // Discards beside each other take no longer than the piece.
        (self.landed, self.discarding) = (now, flight.busy.min(took));
        let over = (took - flight.busy).max(Seconds::ZERO);
        self.overhead = if self.overhead > Seconds::ZERO {
            self.overhead + WEIGHT * (over - self.overhead)
        } else {
            over
        };
    }

    /// Returns the time around a piece: what freeing, commit and looking take.
    pub(crate) fn overhead(&self) -> Seconds {
        self.overhead
    }

    /// Returns how long ago the last piece was acknowledged.
    pub(crate) fn since_landed(&self, now: Time) -> Duration {
        now.since(self.landed)
    }

    /// Returns how long the last piece's discards took.
    pub(crate) fn discarding(&self) -> Seconds {
        self.discarding
    }
}
