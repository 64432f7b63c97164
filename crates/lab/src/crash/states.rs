//! Which contents a drive may have after a power cut.
//!
//! Between two flushes a drive holds all that the first one covered, and any part of the writes
//! since. It keeps those in its cache and writes them out in an order of its own. Of up to
//! [`EXHAUSTIVE`] such writes every subset is a state. Of more writes there is a state for each in
//! order, as if the drive had written out all up to it. There are as many states drawn by chance,
//! half of them with a torn write.

use ssd::Rng;

use super::read::What;

/// The most writes between two flushes of which every subset is tried.
const EXHAUSTIVE: usize = 4;

/// The fate of one write that no flush covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landed {
    /// Nothing of it is on the drive.
    Lost,
    /// All of it.
    Whole,
    /// This many units of [`Torn`], from its beginning.
    Part(u32),
}

/// The unit that a drive writes whole even when its power is cut, in bytes: 512 or 4096.
pub type Torn = u32;

/// A drive's contents after a power cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The number of writes and discards that a flush covers.
    pub durable: usize,
    /// The fate of those after them.
    pub landed: Vec<Landed>,
    /// The last mark before the power was cut.
    pub mark: Option<String>,
}

impl State {
    /// A description, e.g. `after 120 writes, 3 of 7 later ones`.
    pub fn name(&self) -> String {
        let landed = self.landed.iter().filter(|one| **one == Landed::Whole);
        let torn = self.landed.iter().any(|one| matches!(one, Landed::Part(_)));
        format!(
            "after {} writes, {} of {} later ones{}",
            self.durable,
            landed.count(),
            self.landed.len(),
            if torn { ", one torn" } else { "" }
        )
    }
}

/// The stretch between two flushes.
struct Stretch {
    durable: usize,
    /// The pending writes' lengths in bytes; 0 for a discard. With the mark before each.
    pending: Vec<(u64, Option<String>)>,
    /// The last mark before its end.
    mark: Option<String>,
    /// The number of pending writes that had arrived before the mark from which cuts are wanted.
    early: usize,
}

/// Returns the states of a log, in the order of the cuts: at most `most`, spread evenly over all.
///
/// `from`: only cuts after the first mark with this text. `torn`: also states in which a write is
/// torn at this unit.
pub fn states(
    records: &[What],
    from: Option<&str>,
    torn: Option<Torn>,
    most: usize,
    seed: u64,
) -> Vec<State> {
    let mut rng = Rng::new(seed);
    let mut all: Vec<State> = Vec::new();
    for stretch in stretches(records, from) {
        // A stretch that goes on where the one before ended begins with the same content.
        let new = of(&stretch, torn, &mut rng);
        all.extend(
            new.into_iter()
                .filter(|state| {
                    !all.last()
                        .is_some_and(|last| last == state || is_same_content(last, state))
                })
                .collect::<Vec<_>>(),
        );
    }
    if all.len() <= most {
        return all;
    }
    let step = all.len() as f64 / most as f64;
    (0..most)
        .map(|n| all[(n as f64 * step) as usize].clone())
        .collect()
}

fn is_same_content(one: &State, other: &State) -> bool {
    let whole = |state: &State| {
        let landed = state.landed.iter().take_while(|one| **one == Landed::Whole);
        let landed = landed.count();
        let rest_is_lost = state.landed[landed..]
            .iter()
            .all(|one| *one == Landed::Lost);
        rest_is_lost.then_some(state.durable + landed)
    };
    whole(one).is_some() && whole(one) == whole(other) && one.mark == other.mark
}

fn stretches(records: &[What], from: Option<&str>) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let mut changes: Vec<(u64, Option<String>)> = Vec::new();
    let (mut durable, mut mark) = (0_usize, None);
    let mut begun = from.is_none().then_some(0);
    let mut end =
        |durable: usize, changes: &[(u64, Option<String>)], mark: &Option<String>, begun: usize| {
            stretches.push(Stretch {
                durable,
                pending: changes[durable.min(changes.len())..].to_vec(),
                mark: mark.clone(),
                early: begun.saturating_sub(durable),
            });
        };
    for what in records {
        match what {
            What::Wrote { len, .. } => changes.push((*len, mark.clone())),
            What::Zeroed { .. } => changes.push((0, mark.clone())),
            What::Flushed { covers } => {
                if let Some(begun) = begun {
                    end(durable, &changes, &mark, begun);
                }
                durable = durable.max(usize::try_from(*covers).unwrap_or(usize::MAX));
            }
            What::Mark(text) => {
                if begun.is_none() && from == Some(text.as_str()) {
                    begun = Some(changes.len());
                }
                mark = Some(text.clone());
            }
        }
    }
    if let Some(begun) = begun {
        end(durable, &changes, &mark, begun);
    }
    stretches
}

