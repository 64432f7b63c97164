//! The waits of the actors, in a sentence.

use record::units::seconds;
use record::waits::{ActorWaits, Cause, DELETER, PhaseWaits, Waits};
use record::{Part, PhaseName, RunRecord};

use crate::verdict::{Waited, Waiter};

/// A wait is worth a word from this share of an actor's time on, or
const SHARE: f64 = 0.02;
/// from so many seconds on.
const SECONDS: f64 = 0.02;

/// More actors than this are counted and not named.
const NAMED: usize = 6;

/// The waits of a record's actors; `None` where nobody watched them.
pub(super) fn waited(record: &RunRecord) -> Option<Waited> {
    let waits = record.waits.as_ref()?;
    let actors = waits.actors.iter().map(|one| Waiter {
        actor: one.actor.clone(),
        phases: one.phases.clone(),
    });
    Some(Waited {
        sentence: sentence(waits, &unseen(record, waits)),
        actors: actors.collect(),
        missing: waits.missing.clone(),
    })
}

/// `deleter ran for 2.0 s and waited 1.9 s in 45 discards of its own (unlinkat); …`
fn sentence(waits: &Waits, unseen: &[String]) -> Option<String> {
    let seen = |actor| Some((actor, ActorWaits::phase(actor, PhaseName::Delete)?));
    let mut seen: Vec<(&ActorWaits, &PhaseWaits)> = waits.actors.iter().filter_map(seen).collect();
    // Those who waited in their own discards first, then by the share of their time.
    let rank = |phase: &PhaseWaits| {
        let share = |of: fn(Cause) -> bool| phase.sum_s(of) / phase.seconds.max(1e-9);
        let own = counts(phase, |cause| cause == Cause::InDiscards);
        (own, share(Cause::is_discards), share(Cause::is_blocked))
    };
    seen.sort_by(|a, b| {
        let (a, b) = (rank(a.1), rank(b.1));
        b.partial_cmp(&a).unwrap_or(std::cmp::Ordering::Equal)
    });
    let rest = seen.len().saturating_sub(NAMED);
    let named = seen.iter().take(NAMED);
    let mut clauses: Vec<String> = named.map(|(actor, phase)| clause(actor, phase)).collect();
    if rest > 0 {
        clauses.push(format!("{rest} more actors waited less"));
    }
    clauses.extend(unseen.iter().cloned());
    (!clauses.is_empty()).then(|| clauses.join("; ") + ".")
}

/// Actors that no look found at work during the deletion, and that sent no discards themselves.
fn unseen(record: &RunRecord, waits: &Waits) -> Vec<String> {
    let mut deletions = record.deletions.iter();
    let took = deletions.find(|one| one.part == Part::Main);
    let took = took.map(|one| format!(" in {}", seconds(one.seconds)));
    let took = took.unwrap_or_default();
    let there = waits.actors.iter();
    let gone = there.filter(|actor| {
        let worked = [PhaseName::Delete, PhaseName::Prepare];
        actor.actor == DELETER && worked.iter().all(|&name| actor.phase(name).is_none())
    });
    gone.map(|actor| format!("{} was done{took}, before a look at it", actor.actor))
        .collect()
}

/// Whether waits of some causes are worth a word.
fn counts(phase: &PhaseWaits, of: impl Fn(Cause) -> bool) -> bool {
    let seconds = phase.sum_s(of);
    seconds >= SECONDS || seconds > 0.0 && seconds >= SHARE * phase.seconds
}

