//! The picture for papers and issues: the foreground's loss against how long the freeing takes.

use experiments::Spread;
use experiments::tune::{Goal, Point, Policy, Target, Trials, frontier};
use record::units::names;
use report::svg::{TradeOff, Way, trade_off};

/// The SVG.
pub(super) fn of(target: &Target, trials: &Trials, points: &[Point], goal: &Goal) -> String {
    let on = frontier(points);
    let now = points.iter().find(|point| {
        point.trial.policy == Policy::Online && point.trial.limit_bytes == goal.limit_bytes
    });
    trade_off(&TradeOff {
        title: format!(
            "Freeing {} on {}, {}",
            record::units::bytes(trials.setup.size_bytes),
            names::shown(&target.mount.mount_point),
            target.mount.fs
        ),
        goal: goal.slowdown,
        lost_s: now.map_or(0.0, |now| now.lost_s.median),
        ways: points
            .iter()
            .zip(on)
            .map(|(point, on)| way(point, !on))
            .collect(),
    })
}

fn way(point: &Point, beaten: bool) -> Way {
    let range = |spread: Spread| [spread.low, spread.median, spread.high];
    let share = |lost_s: f64| lost_s / point.freeing_s.median.max(f64::MIN_POSITIVE);
    Way {
        name: point.trial.to_string(),
        kind: match point.trial.policy {
            Policy::Online => 0,
            Policy::PacedRm => 1,
            Policy::PacedFstrim => 2,
        },
        seconds: range(point.freeing_s),
        lost: range(point.lost_s).map(share),
        worst: point.worst_loss.median,
        beaten,
    }
}
