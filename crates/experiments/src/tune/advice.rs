//! The advice that follows from the experiments, in words, and its cost.

use record::units::GIB;
use serde::Serialize;

use crate::Spread;
use crate::tune::frontier::{Measure, Point, beats};
use crate::tune::trials::{Policy, Trial};

/// A loss below this, in seconds, isn't one: two intervals of the record.
const LOST_S: f64 = 0.1;
/// Below this, in seconds, no loss can be measured.
const NOTHING_S: f64 = 0.005;
/// From this wait on, in microseconds, an fsync counts as slowed down.
const FSYNC_US: f64 = 200_000.0;
/// The worst 100 ms are bad when they lose so much more than is usual.
const WORSE: f64 = 0.25;
/// A paced way misses the goal by more than this. Windows of a second are let lose so much more
/// (`pace`), and short runs are measured no better.
const TOLERANCE: f64 = 0.03;
/// Unpaced discards that cost so much more than the goal are too much.
const TOO_MUCH: f64 = 0.05;

/// The goal, and the present settings.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// Share of others' throughput that freeing may cost, 0 to 1.
    pub slowdown: f64,
    /// `discard_max_bytes` now.
    pub limit_bytes: u64,
    /// Whether the file system sends discards by itself now.
    pub online: bool,
    /// Bytes that each run deleted.
    pub deleted_bytes: u64,
    /// Nothing is set for what fewer runs say.
    pub least_runs: usize,
}

/// The result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Online discard slows nothing down.
    NothingStalls,
    /// It slows other I/O down, but so briefly that this may be noise. More must be deleted.
    TooLittle,
    /// It slows other I/O down, and the other trials do not differ from it by more than the noise.
    WithinNoise,
    /// Another `discard_max_bytes` is better.
    Limit,
    /// Large files are better deleted with `trimbench rm`.
    PacedRm,
    /// Discards are better sent later, paced.
    PacedFstrim,
    /// Every paced way cost others more than was asked for.
    GoalMissed,
    /// Too few runs to say anything.
    TooFewRuns,
}

/// A choice, and what it costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// The choice.
    pub choice: String,
    /// Its cost, in a sentence or two.
    pub cost: String,
}

/// The advice that follows from the experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The result.
    pub finding: Finding,
    /// The settings to make; `None` where none are needed.
    pub set: Option<Trial>,
    /// The next step, in words.
    pub text: String,
    /// Each choice's cost.
    pub costs: Vec<Cost>,
}

/// Derives the advice from the points of the trials.
pub fn advise(points: &[Point], goal: &Goal) -> Advice {
    let (mut finding, mut set, mut text) = found(points, goal);
    let few = |p: &Point| p.runs < goal.least_runs;
    let mut rests_on = points
        .iter()
        .filter(|p| Some(p.trial) == set || p.trial.is_online_at(goal.limit_bytes));
    if set.is_some() && rests_on.any(few) {
        (finding, set) = (Finding::TooFewRuns, None);
        text += " That rests on a single run, so nothing is set: give more time (--for).";
    }
    Advice {
        finding,
        set,
        text,
        costs: costs(points, goal),
    }
}

impl Point {
    /// Whether it is a paced way that cost others more than was asked for; `None` of online
    /// discard, which has no goal. `slowdown` is the goal, 0 to 1.
    pub fn misses(&self, slowdown: f64) -> Option<bool> {
        let paced = self.trial.policy != Policy::Online;
        paced.then(|| self.lost_share() > slowdown + TOLERANCE)
    }

    /// Whether the worst moment of the freeing is far from usual.
    fn is_worse(&self) -> bool {
        self.worst_loss.median - self.usual_worst_loss.median >= WORSE
    }
}

/// Whether other I/O is slowed down while space is freed so.
fn hurts(point: &Point) -> bool {
    let felt = point.lost_s.median >= LOST_S || point.worst_fsync_us.median >= FSYNC_US;
    point.stalled >= 0.5 && felt || point.lost_s.low >= LOST_S && point.is_worse()
}

/// Whether a paced way costs others no more than was asked for, and less at once than
/// the other.
fn holds(paced: &Point, unpaced: &Point, goal: &Goal) -> bool {
    paced.misses(goal.slowdown) == Some(false)
        && (beats(paced, unpaced, Measure::WorstLoss)
            || paced.lost_share() < unpaced.lost_share() / 2.0)
}

