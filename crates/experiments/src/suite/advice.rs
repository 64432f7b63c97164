//! The way of freeing space that slows readers down least, and its price.

use serde::Serialize;

use crate::suite::cell::Cell;
use crate::suite::drive::Drive;
use crate::suite::measure::Measure;
use crate::suite::results::{Results, Row};
use crate::suite::step::Step;

/// Stalls that differ by less count as alike, in seconds: an interval of a record.
const STALL_STEP_S: f64 = 0.1;
/// Losses that differ by less count as alike: 5 % of the reads.
const LOSS_STEP: f64 = 0.05;
/// Ways whose runs discarded so many times as much are not compared without a word.
const UNLIKE: f64 = 2.0;

/// A way of freeing space, measured beside readers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Way {
    /// The file system.
    pub file_system: &'static str,
    /// How it is mounted.
    pub mount: &'static str,
    /// The run that measured it.
    pub step: Step,
    /// Seconds for which reads stalled, of the actor that stalled for longest.
    pub stall_s: f64,
    /// Seconds of the longest stall; `None`: not known.
    pub longest_stall_s: Option<f64>,
    /// Share of the reads that were lost while space was freed, 0 to 1; `None`: not known.
    pub lost: Option<f64>,
    /// Bytes that the drive discarded during the runs.
    pub discarded: Option<f64>,
    /// Seconds that the freeing takes: of the suite's files, by this way; `None`: not known.
    pub freeing_s: Option<f64>,
    /// Rounds behind it: the fewest of any cell that measured it.
    pub rounds: usize,
}

/// The ways, best first, and what follows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// All ways, best first: by stall, then by what readers lose, then by time.
    pub ranking: Vec<Way>,
    /// The recommended policy, with its reason and its price.
    pub sentences: Vec<String>,
}

/// Ranks the ways of freeing space. `None`: no run of the suite tells anything.
pub fn advise(results: &Results) -> Option<Advice> {
    let mut ranking: Vec<Way> = Vec::new();
    for (i, row) in results.rows.iter().enumerate() {
        let mut earlier = results.rows[..i].iter();
        if earlier.all(|other| !is_mounted_alike(&other.cell, &row.cell)) {
            let runs = Step::of(&row.cell).into_iter().filter(|step| step.is_run());
            ranking.extend(runs.filter_map(|step| way(results, row, step)));
        }
    }
    ranking.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    let unknown = unknown(results, &ranking);
    let Some(best) = ranking.first() else {
        let more = more(&unknown, results)?;
        let none = "No run was conclusive, so nothing is ranked or recommended.".to_owned();
        let sentences = vec![none, more];
        return Some(Advice { ranking, sentences });
    };
    let mut sentences = match ranking.len() {
        // Where there is nothing to choose from, nothing is recommended.
        1 => vec![format!(
            "Only one way was conclusive ({}), so none is recommended.",
            best.words()
        )],
        // What is not known may be better, unless nothing can be.
        _ if !unknown.is_empty() && steps(best) != [0.0; 2] => vec![format!(
            "The best way that is known ({}) may not be the best, because other ways were not \
             conclusive, so none is recommended.",
            best.words()
        )],
        _ => vec![policy(best), reason(best, &ranking), price(best, &ranking)],
    };
    sentences.extend(once(&ranking));
    sentences.extend(unlike(&ranking));
    sentences.extend(mkfs(results, best));
    sentences.extend(more(&unknown, results));
    Some(Advice { ranking, sentences })
}

/// Whether cells differ only in how they were made.
fn is_mounted_alike(a: &Cell, b: &Cell) -> bool {
    a.kind == b.kind && a.mounting.name == b.mounting.name
}

