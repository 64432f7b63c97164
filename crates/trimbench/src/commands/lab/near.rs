//! How near a drive comes to its card, in words.

use ::lab::{AtDepth, Info};

/// Returns short lines about the way to the drive: the share of the card's rate that reads reach at
/// each depth, and the latency that the way adds. Where the share is low they also name a slow-down
/// that is enough. Empty if nothing was measured.
pub(crate) fn near(info: &Info) -> Vec<String> {
    let Some(trip) = info.trip.as_ref() else {
        return Vec::new();
    };
    let way = format!(
        "the way through the loop driver and FUSE adds {}",
        record::units::latency_us(trip.added_us)
    );
    let shares: Option<Vec<f64>> = trip.depths.iter().map(AtDepth::share).collect();
    let Some(shares) = shares else {
        let some = |at: &&AtDepth| [1, 8, 32].contains(&at.depth);
        let rates: Vec<String> = trip.depths.iter().filter(some).map(rate).collect();
        return vec![
            format!("reads reach {}", rates.join(", ")),
            format!("the card sets reads no limit; {way}"),
        ];
    };
    let depths: Vec<String> = trip.depths.iter().map(|at| at.depth.to_string()).collect();
    let shares: Vec<String> = shares.iter().map(|share| format!("{share:.2}")).collect();
    let mut lines = vec![
        format!(
            "reads at depth {}: {} of the card's rate",
            depths.join(", "),
            shares.join(", ")
        ),
        format!("{way}, which is taken off as far as it can be"),
    ];
    if let Some(times) = trip.enough(info.spec.slower) {
        lines.push(format!(
            "`lab up --slower {times}` may come nearer up to depth 8; one short measurement scatters"
        ));
    }
    lines
}

fn rate(at: &AtDepth) -> String {
    format!(
        "{} at depth {}",
        record::units::rate(at.reads_per_s),
        at.depth
    )
}
