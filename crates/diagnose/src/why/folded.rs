//! The stacks of all waits, each once: for flame graphs.

use std::collections::BTreeMap;

use record::waits::Stack;

use super::Subject;
use super::join::Causes;
use super::observe::Observation;
use super::report::Cause;
use super::sampler::Sample;

/// The stacks of all waits, by their names. Threads that run or sleep for something else than
/// storage have none. The kernel's own threads count too.
pub fn stacks(observation: &Observation, subject: &Subject) -> Vec<Stack> {
    let causes = Causes::of(observation, subject);
    let mut sums: BTreeMap<Vec<String>, (f64, f64, f64)> = BTreeMap::new();
    for sample in &observation.sampled.samples {
        let all = causes.of_sample(sample);
        let blocked: f64 = sum(&all, Cause::is_blocked);
        if blocked > 0.0 {
            let sum_of = sums.entry(frames(observation, sample)).or_default();
            sum_of.0 += blocked;
            sum_of.1 += sum(&all, Cause::is_discards);
            sum_of.2 += sum(&all, |cause| cause == Cause::InDiscards);
        }
    }
    let stack = |(frames, (seconds, discards_s, own_s))| Stack {
        frames,
        seconds,
        discards_s,
        own_s,
    };
    sums.into_iter().map(stack).collect()
}

fn sum(all: &[(Cause, f64)], of: fn(Cause) -> bool) -> f64 {
    all.iter().filter(|one| of(one.0)).map(|one| one.1).sum()
}

fn frames(observation: &Observation, sample: &Sample) -> Vec<String> {
    let sampled = &observation.sampled;
    let mut names = vec![sampled.threads[sample.thread].comm.as_str()];
    names.extend(sample.call.and_then(|call| call.name()));
    let functions = sampled.stacks[sample.stack].iter().rev();
    names.extend(functions.map(String::as_str));
    names
        .into_iter()
        .map(record::units::names::harmless)
        .collect()
}

/// Stacks in the folded format of flame graph tools: a line for each, its frames separated by `;`,
/// then the time in microseconds (Gregg's `flamegraph.pl`).
pub fn folded(stacks: &[Stack]) -> String {
    let line = |stack: &Stack| {
        let frames = stack.frames.iter();
        let names: Vec<String> = frames
            .map(|name| name.replace([';', ' ', '\n'], "_"))
            .collect();
        format!("{} {:.0}\n", names.join(";"), stack.seconds * 1e6)
    };
    stacks.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_a_folded_line() {
        let stack = Stack {
            frames: ["a; b\nc", "write", "submit_bio_wait"]
                .map(str::to_owned)
                .to_vec(),
            seconds: 1.25,
            discards_s: 1.0,
            own_s: 0.0,
        };
        assert_eq!(folded(&[stack]), "a__b_c;write;submit_bio_wait 1250000\n");
    }
}