fn clause(actor: &ActorWaits, phase: &PhaseWaits) -> String {
    let name = &actor.actor;
    let whole = seconds(phase.seconds);
    let own = |cause| cause == Cause::InDiscards;
    let behind = |cause| cause == Cause::BehindDiscards;
    let mut parts = Vec::new();
    if counts(phase, own) {
        let discards: u64 = phase.waits.iter().map(|wait| wait.discards).sum();
        let many = match discards {
            0 => "discards".to_owned(),
            count => record::units::counted(count, "discard"),
        };
        let (waited, call) = (seconds(phase.sum_s(own)), call(phase, Cause::InDiscards));
        parts.push(format!("{waited} in {many} of its own{call}"));
    }
    if counts(phase, behind) {
        let (waited, call) = (
            seconds(phase.sum_s(behind)),
            call(phase, Cause::BehindDiscards),
        );
        parts.push(format!("{waited} behind discards{call}"));
    }
    let others = |cause: Cause| cause.is_blocked() && !cause.is_discards();
    let most = phase.waits.iter().find(|wait| others(wait.cause));
    if let Some(most) = most.filter(|most| counts(phase, |cause| cause == most.cause)) {
        let waited = seconds(phase.sum_s(|cause| cause == most.cause));
        let (what, call) = (most.cause.about(), call(phase, most.cause));
        parts.push(format!("{waited} for {what}{call}"));
    }
    let threads = match phase.threads {
        0 | 1 => String::new(),
        count => format!(" ({count} threads)"),
    };
    match parts.is_empty() {
        true => format!("{name}{threads} waited for no storage in {whole}"),
        false => format!(
            "{name}{threads} ran for {whole} and waited {}",
            listed(&parts)
        ),
    }
}

/// The call of the longest wait of a cause: ` (unlinkat)`.
fn call(phase: &PhaseWaits, cause: Cause) -> String {
    let mut waits = phase.waits.iter().filter(|wait| wait.cause == cause);
    let call = waits.next().and_then(|wait| wait.call.as_deref());
    call.map_or(String::new(), |call| format!(" ({call})"))
}

fn listed(parts: &[String]) -> String {
    match parts {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => parts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::waits::Wait;

    fn wait(cause: Cause, call: Option<&str>, seconds: f64, discards: u64) -> Wait {
        Wait {
            cause,
            call: call.map(str::to_owned),
            seconds,
            share: 0.0,
            looks: 1,
            discards,
        }
    }

    fn actor(name: &str, threads: u64, waits: Vec<Wait>) -> ActorWaits {
        ActorWaits {
            actor: name.into(),
            phases: vec![PhaseWaits {
                phase: PhaseName::Delete,
                part: Part::Main,
                seconds: waits.iter().map(|wait| wait.seconds).sum(),
                threads,
                waits,
            }],
            ..ActorWaits::default()
        }
    }

    fn said(actors: Vec<ActorWaits>) -> Option<String> {
        let waits = Waits {
            actors,
            ..Waits::default()
        };
        sentence(&waits, &[])
    }

    #[test]
    fn the_deleter_comes_first_and_everybody_has_a_clause() {
        let reader = vec![
            wait(Cause::BehindDiscards, Some("pread"), 20.0, 0),
            wait(Cause::Io, Some("pread"), 4.0, 0),
        ];
        let deleter = vec![
            wait(Cause::InDiscards, Some("unlinkat"), 1.9, 45),
            wait(Cause::Cpu, None, 0.1, 0),
        ];
        let idle = vec![wait(Cause::Sleep, None, 3.0, 0)];
        let sentence = said(vec![
            actor("reader", 8, reader),
            actor("canary", 1, idle),
            actor("deleter", 1, deleter),
        ]);
        assert_eq!(
            sentence.unwrap(),
            "deleter ran for 2.0 s and waited 1.9 s in 45 discards of its own (unlinkat); reader \
             (8 threads) ran for 24.0 s and waited 20.0 s behind discards (pread) and 4.0 s for its own \
             reads and writes (pread); canary waited for no storage in 3.0 s."
        );
    }

    #[test]
    fn many_actors_are_counted_and_none_make_no_sentence() {
        assert_eq!(said(Vec::new()), None);
        let idle = || actor("one", 1, vec![wait(Cause::Sleep, None, 1.0, 0)]);
        let sentence = said((0..9).map(|_| idle()).collect()).unwrap();
        assert!(
            sentence.ends_with("3 more actors waited less."),
            "{sentence}"
        );
    }
}
