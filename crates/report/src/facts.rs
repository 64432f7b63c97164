//! The figures a verdict rests on, a labelled line each.

use ::judge::Verdict;
use ::judge::verdict::{
    Between, Control, Deletion, Dip, DipDiscards, Discard, Finding, Fit, Foreground,
    OthersDiscards, Waited, WriteFigures, Writes,
};

use crate::words::Tone;

/// More dips than this say no more than their number does.
const DIPS_SHOWN: usize = 3;

/// A labelled line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) label: &'static str,
    pub(crate) tone: Tone,
    pub(crate) text: String,
}

/// All figures the verdict has.
pub(crate) fn all(verdict: &Verdict) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(deletion) = &verdict.deletion {
        self::deletion(&mut facts, deletion);
    }
    for seen in &verdict.foreground {
        foreground(&mut facts, seen, verdict);
    }
    discard(&mut facts, verdict);
    if let Some(others) = &verdict.others {
        self::others(&mut facts, others);
    }
    if let Some(writes) = &verdict.writes {
        self::writes(&mut facts, writes);
    }
    if let Some(fit) = &verdict.fit {
        cost(&mut facts, fit);
    }
    if let Some(control) = &verdict.control {
        self::control(&mut facts, control);
    }
    if let Some(waits) = &verdict.waits {
        self::waits(&mut facts, waits);
    }
    facts
}

fn writes(facts: &mut Vec<Fact>, writes: &Writes) {
    let figures = |figures: WriteFigures| {
        let rate = format!("{}/s", record::units::bytes(figures.bytes_per_s as u64));
        match figures.lumpiness {
            Some(lumpiness) => format!("{rate} at a lumpiness of {lumpiness:.2}"),
            None => rate,
        }
    };
    let phases = [
        (writes.baseline, "before"),
        (writes.delete, "beside the deletion"),
    ];
    let phases = phases.into_iter();
    let parts: Vec<String> = phases
        .filter_map(|(part, when)| Some(format!("{} {when}", figures(part?))))
        .collect();
    let text = format!(
        "{} (standard deviation over mean, of intervals of {})",
        parts.join(", "),
        record::units::seconds(writes.interval_ms / 1e3)
    );
    fact(facts, "writes", Tone::Plain, text);
}

fn deletion(facts: &mut Vec<Fact>, deletion: &Deletion) {
    if deletion.event.is_some() {
        event(facts, deletion);
        return;
    }
    let plural = if deletion.files == 1 { "" } else { "s" };
    let text = format!(
        "{} in {} file{plural}; the calls took {}",
        record::units::bytes(deletion.bytes),
        record::units::count(deletion.files),
        record::units::seconds(deletion.seconds)
    );
    fact(facts, "deletion", Tone::Plain, text);
}

/// Adds how much an event freed, how long it took, and how its command ended.
fn event(facts: &mut Vec<Fact>, deletion: &Deletion) {
    let took = record::units::seconds(deletion.seconds);
    let freed = record::units::bytes(deletion.bytes);
    let (tone, ended) = match (deletion.exit_code, deletion.signal) {
        (Some(0), _) | (None, None) => (Tone::Plain, String::new()),
        (_, Some(signal)) => (Tone::Bad, format!("; signal {signal} ended its command")),
        (Some(code), None) => (Tone::Bad, format!("; its command exited with {code}")),
    };
    fact(
        facts,
        "event",
        tone,
        format!("the free space grew by {freed}; it took {took}{ended}"),
    );
}

/// Adds who waited in what, and what nobody could find out.
fn waits(facts: &mut Vec<Fact>, waits: &Waited) {
    let mut text = waits.sentence.clone().unwrap_or_default();
    if !waits.missing.is_empty() {
        let missing = waits.missing.join("; ");
        text += &format!(" Not found out: {missing}.");
    }
    if !text.is_empty() {
        fact(facts, "who waited", Tone::Plain, text.trim_start());
    }
}