/// A way as all cells measured it that differ only in how they were made.
fn way(results: &Results, of: &Row, step: Step) -> Option<Way> {
    let all = |step: Step, measure: Measure| {
        results.spread(step, measure, |cell| is_mounted_alike(cell, &of.cell))
    };
    let median = |step: Step, measure: Measure| Some(all(step, measure)?.median);
    let stall = all(step, Measure::Stall)?;
    let before = median(step, Measure::ReadsBefore).filter(|before| *before > 0.0);
    let lost = before.zip(median(step, Measure::ReadsDuring));
    let freeing = freeing(step);
    Some(Way {
        file_system: of.cell.kind.name(),
        mount: of.cell.mounting.name,
        step,
        stall_s: stall.median,
        longest_stall_s: median(step, Measure::LongestStall),
        lost: lost.map(|(before, during)| (1.0 - during / before).clamp(0.0, 1.0)),
        discarded: median(step, Measure::Discarded),
        freeing_s: median(freeing, Measure::Freed).or_else(|| median(freeing, Measure::Time)),
        rounds: stall.count,
    })
}

/// Returns the step that measures how long this run's way of freeing takes.
fn freeing(run: Step) -> Step {
    match run {
        Step::RunRmTrimbench => Step::RmTrimbench,
        Step::RunFstrim => Step::Fstrim,
        _ => Step::Rm,
    }
}

/// Names the runs without a conclusion whose way is not in the ranking.
fn unknown(results: &Results, ranking: &[Way]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in &results.rows {
        let (file_system, mount) = (row.cell.kind.name(), row.cell.mounting.name);
        let is_known = |step: Step| {
            let mut ways = ranking.iter();
            ways.any(|way| (way.file_system, way.mount, way.step) == (file_system, mount, step))
        };
        let runs = row.verdicts.keys().copied();
        let untold = runs.filter(|step| !is_known(*step));
        names.extend(untold.map(|step| format!("{} ({})", row.cell, step.words())));
    }
    names
}

/// The next step where runs are without a conclusion: most often too little was deleted.
fn more(unknown: &[String], results: &Results) -> Option<String> {
    let slower = match results.head.drive {
        Drive::Lab { .. } => ", a slower drive (--set lab-slower=N)",
        _ => "",
    };
    let head = &results.head;
    let data = head.plan.larger(head.drive.size_bytes());
    (!unknown.is_empty()).then(|| {
        format!(
            "Not conclusive, so not ranked: {}. This may help: {data}{slower} or a quieter machine.",
            unknown.join(", ")
        )
    })
}

/// Warns of ways that one round measured.
fn once(ranking: &[Way]) -> Option<String> {
    let once = || ranking.iter().filter(|way| way.rounds < 2);
    let who = match once().count() {
        0 => return None,
        n if n == ranking.len() => "Each way".to_owned(),
        _ => once().map(Way::words).collect::<Vec<_>>().join("; "),
    };
    Some(format!(
        "{who}: measured in one conclusive round, so chance may decide the order. Repeat the suite \
         (--set repeats=3)."
    ))
}

/// Names the ways whose runs discarded more than twice as much as those that discarded least.
fn unlike(ranking: &[Way]) -> Option<String> {
    let known = || ranking.iter().filter_map(|way| Some((way, way.discarded?)));
    let least = known().map(|(_, bytes)| bytes).min_by(f64::total_cmp)?;
    let more: Vec<String> = known()
        .filter(|(_, bytes)| *bytes > UNLIKE * least)
        .map(|(way, bytes)| format!("{} ({})", way.words(), record::units::bytes(bytes as u64)))
        .collect();
    (!more.is_empty() && least > 0.0).then(|| {
        format!(
            "Not all ways discarded alike: the least was {}, and more discards take longer. More \
             were those of {}.",
            record::units::bytes(least as u64),
            more.join(", ")
        )
    })
}

/// Whole steps of stall and of loss.
fn steps(way: &Way) -> [f64; 2] {
    [
        (way.stall_s / STALL_STEP_S).round().clamp(0.0, 1e6),
        // An unknown loss counts as a whole one.
        (way.lost.unwrap_or(1.0) / LOSS_STEP).round(),
    ]
}

