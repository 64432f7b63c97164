//! How near a drive comes to its card, in words.

use ::lab::{AtDepth, Info};

/// A line: the share of the card's rate that reads reach at each depth, and the slow-down that is
/// enough where that is less. `None`: it wasn't measured.
pub(crate) fn near(info: &Info) -> Option<String> {
    let trip = info.trip.as_ref()?;
    let way = format!(
        "the way through the loop driver and FUSE adds {}",
        units::latency_us(trip.added_us)
    );
    let shares: Vec<String> = trip.depths.iter().filter_map(share).collect();
    if shares.is_empty() {
        let rates: Vec<String> = trip.depths.iter().map(rate).collect();
        return Some(format!(
            "reads reach {}; the card sets no limit; {way}",
            rates.join(", ")
        ));
    }
    let mut text = format!(
        "reads reach {} of the card's rate; {way}, which is taken off as far as it can be",
        shares.join(", ")
    );
    if let Some(times) = trip.enough(info.spec.slower) {
        text += &format!("; `lab up --slower {times}` is slow enough for this machine");
    }
    Some(text)
}

fn share(at: &AtDepth) -> Option<String> {
    Some(format!("{:.2} at depth {}", at.share()?, at.depth))
}

fn rate(at: &AtDepth) -> String {
    format!("{} at depth {}", units::rate(at.reads_per_s), at.depth)
}
