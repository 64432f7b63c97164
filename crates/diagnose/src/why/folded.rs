//! Stacks as flame graph tools take them.

use std::collections::BTreeMap;

use super::frames::Place;
use super::observe::Observation;

/// A line for each stack: the process, the call and the functions from the outermost to the
/// innermost, separated by `;`, then the time in microseconds (Gregg's folded format).
pub fn folded(observation: &Observation) -> String {
    let sampled = &observation.sampled;
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for sample in &sampled.samples {
        if matches!(sample.place, Place::Sleep | Place::Running) {
            continue;
        }
        let looked = &sampled.threads[sample.thread];
        let mut names = vec![looked.comm.as_str()];
        names.extend(sample.call.and_then(|call| call.name()));
        names.extend(
            sampled.stacks[sample.stack]
                .iter()
                .rev()
                .map(String::as_str),
        );
        let names: Vec<String> = names
            .into_iter()
            .map(|name| units::names::harmless(name).replace([';', ' '], "_"))
            .collect();
        *sums.entry(names.join(";")).or_default() += sample.stands_for_s;
    }
    sums.into_iter()
        .map(|(names, seconds)| format!("{names} {:.0}\n", seconds * 1e6))
        .collect()
}