/// One number that orders ways: whole steps of stall, then of loss, then time.
fn rank(way: &Way) -> f64 {
    let [stall, lost] = steps(way);
    let time = way.freeing_s.unwrap_or(1e6).clamp(0.0, 1e6);
    stall * 1e3 + lost * 10.0 + time / 1e6
}

impl Way {
    /// The way in words.
    pub fn words(&self) -> String {
        let freeing = match self.step {
            Step::RunRmTrimbench => "trimbench rm",
            Step::RunFstrim => "rm, and fstrim later",
            _ => "rm",
        };
        format!("{}, mounted {}: {freeing}", self.file_system, self.mount)
    }
}

fn policy(best: &Way) -> String {
    let then = match best.step {
        Step::RunRmTrimbench => "and delete with `trimbench rm`",
        Step::RunFstrim => "and trim with fstrim from time to time",
        _ => "with plain rm",
    };
    format!(
        "Recommended: {} mounted {}, {then}.",
        best.file_system, best.mount
    )
}

fn reason(best: &Way, ranking: &[Way]) -> String {
    let lost = best.lost.map_or_else(String::new, |lost| {
        format!(
            " and lost {} while space was freed",
            record::units::percent(lost)
        )
    });
    let own = match best.stall_s {
        stall if stall < STALL_STEP_S => format!("Reason: its reads did not stall{lost}"),
        stall => format!(
            "Reason: its reads stalled for only {}{lost}",
            record::units::seconds(stall)
        ),
    };
    match ranking.last().filter(|worst| *worst != best) {
        Some(worst) if steps(worst) == steps(best) => {
            format!("{own}; in that all ways are alike, and it takes the least time.")
        }
        Some(worst) => format!(
            "{own}; the worst way ({}) stalled them for {}.",
            worst.words(),
            record::units::seconds(worst.stall_s)
        ),
        None => format!("{own}."),
    }
}

fn price(best: &Way, ranking: &[Way]) -> String {
    let Some(own) = best.freeing_s else {
        let step = freeing(best.step).name();
        return format!("Price: not known without the step {step} (--steps).");
    };
    let fastest = ranking.iter().filter_map(|way| Some((way.freeing_s?, way)));
    let fastest = fastest.min_by(|a, b| a.0.total_cmp(&b.0));
    let compared = match fastest {
        Some((time, way)) if way != best => format!(
            "; the fastest way ({}) takes {}",
            way.words(),
            record::units::seconds(time)
        ),
        _ => "; no way is faster".to_owned(),
    };
    let later = match best.step {
        Step::RunFstrim => " Until a trim, the drive does not know what is free.",
        _ => "",
    };
    format!(
        "Price: freeing takes {}{compared}.{later}",
        record::units::seconds(own)
    )
}