fn fact(facts: &mut Vec<Fact>, label: &'static str, tone: Tone, text: impl Into<String>) {
    let text = text.into();
    facts.push(Fact { label, tone, text });
}

/// Whose line it is, where there are several actors.
fn whose(seen: &Foreground, verdict: &Verdict) -> String {
    if verdict.foreground.len() > 1 {
        format!("{}: ", seen.actor)
    } else {
        String::new()
    }
}

fn foreground(facts: &mut Vec<Fact>, seen: &Foreground, verdict: &Verdict) {
    let whose = whose(seen, verdict);
    if let Some(stall) = &seen.stall {
        let all = record::units::seconds(stall.seconds);
        let longest = record::units::seconds(stall.longest_s);
        let pieces = if longest == all {
            "in one piece".to_owned()
        } else {
            format!("in all, the longest {longest}")
        };
        let how = match stall.limit_us {
            // An open loop's rate is given; its waits tell.
            Some(limit) if seen.loop_kind.is_open() => {
                format!("waits above {}", record::units::latency_us(limit))
            }
            _ => format!(
                "{} of the rate was left; {} of work lost",
                record::units::percent(stall.depth),
                record::units::seconds(stall.lost_s)
            ),
        };
        let mut text = format!("{whose}{all} {pieces}; {how}");
        if let Some(worst) = stall.worst_latency_us {
            text += &format!("; longest wait {}", record::units::latency_us(worst));
        }
        fact(facts, "stall", Tone::Bad, text);
    } else if let Some(ratio) = seen
        .ops_ratio
        // An open loop keeps its rate by its nature, unless it can't.
        .filter(|&ratio| ratio <= 0.9 || !seen.loop_kind.is_open())
    {
        let hue = if ratio <= 0.9 {
            Tone::Warn
        } else {
            Tone::Plain
        };
        let mut text = format!(
            "{whose}{} of the baseline's rate while discards were processed",
            record::units::percent(ratio)
        );
        if let Some(lost) = seen.lost_s.filter(|&lost| lost > 0.0) {
            text += &format!("; {} of work lost", record::units::seconds(lost));
        }
        fact(facts, "rate kept", hue, text);
    }
    if let Some(stall) = &seen.stall_by_others {
        let text = format!(
            "{whose}{} (to {}), by discards of others",
            record::units::seconds(stall.seconds),
            record::units::percent(stall.depth)
        );
        fact(facts, "stall", Tone::Warn, text);
    }
    let kinds = [
        None,
        Some(DipDiscards::Others).filter(|_| seen.stall_by_others.is_none()),
        Some(DipDiscards::Unsure),
        Some(DipDiscards::Unknown),
        Some(DipDiscards::Before),
    ];
    for (i, kind) in kinds.into_iter().enumerate() {
        let of_kind = |dip: &&Dip| dip.discards == kind && !kinds[..i].contains(&kind);
        let some: Vec<&Dip> = seen.dips.iter().filter(of_kind).collect();
        if !some.is_empty() {
            fact(facts, "dips", Tone::Plain, dips(&some, kind, &whose));
        }
    }
    if let Some(unfinished) = &seen.unfinished {
        let plural = if unfinished.operations == 1 { "" } else { "s" };
        fact(
            facts,
            "unfinished",
            Tone::Bad,
            format!(
                "{whose}{} operation{plural} never finished; the oldest had waited {}",
                record::units::count(unfinished.operations),
                record::units::latency_us(unfinished.oldest_us)
            ),
        );
    }
}

fn dips(dips: &[&Dip], discards: Option<DipDiscards>, whose: &str) -> String {
    let mut parts: Vec<String> = dips
        .iter()
        .take(DIPS_SHOWN)
        .map(|dip| {
            format!(
                "{} at {:.1} s (to {})",
                record::units::seconds(dip.seconds),
                dip.at_s,
                record::units::percent(dip.depth)
            )
        })
        .collect();
    if dips.len() > DIPS_SHOWN {
        parts.push(format!("{} more", dips.len() - DIPS_SHOWN));
    }
    format!("{whose}{}; {}", parts.join(", "), whose_doing(discards))
}

