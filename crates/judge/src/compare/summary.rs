//! A comparison in sentences.

use super::comparison::{Basis, Change, ChangeFinding, Compared, Doubt, GroupSummary};
use super::figure::Figure;
use crate::verdict::{Finding, Verdict};
use record::Head;

/// Fewer repeats than these tell little of how runs scatter.
const FEW: usize = 3;

/// Returns one sentence for each group but the first.
pub(super) fn sentences(groups: &[GroupSummary], figures: &[Compared]) -> Vec<String> {
    let Some((reference, others)) = groups.split_first() else {
        return Vec::new();
    };
    let each = others.iter().enumerate();
    each.map(|(i, group)| sentence(reference, group, i, figures))
        .collect()
}

/// Returns a sentence with the main figures: lost time, stall, baseline rate and TRIM rate, as far
/// as they were measured.
fn sentence(
    reference: &GroupSummary,
    group: &GroupSummary,
    i: usize,
    figures: &[Compared],
) -> String {
    let mut clauses = Vec::new();
    let foreground = [Figure::Lost, Figure::Stall, Figure::BaselineRate];
    // The fastest actor of the reference comes first.
    let both = |f: &&Compared| [0, i + 1].iter().all(|&side| f.sides[side].value.is_some());
    let first = figures.iter().filter(both).find_map(|f| f.actor.clone());
    for figure in foreground {
        let mut all = figures.iter();
        let found = all.find(|f| f.figure == figure && f.actor == first);
        clauses.extend(found.and_then(|f| clause(f, &f.changes[i], i)));
    }
    let first = first.filter(|_| !clauses.is_empty());
    let trim = figures.iter().find(|f| f.figure == Figure::TrimRate);
    clauses.extend(trim.and_then(|f| clause(f, &f.changes[i], i)));
    let (group, reference) = (&group.name, &reference.name);
    if clauses.is_empty() {
        return format!("{group} and {reference} have no figure in common that matters.");
    }
    let whose = first.map_or(String::new(), |actor| format!(" ({actor})"));
    format!(
        "{group} against {reference}{whose}: {}.",
        clauses.join("; ")
    )
}

fn clause(figure: &Compared, change: &Change, i: usize) -> Option<String> {
    let what = match figure.figure {
        Figure::Lost => "lost time",
        Figure::Stall => "stall",
        Figure::BaselineRate => "baseline rate",
        _ => "TRIM rate",
    };
    figure.sides.first()?.value?;
    figure.sides.get(i + 1)?.value?;
    let shown = figure.shown();
    let (before, after) = (&shown[0], &shown[i + 1]);
    if let Some(words) = change.in_words() {
        return Some(match change.finding {
            ChangeFinding::Same => format!("{what} {words}"),
            _ => format!("{what} {before} → {after} ({words})"),
        });
    }
    let bound = change.bound();
    let known = match (change.relative, change.factors()) {
        (Some(_), _) if change.is_from_next_to_nothing() => String::new(),
        (_, Some([Some(times), ..])) => format!(" ({bound}{times:.1} times)"),
        (Some(relative), _) => {
            let sign = if relative > 0.0 { "+" } else { "−" };
            format!(" ({bound}{sign}{})", record::units::percent(relative.abs()))
        }
        (None, _) => String::new(),
    };
    Some(format!("{what} {before} → {after}{known}"))
}

const ONE_EACH: &str = "One run each: the intervals are those of the noise within a run. How much runs \
    differ from one to the next isn't known, and is often more; repeat each (3 to 5 times) before \
    blaming what was changed.";
const TOO_FEW: &str = "Where one run can't tell, it has fewer than about eight independent intervals of \
    the figure, because it is short or neighbouring intervals resemble each other: repeat the runs.";

/// Names two records that are of one run.
fn same_run(groups: &[GroupSummary], heads: &[Vec<&Head>]) -> Option<String> {
    let names = groups.iter().flat_map(|group| &group.runs);
    let runs: Vec<(&str, &Head)> = names
        .map(|run| run.name.as_str())
        .zip(heads.iter().flatten().copied())
        .collect();
    let is_same = |a: &Head, b: &Head| match (&a.run, &b.run) {
        (Some(a), Some(b)) => a.id == b.id,
        _ => a == b && a.started_unix_s > 0.0,
    };
    let pairs = runs.iter().enumerate().flat_map(|(i, first)| {
        let later = runs[i + 1..].iter();
        later.map(move |second| (first, second))
    });
    let mut same = pairs.filter(|(first, second)| is_same(first.1, second.1));
    same.next().map(|((first, _), (second, _))| {
        format!("{first} and {second} are records of the same run: give another run.")
    })
}

