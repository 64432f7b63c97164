//! When a trim ends before it is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reclaim::lease::{Event, Lease, LeaseError, Place};

/// A signal, or the loss of the lease.
pub(super) struct Halt {
    stop: Arc<AtomicBool>,
    /// Held until the trim is over.
    lease: Option<Lease>,
}

impl Halt {
    /// With the lease of a place, for which it waits first; `None` if a signal came before it.
    pub(super) fn with(
        stop: Arc<AtomicBool>,
        place: Option<&Place>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Option<Halt>, LeaseError> {
        let lease = match place {
            None => None,
            Some(place) => match place.take(&stop, note)? {
                Some(lease) => Some(lease),
                None => return Ok(None),
            },
        };
        Ok(Some(Halt { stop, lease }))
    }

    /// Whether to stop.
    pub(super) fn is_due(&self) -> bool {
        self.is_signalled() || self.lease.as_ref().is_some_and(|lease| !lease.holds())
    }

    /// Why the lease was lost; `None` if it holds, or a signal came.
    pub(super) fn lost(&self) -> Option<String> {
        match self.is_signalled() {
            true => None,
            false => self.lease.as_ref().and_then(Lease::lost),
        }
    }

    /// Reports a result to the other users of the lease.
    pub(super) fn publish(&self, event: &Event<'_>) -> Result<(), String> {
        self.lease
            .as_ref()
            .map_or(Ok(()), |lease| lease.publish(event))
    }

    fn is_signalled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