/// Returns in words whose discards were in a dip.
fn whose_doing(discards: Option<DipDiscards>) -> &'static str {
    match discards {
        Some(DipDiscards::Unknown) => "whether there were discards isn't known",
        Some(DipDiscards::Others) => "beside discards of others",
        Some(DipDiscards::Unsure) => "beside discards that may be this deletion's",
        Some(DipDiscards::Before) => {
            "right after TRIM, without discards: a slow recovery, or something else"
        }
        None => "without discards, so not TRIM's doing",
    }
}

/// Discards that can't be the deletion's.
fn others(facts: &mut Vec<Fact>, others: &OthersDiscards) {
    let text = format!(
        "{} discarded in {}, not this deletion's: {}",
        record::units::bytes(others.bytes),
        record::units::seconds(others.active_s),
        others.why.in_words()
    );
    fact(facts, "others", Tone::Warn, text);
}

fn discard(facts: &mut Vec<Fact>, verdict: &Verdict) {
    let discard = &verdict.discard;
    if discard.commands == Some(0) || discard.bytes == Some(0) {
        let text = match verdict.others {
            Some(_) => "this deletion sent no discards",
            None => "no discards were seen",
        };
        fact(facts, "TRIM", Tone::Plain, text);
    } else {
        trim(facts, discard);
    }
    let debt = discard.debt_max_bytes.filter(|&bytes| bytes > 0);
    let first = |lag: f64| match lag {
        // The record knows it to an interval; less than a millisecond is none.
        ..1e-3 => "the first discard came at once".to_owned(),
        _ => format!(
            "the first discard came {} after the first deletion call",
            record::units::seconds(lag)
        ),
    };
    let drain = |s: f64| {
        format!(
            "paid {} after the last deletion call",
            record::units::seconds(s)
        )
    };
    let parts = [
        debt.map(|bytes| {
            format!(
                "up to {} freed and not yet discarded",
                record::units::bytes(bytes)
            )
        }),
        discard.first_discard_lag_s.map(first),
        discard.drain_s.map(drain),
    ];
    joined(facts, "debt", parts);
}

/// A line of the parts that are known; none without.
fn joined(
    facts: &mut Vec<Fact>,
    label: &'static str,
    parts: impl IntoIterator<Item = Option<String>>,
) {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        fact(facts, label, Tone::Plain, parts.join("; "));
    }
}

fn trim(facts: &mut Vec<Fact>, discard: &Discard) {
    let bound = match discard.bytes_per_s_is_lower_bound {
        true => "at least ",
        false => "",
    };
    let commands = |commands: u64| {
        let plural = if commands == 1 { "" } else { "s" };
        let mut text = format!("{} discard{plural}", record::units::count(commands));
        if let Some(mean) = discard.mean_bytes {
            text += &format!(" of {}", record::units::bytes(mean as u64));
        }
        if let Some(bytes) = discard.bytes {
            text += &format!(", {} in all", record::units::bytes(bytes));
        }
        text
    };
    let rate = |rate: f64| format!("{bound}{}", record::units::byte_rate(rate));
    let active = |s: f64| format!("busy with them for {}", record::units::seconds(s));
    let wait = |us: f64| format!("mean wait {}", record::units::latency_us(us));
    let mut parts = [
        discard.bytes_per_s.map(rate),
        discard.commands.map(commands),
        discard.active_s.map(active),
        discard.await_us.map(wait),
    ];
    if parts.iter().all(Option::is_none) {
        parts[0] = Some("what the devices did isn't known".to_owned());
    }
    joined(facts, "TRIM", parts);
}

