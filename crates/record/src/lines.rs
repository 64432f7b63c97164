//! A record in memory as the lines it is made of, to be written into a file.

use super::columns::Cell;
use super::{ActorColumns, Grain, HistogramLine, Interval, Line, RunRecord, encode_histogram};

impl RunRecord {
    /// Its lines, in an order in which they can be read again. Histograms of
    /// single seconds aren't among them: a record in memory has none.
    pub fn lines(&self) -> impl Iterator<Item = Line> {
        let head = Line::Head(Box::new(self.head.clone()));
        let phases = self.phases.iter().copied().map(Line::Phase);
        let events = self.events.iter().cloned().map(Line::Event);
        let intervals = (0..self.intervals.len()).map(|i| Line::Interval(self.interval(i)));
        let deletions = self.deletions.iter().copied().map(Line::Deletion);
        let histograms = self.histograms.iter().map(|h| {
            Line::Histogram(HistogramLine {
                actor: h.actor,
                latency: h.latency,
                over: Grain::Phase(h.phase),
                part: h.part,
                v2: encode_histogram(&h.histogram),
            })
        });
        let stretches = self.stretches.iter().map(|s| {
            let (at_s, seconds) = (s.at_s, s.seconds);
            Line::Histogram(HistogramLine {
                actor: s.actor,
                latency: s.latency,
                over: Grain::Stretch { at_s, seconds },
                part: s.part,
                v2: s.v2.clone(),
            })
        });
        std::iter::once(head)
            .chain(phases)
            .chain(events)
            .chain(intervals)
            .chain(deletions)
            .chain(stretches)
            .chain(histograms)
            .chain(self.waits.iter().cloned().map(Box::new).map(Line::Waits))
            .chain(self.end.iter().cloned().map(Line::End))
    }

    /// One interval.
    ///
    /// # Panics
    /// If there is none of this number.
    pub fn interval(&self, i: usize) -> Interval {
        let all = &self.intervals;
        let actor = |columns: &ActorColumns| columns.running[i].then(|| columns.row(i));
        Interval {
            at_s: all.at_s[i],
            seconds: f64::from(all.seconds[i]),
            actors: all.actors.iter().map(actor).collect(),
            devices: all.devices.iter().map(|columns| columns.row(i)).collect(),
            freed_bytes: all.freed_bytes[i],
            absent: all.absent.get(&i).copied(),
            cpu_wait: cpu_wait(&all.actors, i),
        }
    }
}

/// Empty where nobody looked.
fn cpu_wait(actors: &[ActorColumns], i: usize) -> Vec<Option<f64>> {
    let share = |columns: &ActorColumns| columns.cpu_wait[i].value();
    match actors.iter().any(|columns| share(columns).is_some()) {
        true => actors.iter().map(share).collect(),
        false => Vec::new(),
    }
}