/// Names the runs that don't count, and those without figures of a stall.
fn left_out(groups: &[GroupSummary]) -> Vec<String> {
    let runs = || {
        groups
            .iter()
            .flat_map(|g| g.runs.iter().map(move |run| (g, run)))
    };
    let names = |out: bool| {
        let open = runs().filter(|(_, run)| run.verdict == Finding::Inconclusive);
        let some = open.filter(|(group, run)| group.leaves_out(run) == out);
        some.map(|(_, run)| run.name.as_str()).collect::<Vec<_>>()
    };
    let [out, without] = [true, false].map(|out| names(out).join(", "));
    let mut notes = Vec::new();
    if !out.is_empty() {
        notes.push(format!("Inconclusive, so left out of all figures: {out}."));
    }
    if !without.is_empty() {
        notes.push(format!(
            "Inconclusive, so without figures of a stall: {without}."
        ));
    }
    notes
}

/// Names the runs whose figures of discards may include others'.
fn beside_others(groups: &[GroupSummary], verdicts: &[Vec<&Verdict>]) -> Option<String> {
    let runs = groups.iter().flat_map(|group| &group.runs);
    let runs = runs.zip(verdicts.iter().flatten());
    let names: Vec<&str> = runs
        .filter(|(_, verdict)| verdict.others.is_some())
        .map(|(run, _)| run.name.as_str())
        .collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("Figures of discards may include those of others, which came beside: {names}.")
    })
}

/// Names the actors that a single group has, so that nothing compares them.
fn alone(groups: &[GroupSummary], figures: &[Compared]) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for figure in figures {
        let mut with = figure
            .sides
            .iter()
            .zip(groups)
            .filter(|one| one.0.value.is_some());
        if let (Some(actor), Some((_, group))) = (&figure.actor, with.next())
            && !has_two(figures, figure)
        {
            names.push(format!("{actor} ({})", group.name));
        }
    }
    names.dedup();
    let names = names.join(", ");
    (!names.is_empty()).then(|| format!("Not compared, because a single group has them: {names}."))
}

/// Whether two groups at least have figures of this one's actor, with its operation.
fn has_two(figures: &[Compared], of: &Compared) -> bool {
    let own = figures
        .iter()
        .filter(|one| (&one.actor, &one.op) == (&of.actor, &of.op));
    let known = |one: &Compared| one.sides.iter().filter(|side| side.value.is_some()).count();
    of.actor.is_none() || own.map(known).max() > Some(1)
}

/// Returns the notes that a reader of the figures needs.
pub(super) fn notes(
    groups: &[GroupSummary],
    figures: &[Compared],
    heads: &[Vec<&Head>],
    verdicts: &[Vec<&Verdict>],
) -> Vec<String> {
    let mut notes: Vec<String> = same_run(groups, heads).into_iter().collect();
    notes.extend(left_out(groups));
    notes.extend(beside_others(groups, verdicts));
    notes.extend(alone(groups, figures));
    let of = |runs: std::ops::Range<usize>| -> Vec<&str> {
        let groups = groups
            .iter()
            .filter(|group| runs.contains(&group.counted().count()));
        groups.map(|group| group.name.as_str()).collect()
    };
    let (single, few) = (of(1..2), of(2..FEW));
    if single.len() == groups.len() {
        notes.push(ONE_EACH.to_owned());
    } else if !single.is_empty() {
        let single = single.join(", ");
        notes.push(format!(
            "{single}: a single run, taken to scatter as the repeats of the other group do."
        ));
    }
    let mut changes = figures.iter().flat_map(|figure| &figure.changes);
    if changes.any(|change| change.why == Some(Doubt::TooFew)) {
        notes.push(TOO_FEW.to_owned());
    }
    if !few.is_empty() {
        let few = few.join(", ");
        notes.push(format!(
            "{few}: two repeats hardly tell how runs scatter, so the intervals are wide."
        ));
    }
    let lacking = figures.iter().any(|figure| {
        let mut sides = figure.sides.iter().zip(groups);
        sides.any(|(side, group)| {
            let counted = side.runs.iter().zip(&group.runs);
            let mut counted = counted.filter(|(_, run)| !group.leaves_out(run));
            side.value.is_some() && counted.any(|(value, _)| value.is_none())
        })
    });
    if lacking {
        notes.push("Some runs of a group lack figures that others have; the others count.".into());
    }
    let changes = figures.iter().flat_map(|figure| &figure.changes);
    let sampled = changes.filter(|change| !matches!(change.basis, Basis::None | Basis::Counted));
    let sampled = sampled.count();
    if sampled > 1 {
        notes.push(format!(
            "Each of the {sampled} figures is compared for itself, at 95 %: up to one in twenty that \
             are equal is called different."
        ));
    }
    notes
}
