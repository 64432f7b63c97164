//! The discards that a loop device passes on to its drive.
//!
//! The limit that is set here belongs to the device's number and stays when its file is detached:
//! the next user of `/dev/loop3` finds it. So it is always set, and lifted before the device is
//! detached. A limit of 0 can't be lifted: it also sets the granularity to 0, and then the kernel
//! accepts no other value. So a drive without TRIM gets no such limit.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use ssd::Figures;

use crate::control::{self, Order};
use crate::error::LabError;
use crate::place::Place;
use crate::queue;
use crate::store;

/// Lets through no larger discard than the drive takes in one command.
pub(crate) fn limit(place: &Place, device: &Path, figures: &Figures) -> Result<(), LabError> {
    let file = queue::of(device).join("discard_max_bytes");
    let most = figures.discard.as_ref().map_or(u64::MAX, |d| d.max_bytes);
    set(device, most).map_err(LabError::io("cannot set", file))?;
    if figures.discard.is_none() {
        refuse_one(device);
        control::ask(place, &Order::ResetStats)?;
    }
    Ok(())
}

/// Lets through whatever the loop driver takes.
pub(crate) fn lift(device: &Path) {
    // A device that was detached meanwhile has no limit worth lifting.
    let _ = set(device, u64::MAX);
}

/// The most that may be let through: whole granules, which the driver's own
/// limit isn't, and at least one. A drive that takes less in a command gets it
/// in pieces.
fn whole(most: u64, hardware: u64, granularity: u64) -> u64 {
    let granularity = granularity.max(1);
    let most = most.max(granularity).min(hardware);
    most - most % granularity
}

fn set(device: &Path, most: u64) -> io::Result<()> {
    let number = |file| -> io::Result<u64> {
        let text = fs::read_to_string(queue::of(device).join(file))?;
        text.trim().parse().map_err(io::Error::other)
    };
    let hardware = number("discard_max_hw_bytes")?;
    let most = whole(most, hardware, number("discard_granularity")?);
    if most == number("discard_max_bytes")? {
        return Ok(());
    }
    fs::write(
        queue::of(device).join("discard_max_bytes"),
        most.to_string(),
    )
}

/// Sends one discard, which the drive refuses. From then on the driver reports that this device
/// takes none (Linux ≥ 6.11; before, each is refused).
fn refuse_one(device: &Path) {
    if let Ok(file) = OpenOptions::new().write(true).open(device) {
        let _ = store::punch(&file, &(0..1 << 20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_whole_granules_and_never_0() {
        assert_eq!(whole(10_000, u64::MAX, 4096), 8192);
        assert_eq!(whole(u64::MAX, 10_000, 4096), 8192, "the driver's");
        // A drive that takes less in one command than its granule.
        assert_eq!(whole(512, u64::MAX, 4096), 4096);
        assert_eq!(whole(512, 0, 0), 0, "a device that takes none");
    }
}
