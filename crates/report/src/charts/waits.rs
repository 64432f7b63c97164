//! Charts of what the actors waited in, stretch by stretch (`run --why`).

use record::RunRecord;

use super::time::{Chart, Line, Unit};
use crate::thin;

/// A chart for each actor that waited, with the discards in flight beside its waits. `limit`: most
/// points of a line.
pub(super) fn waits(record: &RunRecord, limit: usize) -> Vec<Chart> {
    let Some(waits) = &record.waits else {
        return Vec::new();
    };
    let timeline = &waits.timeline;
    let value = |all: &[f32], i: usize| all.get(i).copied().map_or(0.0, f64::from);
    let waited = waits.actors.iter().filter(|one| !one.shares.is_empty());
    let chart = |(number, one): (usize, &record::waits::ActorWaits)| {
        let named = [
            ("in its own discards", &one.shares.own),
            ("behind discards", &one.shares.behind),
            ("for something else", &one.shares.otherwise),
            ("a discard in flight", &timeline.discarding),
        ];
        let at = |i: &usize| timeline.at_s + (*i as f64 + 0.5) * timeline.stretch_s;
        let series: Vec<_> = named
            .iter()
            .map(|(_, all)| move |i: usize| value(all, i))
            .collect();
        let series: Vec<thin::Series<'_>> = series.iter().map(|one| one as _).collect();
        let kept = thin::indices(timeline.discarding.len(), 0..0, &series, limit);
        let actors = &record.head.actors;
        let own = actors.iter().position(|actor| actor.name == one.actor);
        let title = format!("Waits of {}, as a share of its time", one.actor);
        let mut chart = Chart::new(&format!("waits-{number}"), title, Unit::Share);
        chart.top = Some(1.0);
        chart.actors = own.into_iter().collect();
        chart.x = kept.iter().map(at).collect();
        let known = named.iter().filter(|(_, all)| !all.is_empty());
        chart.lines = known
            .map(|(name, all)| Line {
                name: (*name).to_owned(),
                y: kept.iter().map(|&i| value(all, i)).collect(),
            })
            .collect();
        chart
    };
    waited.enumerate().map(chart).collect()
}