fn found(points: &[Point], goal: &Goal) -> (Finding, Option<Trial>, String) {
    let Some(now) = now(points, goal) else {
        let text = "The present setting has no run that counts: nothing is changed.".to_owned();
        return (Finding::TooFewRuns, None, text);
    };
    if !hurts(now) {
        return nothing_stalls(now, goal);
    }
    let stall = format!(
        "Online discard {}, by {} of its time for {} deleted and by {} of its throughput in the \
         worst 100 ms.",
        match goal.online {
            true => "as it is now slows down other I/O",
            false => "would slow down other I/O",
        },
        record::units::seconds(now.lost_s.median),
        record::units::bytes(goal.deleted_bytes),
        record::units::percent(now.worst_loss.median),
    );
    // Who sends no discards now needn't begin to, where that would hold others up.
    let better = better_limit(points, now).filter(|better| goal.online || !hurts(better));
    let online = better.unwrap_or(now);
    let limit_text = better.map_or(String::new(), |better| limit(now, better, goal));
    if let Some(better) = better.filter(|better| goal.online && !hurts(better)) {
        return (Finding::Limit, Some(better.trial), stall + &limit_text);
    }
    let [rm, fstrim] = [Policy::PacedRm, Policy::PacedFstrim]
        .map(|policy| of(policy, points).filter(|paced| holds(paced, online, goal)));
    let missed = missed(points, goal);
    let set = better.map(|better| better.trial);
    // What changes less comes first.
    match (rm, fstrim) {
        (Some(rm), fstrim) if goal.online => {
            let text = format!(
                "{stall}{limit_text} Leave online discard on, and delete what is large with \
                 `trimbench rm`: {}it costs others {} of their throughput while it frees, and takes \
                 {} instead of {} for as much.{}",
                match better {
                    Some(_) => "with discard_max_bytes as it is now ",
                    None => "",
                },
                lost_share(rm),
                record::units::seconds(rm.freeing_s.median),
                record::units::seconds(now.freeing_s.median),
                match fstrim {
                    Some(_) =>
                        " Where programs that you can't change delete (databases, containers), \
                         nodiscard with a paced fstrim suits as well, at the cost below: --set \
                         policies=fstrim.",
                    None => "",
                }
            ) + &missed;
            (Finding::PacedRm, set, text)
        }
        (_, Some(fstrim)) => {
            let text = format!(
                "{stall} Mount with nodiscard and trim with `trimbench fstrim` by a timer: deletions \
                 then slow down nothing, and the trimming costs {} of others' throughput while it \
                 goes on. Only with the timer, for no discards at all have a price; see below.",
                lost_share(fstrim),
            ) + &missed;
            (Finding::PacedFstrim, Some(fstrim.trial), text)
        }
        _ if set.is_some() => (Finding::Limit, set, stall + &limit_text + &missed),
        _ if all_missed(points, goal) => {
            let text = format!(
                "{stall} No paced way held the goal of {}, so nothing is changed.{missed} \
                 Allow a larger loss (--set slowdown={}), or measure more for surer figures (a larger \
                 --set size=, with a longer --for).",
                record::units::percent(goal.slowdown),
                record::units::percent_exact((2.0 * goal.slowdown).min(1.0)),
            );
            (Finding::GoalMissed, None, text)
        }
        _ => {
            let text = format!(
                "{stall} What was tried instead is no better, or within the noise of the runs: \
                 nothing is changed.{missed}"
            );
            (Finding::WithinNoise, None, text)
        }
    }
}

/// The gain of a smaller limit, in words: what differs by more than the noise.
fn limit(now: &Point, better: &Point, goal: &Goal) -> String {
    let gains = FELT.into_iter().filter(|&m| beats(better, now, m));
    let gains = gains.map(|measure| {
        let (what, shown): (_, fn(f64) -> String) = match measure {
            Measure::Freeing => ("the time of the freeing", record::units::seconds),
            Measure::Lost => ("the time that it loses", record::units::seconds),
            Measure::WorstLoss => (
                "the throughput that it loses in the worst 100 ms",
                record::units::percent,
            ),
            Measure::WorstRead => ("its longest wait", record::units::latency_us),
            Measure::LostShare => (
                "the throughput that it loses meanwhile",
                record::units::percent,
            ),
        };
        let [less, more] = [better, now].map(|point| shown(measure.of(point).median));
        format!("{what} is {less} instead of {more}")
    });
    let gains: Vec<String> = gains.collect();
    format!(
        " With discards of at most {} it suffers less: {}; so set discard_max_bytes to {}{}.",
        record::units::bytes(better.trial.limit_bytes),
        gains.join(", and "),
        better.trial.limit_bytes,
        match goal.online {
            true => "",
            false => " and mount with discard, which is off now",
        }
    )
}

