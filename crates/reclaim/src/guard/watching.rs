//! Interrupts the freeing of a file: for a signal, an order, or too much that waits.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::FULL;
use super::control;
use super::place::Place;
use crate::watch::{Progress, Watch};

/// How often orders and what waits are looked at while a file is freed.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Below this share of the allowed amount that waits, space is freed at the usual pace.
const ENOUGH: f64 = 0.8;

/// Watches over a batch.
pub(super) struct Watching<'a> {
    pub(super) place: &'a Place,
    pub(super) stop: &'a AtomicBool,
    /// It is freed faster now, because more waits than is allowed.
    pub(super) hurried: bool,
    /// All is freed at once now.
    pub(super) at_once: bool,
    pub(super) most: f64,
    pub(super) looked: Instant,
}

impl Watch for Watching<'_> {
    fn tick(&mut self, _: &Progress) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if self.looked.elapsed() < LOOK_EVERY {
            return ControlFlow::Continue(());
        }
        self.looked = Instant::now();
        match control::is_waiting(self.place.hidden()) || self.changes_pace() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Watching<'_> {
    fn changes_pace(&self) -> bool {
        if self.place.orders.drain {
            return false;
        }
        if self.place.free_share() < FULL {
            return !self.at_once;
        }
        let held = self.place.names().waiting_bytes();
        match self.hurried {
            true => !self.place.is_over(held, self.most * ENOUGH),
            false => self.place.is_over(held, self.most),
        }
    }
}