fn cost(facts: &mut Vec<Fact>, fit: &Fit) {
    let at = fit.at_mib.map_or(String::new(), |mib| {
        let size = record::units::bytes((mib * record::units::MIB as f64) as u64);
        format!(" (at {size})")
    });
    let service = |us| {
        format!(
            "a discard occupies the drive for {}{at}",
            record::units::latency_us(us)
        )
    };
    let line = |(a, b)| {
        format!(
            "{} + {} per MiB",
            record::units::latency_us(a),
            record::units::latency_us(b)
        )
    };
    let ops = |ops: f64| {
        let range = range(fit.ops_per_discard_95, |ops| format!("{ops:.1}"));
        let depth = fit.depth;
        let at = depth.map_or(String::new(), |depth| format!(" at depth {depth}"));
        format!("{ops:.1}{range} operations completed per discard{at}")
    };
    let parts = [
        fit.service_us.map(service),
        fit.a_us.zip(fit.b_us_per_mib).map(line),
        fit.ops_per_discard.filter(|ops| ops.is_finite()).map(ops),
    ];
    joined(facts, "cost", parts);
    if let Some(text) = barrier(fit) {
        fact(facts, "barrier", Tone::Plain, text);
    }
}

/// Whether discards let others through, and the figures that say so.
fn barrier(fit: &Fit) -> Option<String> {
    let phi = fit.phi.map(|phi| (phi, fit.phi_95));
    let blocked = phi.or(fit.blocked.map(|share| (share, fit.blocked_95)));
    let (share, bounds) = blocked.filter(|(share, _)| share.is_finite()).unzip();
    let blocks = share.map(|share| {
        let range = range(bounds.flatten(), record::units::percent);
        format!(
            "a discard blocks other I/O for {}{range} of its time",
            record::units::percent(share)
        )
    });
    let word = match fit.barrier {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unclear",
    };
    match (fit.barrier, blocks) {
        (_, Some(blocks)) => Some(format!("{word}: {blocks}{}", between(fit))),
        (Some(_), None) => Some(format!("{word}{}", between(fit))),
        (None, None) => None,
    }
}

/// `; about one queue depth (8) completes between two`, where that is so.
fn between(fit: &Fit) -> String {
    match (fit.depth, fit.between()) {
        (Some(depth), Between::OneDepth) => {
            format!("; about one queue depth ({depth}) completes between two")
        }
        _ => String::new(),
    }
}

/// ` (3.1 to 4.2)`, a figure's 95 % confidence interval, where it has one.
fn range(bounds: Option<[f64; 2]>, show: impl Fn(f64) -> String) -> String {
    let told = bounds.filter(|bounds| bounds.iter().all(|x| x.is_finite()));
    told.map_or(String::new(), |[low, high]| {
        format!(" ({} to {})", show(low), show(high))
    })
}

fn control(facts: &mut Vec<Fact>, control: &Control) {
    let method = match control.method.as_deref() {
        Some(method) => format!(" ({method})"),
        None => String::new(),
    };
    let (hue, found) = match control.verdict {
        Finding::None => (Tone::Good, "no stall"),
        Finding::Slowdown => (Tone::Warn, "slower, too"),
        Finding::Stall => (Tone::Bad, "stalled, too"),
        Finding::Inconclusive => (Tone::Warn, "inconclusive"),
    };
    let mut text = format!("without discards{method}: {found}");
    for seen in &control.foreground {
        if let Some(stall) = &seen.stall {
            text += &format!(
                "; {} stalled for {}",
                seen.actor,
                record::units::seconds(stall.seconds)
            );
        }
        let lost: f64 = seen.dips.iter().map(|dip| dip.seconds).sum();
        if lost > 0.0 {
            text += &format!(
                "; {} dipped for {}",
                seen.actor,
                record::units::seconds(lost)
            );
        }
    }
    if let Some(bytes) = control.discard_bytes.filter(|&bytes| bytes > 0) {
        text += &format!(
            "; {} were discarded all the same",
            record::units::bytes(bytes)
        );
    }
    fact(facts, "control", hue, text);
}
