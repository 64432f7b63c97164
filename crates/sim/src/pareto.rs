//! Policies that no other one beats in everything.

use crate::outcome::Figures;

/// The four costs that are weighed.
fn costs(figures: &Figures) -> [f64; 4] {
    let untold = figures.untold_bytes as f64 / figures.removed_bytes.max(1) as f64;
    [
        figures.drained_s.or(figures.deletion_s).unwrap_or(0.0),
        figures.lost_s.unwrap_or(0.0).max(0.0),
        figures.p999_ms.unwrap_or(0.0),
        // A share of a thousandth is a file system's rounding.
        (untold * 1000.0).floor(),
    ]
}

/// Returns of each run whether it is on the Pareto front: no other run is at least as good in all
/// four costs, and better in one. The costs are the time until all is discarded, the foreground's
/// lost time, its p99.9, and the share that is never discarded. Differences below 1 % count as none.
pub fn pareto_front(all: &[Figures]) -> Vec<bool> {
    let costs: Vec<[f64; 4]> = all.iter().map(costs).collect();
    let beats = |a: &[f64; 4], b: &[f64; 4]| {
        let no_worse = a.iter().zip(b).all(|(a, b)| *a <= b * 1.01 + 1e-9);
        let better = a.iter().zip(b).any(|(a, b)| *a < b * 0.99 - 1e-9);
        no_worse && better
    };
    let is_beaten = |own: &[f64; 4]| costs.iter().any(|other| beats(other, own));
    let fails = |figures: &Figures| figures.is_full || figures.gave_up;
    costs
        .iter()
        .zip(all)
        .map(|(own, figures)| !fails(figures) && !is_beaten(own))
        .collect()
}