/// Whether there are paced ways, and each cost others more than was asked for.
fn all_missed(points: &[Point], goal: &Goal) -> bool {
    let paced = points.iter().filter_map(|p| p.misses(goal.slowdown));
    paced.reduce(|a, b| a && b) == Some(true)
}

/// The paced ways that cost others more than was asked for.
fn missed(points: &[Point], goal: &Goal) -> String {
    let missed = points
        .iter()
        .filter(|p| p.misses(goal.slowdown) == Some(true));
    let sentence = |point: &Point| {
        let program = match point.trial.policy {
            Policy::Online => return String::new(),
            Policy::PacedRm => "trimbench rm",
            Policy::PacedFstrim => "trimbench fstrim",
        };
        format!(
            " `{program}` missed the goal: it cost others {} of their throughput, and {} were \
             asked for.",
            lost_share(point),
            record::units::percent(goal.slowdown),
        )
    };
    missed.map(sentence).collect()
}

/// A time that was lost. Less than a few milliseconds can't be measured.
fn lost(s: f64) -> String {
    match s {
        s if s < NOTHING_S => "no".to_owned(),
        s => record::units::seconds(s),
    }
}

fn nothing_stalls(now: &Point, goal: &Goal) -> (Finding, Option<Trial>, String) {
    let too_much = now.lost_share() > goal.slowdown + TOO_MUCH;
    if too_much && now.inconclusive >= 0.5 {
        let text =
            "Most runs of the present setting were inconclusive, for others were slow before \
                    anything was deleted, too: try again when the machine is quiet."
                .to_owned();
        return (Finding::TooFewRuns, None, text);
    }
    if too_much && now.is_worse() && now.lost_s.median >= NOTHING_S {
        let more = (goal.deleted_bytes as f64 * 3.0 * LOST_S / now.lost_s.median) / GIB as f64;
        let text = format!(
            "Too little was deleted to tell: {} slowed down other I/O for {} only, but took {} of its \
             throughput in the worst 100 ms; that is {}. Give --set size={}G or more.",
            record::units::bytes(goal.deleted_bytes),
            record::units::seconds(now.lost_s.median),
            record::units::percent(now.worst_loss.median),
            per_100_gib(now, goal),
            (more.ceil() as u64).next_power_of_two(),
        );
        return (Finding::TooLittle, None, text);
    }
    let seen = format!(
        "Online discard slows down nothing here: {} deleted and discarded in {}, and {} {} lost.",
        record::units::bytes(goal.deleted_bytes),
        record::units::seconds(now.freeing_s.median),
        lost(now.lost_s.median),
        match now.lost_s.median < NOTHING_S {
            true => "time of others",
            false => "of others' time",
        },
    );
    let (set, next) = match goal.online {
        true => (None, "Nothing to change."),
        false => (
            Some(now.trial),
            "It is off now; mount with discard: the drive learns of freed space at once, and no \
             timer is needed.",
        ),
    };
    (Finding::NothingStalls, set, format!("{seen} {next}"))
}

/// The measures of other I/O's loss.
const FELT: [Measure; 3] = [Measure::Lost, Measure::WorstLoss, Measure::WorstRead];

/// Mean sizes of discards that differ by less than this share are one.
const SAME_SIZE: f64 = 0.1;

/// Whether two limits led to discards of the same size, so that any difference is chance.
fn acts_alike(a: &Point, b: &Point) -> bool {
    let [a, b] = [a, b].map(|p| p.discard_bytes.median / p.discards.median);
    (a - b).abs() <= SAME_SIZE * a.max(b)
}

/// The limit with which unpaced deletions cost others less, and nothing more.
fn better_limit<'a>(points: &'a [Point], now: &Point) -> Option<&'a Point> {
    points
        .iter()
        .filter(|p| p.trial.policy == Policy::Online && !acts_alike(p, now))
        .filter(|p| FELT.iter().any(|&m| beats(p, now, m)))
        .filter(|p| !Measure::ALL.iter().any(|&m| beats(now, p, m)))
        .min_by(|a, b| f64::total_cmp(&a.lost_s.median, &b.lost_s.median))
}

