//! Waiting until the foreground is steady.

use std::time::Duration;

use record::EventKind;

use super::gain::Filled;
use super::{Early, Script};
use crate::steady::Settling;

/// The time for fio alone to settle, because its rate can't be seen.
const UNSEEN: Duration = Duration::from_secs(10);

impl Script<'_> {
    pub(super) fn settle(&mut self) -> Result<(), Early> {
        let mut limit = self.plan.phases.settle();
        if self.plan.actors.is_empty() && self.plan.canary_per_s.is_none() {
            limit = limit.min(UNSEEN);
        }
        if limit.is_zero() {
            return Ok(());
        }
        let mut settling = Settling::new(self.plan.phases.interval(), limit);
        let began = self.session.tick()?.now;
        loop {
            let tick = self.session.tick()?;
            let filled = self.fills_cache(&tick);
            // The canary's rate is as steady as its clock: it decides nothing
            // while there is anybody else.
            let Some(rates) = tick.ops_per_s else {
                continue;
            };
            let followed = match self.plan.actors.len() {
                0 => &rates[..],
                own => &rates[..own],
            };
            if settling.is_steady_after(followed) && filled == Filled::Yes {
                self.session.event(EventKind::SettleSteady, None);
                return Ok(());
            }
            if tick.now.saturating_sub(began) >= limit || filled == Filled::OutOfBytes {
                let text = if filled == Filled::OutOfBytes {
                    "not steady after half of the bytes to be written before the trim".to_owned()
                } else if settling.can_tell() {
                    format!("not steady after {limit:?}")
                } else if followed.is_empty() {
                    "not known to be steady: fio tells its rates only when it ends".to_owned()
                } else {
                    format!("not known to be steady: {limit:?} is too short to tell")
                };
                self.session.event(EventKind::SettleLimit, Some(text));
                return Ok(());
            }
        }
    }
}
