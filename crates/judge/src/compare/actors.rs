//! Which actors of several runs are the same.

use crate::verdict::Verdict;

/// An actor: in each group and run its index in the verdict's foreground.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Matched {
    pub(super) name: String,
    pub(super) op: String,
    pub(super) places: Vec<Vec<Option<usize>>>,
}

/// The actors of all runs, those of the first run first.
///
/// They are the same if they have the same name and operation. Of those that are
/// left, two are the same if each is its run's only one with that operation:
/// the reader of an imported log has its device's name.
pub(super) fn matched(groups: &[Vec<&Verdict>]) -> Vec<Matched> {
    let mut all: Vec<Matched> = Vec::new();
    for (group, runs) in groups.iter().enumerate() {
        for (run, verdict) in runs.iter().enumerate() {
            let mut left = Vec::new();
            for (i, seen) in verdict.foreground.iter().enumerate() {
                let same = |m: &&mut Matched| m.name == seen.actor && m.op == seen.op;
                match all.iter_mut().find(same) {
                    Some(known) => known.places[group][run] = Some(i),
                    None => left.push(i),
                }
            }
            for i in left {
                let seen = &verdict.foreground[i];
                let of_run = verdict.foreground.iter().filter(|f| f.op == seen.op);
                let only = of_run.count() == 1;
                let mut of_all = all.iter_mut().filter(|m| m.op == seen.op);
                match (of_all.next(), of_all.next()) {
                    (Some(known), None) if only => known.places[group][run] = Some(i),
                    _ => {
                        let mut places: Vec<Vec<Option<usize>>> =
                            groups.iter().map(|runs| vec![None; runs.len()]).collect();
                        places[group][run] = Some(i);
                        all.push(Matched {
                            name: seen.actor.clone(),
                            op: seen.op.clone(),
                            places,
                        });
                    }
                }
            }
        }
    }
    all
}