/// The present setting's point.
fn now<'a>(points: &'a [Point], goal: &Goal) -> Option<&'a Point> {
    let mut all = points.iter();
    all.find(|p| p.trial.is_online_at(goal.limit_bytes))
}

/// The point of a policy that is tried with one limit alone.
fn of(policy: Policy, points: &[Point]) -> Option<&Point> {
    points.iter().find(|p| p.trial.policy == policy)
}

fn costs(points: &[Point], goal: &Goal) -> Vec<Cost> {
    let mut costs = Vec::new();
    let mut add = |choice: &str, cost: String| {
        let choice = choice.to_owned();
        costs.push(Cost { choice, cost });
    };
    if let Some(online) = now(points, goal) {
        let each = per_100_gib(online, goal);
        let cost = format!(
            "every deletion costs others {each} at once, whoever deletes; nothing to look after"
        );
        add("online discard", cost);
    }
    if let Some(rm) = of(Policy::PacedRm, points) {
        let cost = format!(
            "{} in all, spread thinly{}; what databases, containers and log rotation delete \
             themselves isn't paced",
            per_100_gib(rm, goal),
            over_goal(rm, goal)
        );
        add(
            "online discard, large things deleted with trimbench rm",
            cost,
        );
    }
    let trimming = of(Policy::PacedFstrim, points).map(|fstrim| {
        let (each, over) = (per_100_gib(fstrim, goal), over_goal(fstrim, goal));
        format!("the trimming costs others {each}, spread thinly{over}; ")
    });
    let later = "until the timer runs, the drive takes deleted data for data: more wear, and slower \
                 writes the fuller it is; thin storage gets its space back late; a timer that fails \
                 is no discard at all";
    let later = trimming.unwrap_or_default() + later;
    add("nodiscard, trimmed later by a timer", later);
    let never = "not advised: the drive copies deleted data around for good, which wears it out \
                 sooner and makes writes slow and uneven once it is full";
    add("no discard at all", never.to_owned());
    costs
}

/// `, and misses the goal`, of a way that does.
fn over_goal(point: &Point, goal: &Goal) -> &'static str {
    match point.misses(goal.slowdown) {
        Some(true) => ", and misses the goal",
        _ => "",
    }
}

/// The share of its throughput that other I/O lost: the median, with the range of several runs.
fn lost_share(point: &Point) -> String {
    let Spread { low, high, .. } = point.lost_s;
    let share = |lost_s: f64| {
        let share = lost_s / point.freeing_s.median.max(f64::MIN_POSITIVE);
        record::units::percent(share.clamp(0.0, 1.0))
    };
    let median = record::units::percent(point.lost_share());
    match point.runs {
        0 | 1 => median,
        _ => format!("{median} ({} to {})", share(low), share(high)),
    }
}

/// The cost of deleting 100 GiB for other I/O, extrapolated from a small deletion, with the range of
/// several runs. A single run has two digits.
fn per_100_gib(point: &Point, goal: &Goal) -> String {
    let gib = goal.deleted_bytes.max(1) as f64 / GIB as f64;
    let each = |s: f64| match s {
        s if s < NOTHING_S => "0 s".to_owned(),
        s if point.runs < 2 => roughly(100.0 * s / gib),
        s => record::units::seconds(100.0 * s / gib),
    };
    let Spread {
        median, low, high, ..
    } = point.lost_s;
    let range = match point.runs {
        0 | 1 => String::new(),
        _ => format!(" ({} to {})", each(low), each(high)),
    };
    match median {
        _ if high.max(median) < NOTHING_S => "no measurable time".to_owned(),
        s => format!("about {} per 100 GiB{range}", each(s)),
    }
}

/// Seconds in one or two digits, e.g. `41 s` or `7 min`.
fn roughly(s: f64) -> String {
    match s {
        s if s >= 5970.0 => format!("{:.0} h", s / 3600.0),
        s if s >= 99.5 => format!("{:.0} min", s / 60.0),
        s => {
            let digit = 10_f64.powf(s.log10().floor() - 1.0);
            let shown = record::units::seconds((s / digit).round() * digit);
            shown.replace(".0 ", " ")
        }
    }
}

#[cfg(test)]
mod tests;
