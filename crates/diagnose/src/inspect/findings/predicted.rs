//! The cost of a deletion, by the drive's card.

use std::time::Duration;

use record::units::{bytes, latency_us, seconds};
use ssd::Card;
use storage::stack::Stack;

use super::super::Inspection;
use super::{Finding, queue};

/// The example of a deletion, on a device that is that large.
const EXAMPLE_BYTES: u64 = 100 << 30;

/// A wait that users notice.
const NOTICED: Duration = Duration::from_millis(1);

/// Half of the time after which Linux resets a drive that doesn't answer.
const NEAR_TIMEOUT: Duration = Duration::from_secs(15);

/// A stall that online discard or a timer will make on this drive.
pub(super) fn of(facts: &Inspection, stack: &Stack, card: &Card) -> Option<Finding> {
    let discard = card.figures().discard.as_ref()?;
    let fs = stack.file_system.as_ref().filter(|_| stack.open)?;
    let drive = stack.drives().next()?;
    let plain = facts.policy.trims(&fs.mount_point).any(|one| !one.paced);
    if !fs.is_online() && !plain {
        return None;
    }
    let size = stack
        .layers
        .first()
        .map(|top| top.size_bytes)
        .filter(|&size| size > 0)?;
    let example = EXAMPLE_BYTES.min(size);
    let by_fs = fs
        .rules()
        .largest_discard_bytes(4096, fs.sends)
        .unwrap_or(u64::MAX);
    let limits = stack
        .layers
        .iter()
        .map(|layer| layer.limits.max_bytes)
        .filter(|&max| max > 0);
    let piece = limits.chain([by_fs, discard.max_bytes, example]).min()?;
    let commands = example.div_ceil(piece);
    let each = discard.service(piece, 0, 1);
    let wait = each.mul_f64(discard.phi());
    if wait < NOTICED {
        return None;
    }
    let lost = wait.as_secs_f64() * commands as f64;
    let latency = |time: Duration| latency_us(time.as_secs_f64() * 1e6);
    let name = match each > NEAR_TIMEOUT {
        true => "predicted-stall.timeout",
        false => "predicted-stall",
    };
    let service = format!("S = {} for {}", latency(each), bytes(piece));
    let limit = queue(&drive.name, "discard_max_bytes");
    Some(
        Finding::new(name, &fs.mount_point)
            .with("example", bytes(example))
            .with("discards", record::units::counted(commands, "discard"))
            .with("piece", bytes(piece))
            .with("wait", latency(wait))
            .with("lost", seconds(lost))
            .evidence(format!("card {}", card.name()), service)
            .evidence(limit, drive.limits.max_bytes),
    )
}