fn of(stretch: &Stretch, torn: Option<Torn>, rng: &mut Rng) -> Vec<State> {
    let n = stretch.pending.len();
    let state = |landed: Vec<Landed>, mark: &Option<String>| State {
        durable: stretch.durable,
        landed,
        mark: mark.clone(),
    };
    let whole = |yes: bool| if yes { Landed::Whole } else { Landed::Lost };
    let mut states = Vec::new();
    if n <= EXHAUSTIVE {
        for subset in 0..1_u32 << n {
            let landed = (0..n).map(|one| whole(subset >> one & 1 == 1)).collect();
            states.push(state(landed, &stretch.mark));
        }
    } else {
        for first in stretch.early.min(n)..=n {
            // The power was cut before the next one came.
            let landed = (0..n).map(|one| whole(one < first)).collect();
            let next = stretch.pending.get(first).map(|(_, mark)| mark);
            states.push(state(landed, next.unwrap_or(&stretch.mark)));
        }
        for _ in 0..n {
            let landed = (0..n).map(|_| whole(rng.unit() < 0.5)).collect();
            states.push(state(landed, &stretch.mark));
        }
    }
    let Some(unit) = torn else { return states };
    for _ in 0..n.div_ceil(2) {
        let mut landed: Vec<Landed> = (0..n).map(|_| whole(rng.unit() < 0.5)).collect();
        let one = ((rng.unit() * n as f64) as usize).min(n - 1);
        let units = u32::try_from(stretch.pending[one].0 / u64::from(unit)).unwrap_or(u32::MAX);
        // A write of a single unit is written whole or not at all.
        if units > 1 {
            landed[one] = Landed::Part(1 + (rng.unit() * f64::from(units - 1)) as u32);
            states.push(state(landed, &stretch.mark));
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrote(at: u64) -> What {
        What::Wrote {
            at,
            len: 4096,
            data: 0,
        }
    }

    fn flushed(covers: u64) -> What {
        What::Flushed { covers }
    }

    #[test]
    fn what_a_flush_covered_is_there_and_the_rest_in_every_subset() {
        let records = [
            wrote(0),
            flushed(1),
            What::Mark("one".to_owned()),
            wrote(1),
            wrote(2),
            flushed(3),
        ];
        let all = states(&records, None, None, 1000, 1);
        let contents: Vec<(usize, Vec<Landed>)> =
            all.iter().map(|s| (s.durable, s.landed.clone())).collect();
        use Landed::{Lost, Whole};
        assert_eq!(
            contents,
            [
                (0, vec![Lost]),
                (0, vec![Whole]),
                // With the mark it is another state, for more must be there.
                (1, vec![Lost, Lost]),
                (1, vec![Whole, Lost]),
                (1, vec![Lost, Whole]),
                (1, vec![Whole, Whole]),
            ]
        );
        assert_eq!(all[0].mark, None);
        assert_eq!(all[5].mark.as_deref(), Some("one"));
        let later = states(&records, Some("one"), None, 1000, 1);
        assert!(later.iter().all(|state| state.durable >= 1), "{later:?}");
        let mut records: Vec<What> = (0..9).map(wrote).collect();
        records.insert(6, What::Mark("late".to_owned()));
        let late = states(&records, Some("late"), None, 1000, 1);
        assert!(
            late.iter()
                .all(|state| state.mark.as_deref() == Some("late"))
        );
    }

    #[test]
    fn a_flush_that_was_not_done_covers_nothing() {
        let records = [wrote(0), What::Mark("synced".to_owned()), wrote(1)];
        let all = states(&records, None, None, 1000, 1);
        let lost = all
            .iter()
            .find(|s| s.landed.iter().all(|l| *l == Landed::Lost));
        assert_eq!(lost.unwrap().mark.as_deref(), Some("synced"));
    }

    #[test]
    fn many_writes_are_cut_in_order_by_chance_and_torn_and_a_seed_repeats_it() {
        let records: Vec<What> = (0..20).map(wrote).collect();
        let all = states(&records, None, Some(512), 1000, 7);
        assert!(all.len() > 21 + 20, "{}", all.len());
        let parts = all.iter().flat_map(|state| &state.landed);
        let parts: Vec<u32> = parts
            .filter_map(|one| match one {
                Landed::Part(units) => Some(*units),
                _ => None,
            })
            .collect();
        assert!(!parts.is_empty() && parts.iter().all(|units| (1..8).contains(units)));
        assert_eq!(all, states(&records, None, Some(512), 1000, 7));
        assert_ne!(all, states(&records, None, Some(512), 1000, 8));
        // 4 KiB can't be torn at 4 KiB.
        let whole = states(&records, None, Some(4096), 1000, 7);
        let torn = |state: &State| state.landed.iter().any(|l| matches!(l, Landed::Part(_)));
        assert!(!whole.iter().any(torn));
        assert_eq!(states(&records, None, None, 10, 7).len(), 10);
    }
}
