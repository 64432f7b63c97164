//! A record in memory as the lines it is made of, to be written into a file.

use super::{
    ActorColumns, ActorInterval, DeviceColumns, DeviceInterval, Grain, HistogramLine, Interval,
    Line, RunRecord, encode_histogram,
};

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
        Interval {
            at_s: all.at_s[i],
            seconds: f64::from(all.seconds[i]),
            actors: all.actors.iter().map(|columns| actor(columns, i)).collect(),
            devices: all
                .devices
                .iter()
                .map(|columns| device(columns, i))
                .collect(),
            freed_bytes: all.freed_bytes[i],
            absent: all.absent.get(&i).copied(),
            cpu_wait: cpu_wait(&all.actors, i),
        }
    }
}

/// Empty where nobody looked.
fn cpu_wait(actors: &[ActorColumns], i: usize) -> Vec<Option<f64>> {
    let share = |columns: &ActorColumns| {
        let share = columns.cpu_wait[i];
        (!share.is_nan()).then_some(f64::from(share))
    };
    match actors.iter().any(|columns| share(columns).is_some()) {
        true => actors.iter().map(share).collect(),
        false => Vec::new(),
    }
}

fn actor(columns: &ActorColumns, i: usize) -> Option<ActorInterval> {
    let told = |us: f32| (!us.is_nan()).then_some(f64::from(us));
    columns.running[i].then(|| ActorInterval {
        ops: u64::from(columns.ops[i]),
        errors: u64::from(columns.errors[i]),
        bytes: columns.bytes[i],
        p50_us: told(columns.p50_us[i]),
        p99_us: told(columns.p99_us[i]),
        max_us: told(columns.max_us[i]),
        oldest_us: told(columns.oldest_us[i]),
    })
}

fn device(columns: &DeviceColumns, i: usize) -> DeviceInterval {
    DeviceInterval {
        reads: u64::from(columns.reads[i]),
        read_bytes: columns.read_bytes[i],
        read_ms: u64::from(columns.read_ms[i]),
        writes: u64::from(columns.writes[i]),
        write_bytes: columns.write_bytes[i],
        write_ms: u64::from(columns.write_ms[i]),
        discards: u64::from(columns.discards[i]),
        discard_bytes: columns.discard_bytes[i],
        discard_ms: u64::from(columns.discard_ms[i]),
        in_flight: u64::from(columns.in_flight[i]),
    }
}