/// How to make the recommended file system, where both ways were measured.
fn mkfs(results: &Results, best: &Way) -> Option<String> {
    let time = |discards: bool| {
        let rows = results.rows.iter().filter(|row| {
            row.cell.kind.name() == best.file_system && row.cell.mkfs_discards == discards
        });
        record::units::median(rows.filter_map(|row| row.median(Step::Mkfs, Measure::Time)))
    };
    let (with, without) = (time(true)?, time(false)?);
    Some(format!(
        "mkfs takes {} with discard and {} without; leave it out only on a drive that is blank.",
        record::units::seconds(with),
        record::units::seconds(without)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::drive::Member;
    use crate::suite::log::{Figures, Log, Outcome};
    use crate::suite::tests as made;

    #[test]
    fn the_least_stall_wins_and_its_price_is_told() {
        let cells = [
            "ext4/discard/discard",
            "ext4/nodiscard/nodiscard",
            "xfs/discard/discard",
        ];
        let advice = advise(&Results::of(&made::log(&cells, 2, 1.0))).unwrap();
        assert_eq!(advice.ranking.len(), 5);
        let stalls: Vec<f64> = advice.ranking.iter().map(|way| way.stall_s).collect();
        assert!(stalls.is_sorted(), "{stalls:?}");
        assert!(
            advice.sentences[0].starts_with("Recommended: "),
            "{advice:?}"
        );
        assert!(advice.sentences[1].contains("the worst way"), "{advice:?}");
        assert!(
            advice.sentences[2].contains("Price: freeing takes"),
            "{advice:?}"
        );
        assert!(advice.sentences[3].starts_with("mkfs takes"), "{advice:?}");
    }

    #[test]
    fn a_shorter_time_does_not_outweigh_a_stall() {
        let way = |stall_s: f64, lost: f64, freeing_s: f64| Way {
            file_system: "a",
            mount: "b",
            step: Step::Run,
            stall_s,
            longest_stall_s: Some(stall_s),
            lost: Some(lost),
            discarded: Some(1e9),
            freeing_s: Some(freeing_s),
            rounds: 3,
        };
        assert!(rank(&way(0.0, 0.9, 1e5)) < rank(&way(1.0, 0.0, 0.1)));
        assert!(rank(&way(0.04, 0.1, 9.0)) < rank(&way(0.0, 0.3, 1.0)));
        assert!(rank(&way(0.0, 0.11, 1.0)) < rank(&way(0.0, 0.1, 9.0)));
    }

    #[test]
    fn nothing_is_recommended_where_most_runs_are_not_conclusive() {
        let cells = ["ext4/discard/discard", "xfs/discard/discard"];
        let mut log = made::log(&cells, 1, 1.0);
        let runs = log.outcomes.iter_mut().filter(|(key, _)| key.2.is_run());
        for ((cell, _, step), outcome) in runs {
            let Outcome::Done(figures) = outcome else {
                continue;
            };
            let run = figures.run.as_mut().unwrap();
            match (cell.starts_with("ext4"), *step) {
                (true, _) => (run.stall_s, run.during_per_s) = (Some(0.0), run.before_per_s),
                (false, _) => (run.verdict, run.stall_s) = ("inconclusive".to_owned(), None),
            }
        }
        let of = |log: &Log| advise(&Results::of(log)).unwrap().sentences;
        // Two of each: ext4's are alike, and the others are named with the next step.
        let sentences = of(&log);
        assert!(sentences[1].contains("did not stall"), "{sentences:?}");
        let named = sentences.last().unwrap();
        assert!(named.contains("xfs/discard/discard (reads beside rm)"));
        assert!(named.contains("lab-slower=N"), "{named}");

        // Where the best known way costs reads something, one that isn't known may be better.
        for outcome in log.outcomes.values_mut() {
            if let Outcome::Done(Figures { run: Some(run), .. }) = outcome {
                run.during_per_s = run.before_per_s.map(|before| 0.6 * before);
            }
        }
        let sentences = of(&log);
        assert!(
            sentences[0].ends_with("other ways were not conclusive, so none is recommended."),
            "{sentences:?}"
        );
    }

    #[test]
    fn a_way_whose_runs_were_rejected_is_not_ranked_for_the_stall_they_had() {
        let mut log = made::log(
            &["ext4/discard/discard", "ext4/nodiscard/nodiscard"],
            2,
            1.0,
        );
        // Discards of others stalled them for less than anything else did.
        for ((_, round, step), outcome) in &mut log.outcomes {
            if let (Step::RunRmTrimbench, Outcome::Done(figures)) = (step, outcome) {
                let run = figures.run.as_mut().unwrap();
                run.verdict = "inconclusive".to_owned();
                run.stall_s = Some(0.1 * f64::from(*round));
            }
        }
        let advice = advise(&Results::of(&log)).unwrap();
        let ranked = |way: &Way| way.step == Step::RunRmTrimbench;
        assert!(!advice.ranking.is_empty() && !advice.ranking.iter().any(ranked));
        let said = advice.sentences.join(" ");
        assert!(!said.contains("Recommended"), "{said}");
        assert!(said.contains("so none is recommended"), "{said}");
        assert!(
            said.contains("not ranked: ext4/discard/discard (reads beside trimbench rm)"),
            "{said}"
        );
        // One round that is conclusive is what the way is known by.
        let key = ("ext4/discard/discard".to_owned(), 2, Step::RunRmTrimbench);
        if let Some(Outcome::Done(figures)) = log.outcomes.get_mut(&key) {
            figures.run.as_mut().unwrap().verdict = "stall".to_owned();
        }
        let advice = advise(&Results::of(&log)).unwrap();
        let way = advice.ranking.iter().find(|way| ranked(way)).unwrap();
        assert_eq!((way.stall_s, way.rounds), (0.2, 1));
    }

    #[test]
    fn without_a_conclusive_run_a_sentence_says_so() {
        let mut log = made::log(&["ext4/discard/discard"], 1, 1.0);
        for outcome in log.outcomes.values_mut() {
            if let Outcome::Done(Figures { run: Some(run), .. }) = outcome {
                (run.verdict, run.stall_s) = ("inconclusive".to_owned(), None);
            }
        }
        let advice = advise(&Results::of(&log)).unwrap();
        assert!(advice.ranking.is_empty());
        let [none, more] = &advice.sentences[..] else {
            panic!("{advice:?}");
        };
        assert!(none.contains("nothing is ranked or recommended"));
        assert!(more.contains("more data (--set size="), "{more}");
        // 8 GiB of files and what is beside them fill the drive.
        log.head.drive = Drive::Device(Member {
            path: "/dev/sdx".to_owned(),
            model: None,
            size_bytes: 12 << 30,
        });
        let more = &advise(&Results::of(&log)).unwrap().sentences[1];
        assert!(more.contains("a larger drive"), "{more}");
    }

    #[test]
    fn ways_of_one_round_are_named() {
        let cells = ["ext4/discard/discard", "xfs/discard/discard"];
        let said = |log: &Log| advise(&Results::of(log)).unwrap().sentences.join(" ");
        assert!(said(&made::log(&cells, 1, 1.0)).contains("Each way: measured in one"));
        let mut log = made::log(&cells, 2, 1.0);
        assert!(!said(&log).contains("one conclusive round"));
        // The second round of one way is not conclusive.
        let key = ("xfs/discard/discard".to_owned(), 2, Step::Run);
        if let Some(Outcome::Done(figures)) = log.outcomes.get_mut(&key) {
            figures.run.as_mut().unwrap().verdict = "inconclusive".to_owned();
        }
        let said = said(&log);
        let named = "xfs, mounted discard: rm: measured in one conclusive round";
        assert!(said.contains(named), "{said}");
    }

    #[test]
    fn a_way_that_discarded_more_is_named() {
        let mut log = made::log(
            &["ext4/discard/discard", "ext4/nodiscard/nodiscard"],
            1,
            1.0,
        );
        let told = |log: &Log| advise(&Results::of(log)).unwrap().sentences.join(" ");
        assert!(!told(&log).contains("discarded alike"));
        for ((_, _, step), outcome) in &mut log.outcomes {
            if let (Step::RunFstrim, Outcome::Done(figures)) = (step, outcome) {
                figures.discard_bytes = 3 << 30;
            }
        }
        let told = told(&log);
        let named = "More were those of ext4, mounted nodiscard: rm, and fstrim later (3.0 GiB).";
        assert!(told.contains(named), "{told}");
    }

    #[test]
    fn without_runs_there_is_no_advice() {
        let mut log = made::log(&["ext4/discard/discard"], 1, 1.0);
        log.outcomes.retain(|(_, _, step), _| !step.is_run());
        assert_eq!(advise(&Results::of(&log)), None);
    }
}
