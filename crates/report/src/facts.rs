//! The figures a verdict rests on, a labelled line each.

use ::judge::verdict::{
    Between, Control, Deletion, Dip, DipDiscards, Discard, Finding, Fit, Foreground, Gain,
    GainFinding, OthersDiscards, Stall, Waited, WriteFigures, Writes,
};
use ::judge::{Verdict, counting};
use record::origin::Drive;

use record::units::{MIB, byte_rate, bytes, counted, latency_us, percent, seconds};

use crate::words::{self, Tone};

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
    facts.extend(verdict.gain.as_ref().and_then(gain));
    facts.extend(verdict.deletion.as_ref().map(deletion));
    for seen in &verdict.foreground {
        foreground(&mut facts, seen, verdict);
    }
    discard(&mut facts, verdict);
    facts.extend(verdict.others.as_ref().map(others));
    facts.extend(verdict.writes.as_ref().map(writes));
    facts.extend(drives(&verdict.origin.drives));
    if let Some(fit) = &verdict.fit {
        facts.extend(cost(fit));
        let text = barrier(fit, verdict.origin.drives.len());
        facts.extend(text.map(|text| fact("barrier", Tone::Plain, text)));
    }
    facts.extend(verdict.control.as_ref().map(control));
    facts.extend(verdict.waits.as_ref().and_then(waits));
    facts
}

fn fact(label: &'static str, tone: Tone, text: impl Into<String>) -> Fact {
    let text = text.into();
    Fact { label, tone, text }
}

/// A line of the parts that are known; none without.
fn joined<const N: usize>(label: &'static str, parts: [Option<String>; N]) -> Option<Fact> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| fact(label, Tone::Plain, parts.join("; ")))
}

fn writes(writes: &Writes) -> Fact {
    let figures = |figures: WriteFigures| {
        let rate = bytes(figures.bytes_per_s as u64);
        match figures.lumpiness {
            Some(lumpiness) => format!("{rate}/s ± {}", percent(lumpiness)),
            None => format!("{rate}/s"),
        }
    };
    let before = writes.baseline.map(|it| figures(it) + " before");
    let beside = writes.delete.map(|it| figures(it) + " beside the deletion");
    let parts: Vec<String> = before.into_iter().chain(beside).collect();
    let (parts, interval) = (parts.join(", "), seconds(writes.interval_ms / 1e3));
    let how = format!("(±: standard deviation of intervals of {interval})");
    fact("writes", Tone::Plain, format!("{parts} {how}"))
}

/// Returns what the drives counted in the run.
fn drives(drives: &[Drive]) -> Option<Fact> {
    let counted = |drive: &Drive| {
        let written = drive.written?;
        let whose = match drives.len() {
            1 => String::new(),
            _ => format!("{}: ", drive.name),
        };
        let times = drive.write_amplification();
        let times = times.map_or(String::new(), |times| {
            format!(": write amplification {times:.2}")
        });
        Some(format!("{whose}{}{times}", words::written(&written)?))
    };
    let all: Vec<String> = drives.iter().filter_map(counted).collect();
    let text = format!("by its own count {}", all.join("; "));
    (!all.is_empty()).then(|| fact("drive", Tone::Plain, text))
}

/// Returns what a trim of all free space gained.
fn gain(gain: &Gain) -> Option<Fact> {
    let rate = gain.rate?;
    let [low, high] = [rate.low, rate.high].map(|ratio| format!("{ratio:.2}"));
    let latency = gain.p99_us.map(|p99| {
        let [before, after] = [p99.before, p99.after].map(latency_us);
        format!("; p99 {before} before, {after} after")
    });
    let cache = gain
        .cache_bytes
        .map(|cache| format!("; fast cache of about {}", bytes(cache)));
    let text = format!(
        "writes at {} before, {} after the trim: {:.2} ({low} to {high}) times as fast{}; the \
         writers wrote {}{}",
        byte_rate(rate.before),
        byte_rate(rate.after),
        rate.ratio,
        latency.unwrap_or_default(),
        bytes(gain.written_bytes),
        cache.unwrap_or_default()
    );
    let tone = match gain.finding {
        GainFinding::Gained => Tone::Bad,
        _ => Tone::Plain,
    };
    Some(fact("gain", tone, text))
}

/// Returns how much was deleted and how long it took; of an event also how its command ended.
fn deletion(deletion: &Deletion) -> Fact {
    let (freed, took) = (bytes(deletion.bytes), seconds(deletion.seconds));
    if deletion.event.is_none() {
        let files = counted(deletion.files, "file");
        let text = format!("{freed} in {files}; the calls took {took}");
        return fact("deletion", Tone::Plain, text);
    }
    let (tone, ended) = match (deletion.exit_code, deletion.signal) {
        (Some(0), _) | (None, None) => (Tone::Plain, String::new()),
        (_, Some(signal)) => (Tone::Bad, format!("; signal {signal} ended its command")),
        (Some(code), None) => (Tone::Bad, format!("; its command exited with {code}")),
    };
    let text = format!("the free space grew by {freed}; it took {took}{ended}");
    fact("event", tone, text)
}

/// Returns who waited in what, and what nobody could find out.
fn waits(waits: &Waited) -> Option<Fact> {
    let mut text = waits.sentence.clone().unwrap_or_default();
    if !waits.missing.is_empty() {
        text += &format!(" Not found out: {}.", waits.missing.join("; "));
    }
    (!text.is_empty()).then(|| fact("waits", Tone::Plain, text.trim_start()))
}

fn foreground(facts: &mut Vec<Fact>, seen: &Foreground, verdict: &Verdict) {
    // Whose line it is, where there are several actors.
    let whose = match verdict.foreground.len() {
        0 | 1 => String::new(),
        _ => format!("{}: ", seen.actor),
    };
    // An open loop keeps its rate by its nature, unless it can't.
    let kept = |ratio: &f64| *ratio <= 0.9 || !seen.loop_kind.is_open();
    if let Some(stall) = &seen.stall {
        facts.push(fact(
            "stall",
            Tone::Bad,
            whose.clone() + &stalled(seen, stall),
        ));
    } else if let Some(ratio) = seen.ops_ratio.filter(kept) {
        let tone = if ratio <= 0.9 {
            Tone::Warn
        } else {
            Tone::Plain
        };
        let left = percent(ratio);
        let mut text =
            format!("{whose}{left} of the baseline's rate in the median interval with discards");
        if let Some(lost) = seen.lost_s.filter(|&lost| lost > 0.0) {
            text += &format!("; {} of work lost beside discards", seconds(lost));
        }
        facts.push(fact("rate kept", tone, text));
    }
    if let Some(stall) = &seen.stall_by_others {
        let (long, depth) = (seconds(stall.seconds), percent(stall.depth));
        let text = format!("{whose}{long} (to {depth}), by discards of others");
        facts.push(fact("stall", Tone::Warn, text));
    }
    let kinds = [
        None,
        Some(DipDiscards::Others).filter(|_| seen.stall_by_others.is_none()),
        Some(DipDiscards::Unsure),
        Some(DipDiscards::Unknown),
        Some(DipDiscards::Before),
        Some(DipDiscards::Partly),
        Some(DipDiscards::Small),
    ];
    for (i, kind) in kinds.into_iter().enumerate() {
        let of_kind = |dip: &&Dip| dip.discards == kind && !kinds[..i].contains(&kind);
        let some: Vec<&Dip> = seen.dips.iter().filter(of_kind).collect();
        if !some.is_empty() {
            facts.push(fact(
                "dips",
                Tone::Plain,
                whose.clone() + &dips(&some, kind),
            ));
        }
    }
    if let Some(unfinished) = &seen.unfinished {
        let operations = counted(unfinished.operations, "operation");
        let oldest = latency_us(unfinished.oldest_us);
        let text = format!("{whose}{operations} never finished; the oldest had waited {oldest}");
        facts.push(fact("unfinished", Tone::Bad, text));
    }
}

fn stalled(seen: &Foreground, stall: &Stall) -> String {
    let (all, longest) = (seconds(stall.seconds), seconds(stall.longest_s));
    let pieces = match longest == all {
        true => "in one piece".to_owned(),
        false => format!("in all, the longest {longest}"),
    };
    let how = match stall.limit_us {
        // An open loop's rate is given; its waits tell.
        Some(limit) if seen.loop_kind.is_open() => format!("waits above {}", latency_us(limit)),
        _ => {
            let (depth, lost) = (
                percent(stall.depth),
                seconds(seen.lost_s.unwrap_or(stall.lost_s)),
            );
            format!("{depth} of the rate was left; {lost} of work lost beside discards")
        }
    };
    let worst = stall.worst_latency_us.map(latency_us);
    let worst = worst.map_or(String::new(), |us| format!("; longest wait {us}"));
    format!("{all} {pieces}; {how}{worst}")
}

/// A dip to this share of the rate or more isn't one of the rate: its operations were late.
const NEARLY_ALL: f64 = 0.95;

/// Returns some dips, and whose discards were in them.
fn dips(dips: &[&Dip], discards: Option<DipDiscards>) -> String {
    let dip = |dip: &&Dip| {
        let dipped = format!("{} at {:.1} s", seconds(dip.seconds), dip.at_s);
        match dip.depth < NEARLY_ALL {
            true => format!("{dipped} (to {})", percent(dip.depth)),
            // An open loop completes as much, only later.
            false => dipped,
        }
    };
    let mut parts: Vec<String> = dips.iter().take(DIPS_SHOWN).map(dip).collect();
    if dips.len() > DIPS_SHOWN {
        parts.push(format!("{} more", dips.len() - DIPS_SHOWN));
    }
    let whose = match discards {
        Some(DipDiscards::Unknown) => "whether there were discards isn't known",
        Some(DipDiscards::Others) => "beside discards of others",
        Some(DipDiscards::Unsure) => "beside discards that may be this deletion's",
        Some(DipDiscards::Before) => {
            "right after TRIM, without discards: a slow recovery, or something else"
        }
        Some(DipDiscards::Partly) => {
            "beside discards in a part of it, so TRIM may be the cause, or something else"
        }
        Some(DipDiscards::Small) => {
            "beside small discards, so TRIM may be the cause, or something else"
        }
        None => "without discards, so not TRIM's doing",
    };
    format!("{}; {whose}", parts.join(", "))
}

/// Discards that can't be the deletion's.
fn others(others: &OthersDiscards) -> Fact {
    let (all, long) = (bytes(others.bytes), seconds(others.active_s));
    let why = others.why.in_words();
    let text = format!("{all} discarded in {long}, not this deletion's: {why}");
    fact("others", Tone::Warn, text)
}

fn discard(facts: &mut Vec<Fact>, verdict: &Verdict) {
    let discard = &verdict.discard;
    if discard.commands == Some(0) {
        let text = match verdict.others {
            Some(_) => "this deletion sent no discards",
            None => "no discards were seen",
        };
        facts.push(fact("TRIM", Tone::Plain, text));
    } else {
        facts.extend(trim(discard));
    }
    let debt = discard.debt_max_bytes.filter(|&most| most > 0).map(bytes);
    let first = |lag: f64| match lag {
        // The record knows it to an interval; less than a millisecond is none.
        ..1e-3 => "the first discard came at once".to_owned(),
        _ => {
            let lag = seconds(lag);
            format!("the first discard came {lag} after the first deletion call")
        }
    };
    let drain = discard.drain_s.map(seconds);
    let parts = [
        debt.map(|most| format!("up to {most} freed and not yet discarded")),
        discard.first_discard_lag_s.map(first),
        drain.map(|long| format!("all discarded {long} after the last deletion call")),
    ];
    facts.extend(joined("debt", parts));
}

fn trim(discard: &Discard) -> Option<Fact> {
    let bound = match discard.bytes_per_s_is_lower_bound {
        true => "at least ",
        false => "",
    };
    let in_all = |all: u64| format!("{} in all", bytes(all));
    let commands = |commands: u64| {
        let mut text = counted(commands, "discard");
        if let Some(mean) = discard.mean_bytes {
            text += &format!(" of {}", bytes(mean as u64));
        }
        if let Some(all) = discard.bytes {
            text += &format!(", {}", in_all(all));
        }
        text
    };
    let rate = |rate: f64| format!("{bound}{}", byte_rate(rate));
    let mut parts = [
        discard.bytes_per_s.map(rate),
        discard.commands.map(commands).or(discard.bytes.map(in_all)),
        busy(discard).map(|s| format!("busy with them for at most {}", seconds(s))),
        (discard.await_us).map(|us| format!("mean wait {}", latency_us(us))),
    ];
    if parts.iter().all(Option::is_none) {
        parts[0] = Some("what the devices did isn't known".to_owned());
    }
    joined("TRIM", parts)
}

/// Returns the longest time for which the devices can have been busy with discards, in seconds. It
/// is the time of the intervals with discards in service, or the sum of their waits if that is
/// less.
fn busy(discard: &Discard) -> Option<f64> {
    let waits_s = discard.await_us.zip(discard.commands);
    let waits_s = waits_s.map_or(f64::INFINITY, |(us, n)| {
        us * n as f64 / 1e6 + counting::WHOLE_S
    });
    discard.active_s.map(|active_s| active_s.min(waits_s))
}

fn cost(fit: &Fit) -> Option<Fact> {
    let size = fit.at_mib.map(|mib| bytes((mib * MIB as f64) as u64));
    let of = size.map_or(String::new(), |size| format!(" of {size}"));
    let service = fit.service_us.map(latency_us);
    let line = |(a, b)| format!("{} + {} per MiB", latency_us(a), latency_us(b));
    let ops = |ops: f64| {
        let range = range(fit.ops_per_discard_95, |ops| format!("{ops:.1}"));
        let depth = fit.depth;
        let queued = depth.map_or(String::new(), |depth| format!(" ({depth} in flight)"));
        format!("beside each, {ops:.1}{range} operations of others completed{queued}")
    };
    let parts = [
        service.map(|us| format!("a discard{of} takes {us}")),
        (fit.a_us.zip(fit.b_us_per_mib)).map(|fit| format!("one of any size {}", line(fit))),
        fit.ops_per_discard.filter(|ops| ops.is_finite()).map(ops),
    ];
    joined("cost", parts)
}

/// Whether discards let others through, and the figures that say so.
fn barrier(fit: &Fit, drives: usize) -> Option<String> {
    let shown = |share: f64, bounds| format!("{}{}", percent(share), range(bounds, percent));
    let finite = |share: &f64| share.is_finite();
    let phi = fit.phi.filter(finite).map(|phi| {
        let share = shown(phi, fit.phi_95);
        format!(": a discard blocks other I/O for {share} of its time")
    });
    let blocked = fit.blocked.filter(finite).map(|blocked| {
        let share = shown(blocked, fit.blocked_95);
        format!(": other I/O was blocked for {share} of the stall")
    });
    let blocks = phi.or(blocked);
    let word = match fit.barrier {
        Some(true) => "yes",
        Some(false) => "no",
        None => {
            let why = match drives {
                0 | 1 => why_unclear(fit),
                _ => format!("{drives} drives take turns"),
            };
            return blocks.map(|blocks| format!("unclear{blocks}, but {why}"));
        }
    };
    let between = match fit.depth.filter(|_| fit.between() == Between::OneDepth) {
        Some(depth) => format!("; about one queue depth ({depth}) completes between two"),
        None => String::new(),
    };
    Some(format!("{word}{}{between}", blocks.unwrap_or_default()))
}

/// Why the figures don't show whether each discard stops all other I/O.
fn why_unclear(fit: &Fit) -> String {
    match (fit.between(), fit.ops_per_discard, fit.depth) {
        (Between::OneDepth, ..) => {
            "too few discards came in the stall, or several drives shared them".to_owned()
        }
        (Between::Other, ..) if fit.serves_others() => {
            "the drive also wrote, and discards may have waited for its flushes".to_owned()
        }
        (_, Some(ops), Some(depth)) => {
            let range = range(fit.ops_per_discard_95, |ops| format!("{ops:.1}"));
            format!(
                "{ops:.1}{range} operations complete between two discards, where a barrier lets one \
                 queue depth ({depth}) through"
            )
        }
        _ => {
            "the stall was too short, or had too many pauses, to count the operations between two \
              discards"
                .to_owned()
        }
    }
}

/// ` (3.1 to 4.2)`, a figure's 95 % confidence interval, where it has one.
fn range(bounds: Option<[f64; 2]>, show: impl Fn(f64) -> String) -> String {
    let known = bounds.filter(|bounds| bounds.iter().all(|x| x.is_finite()));
    let shown = |[low, high]: [f64; 2]| format!(" ({} to {})", show(low), show(high));
    known.map_or(String::new(), shown)
}

fn control(control: &Control) -> Fact {
    let method = control.method.as_ref();
    let method = method.map_or(String::new(), |method| format!(" ({method})"));
    let (tone, found) = match control.verdict {
        Finding::None => (Tone::Good, "no stall"),
        Finding::Slowdown => (Tone::Warn, "slower, too"),
        Finding::Stall => (Tone::Bad, "stalled, too"),
        Finding::Inconclusive => (Tone::Warn, "inconclusive"),
    };
    let mut text = format!("without discards{method}: {found}");
    for Foreground {
        actor, stall, dips, ..
    } in &control.foreground
    {
        if let Some(stall) = stall {
            text += &format!("; {actor} stalled for {}", seconds(stall.seconds));
        }
        let lost: f64 = dips.iter().map(|dip| dip.seconds).sum();
        if lost > 0.0 {
            text += &format!("; {actor} dipped for {}", seconds(lost));
        }
    }
    if let Some(some) = control.discard_bytes.filter(|&some| some > 0) {
        text += &format!("; {} were discarded all the same", bytes(some));
    }
    fact("control", tone, text)
}

#[cfg(test)]
mod tests {
    use record::Written;

    use super::*;

    #[test]
    fn an_unclear_barrier_says_why() {
        let fit = |ops, ops_95, blocked_95| Fit {
            depth: Some(8),
            ops_per_discard: Some(ops),
            ops_per_discard_95: Some(ops_95),
            blocked: Some(0.99),
            blocked_95: Some(blocked_95),
            ..Fit::default()
        };
        let stopped = [0.99, 1.0];
        for (fit, why) in [
            (
                fit(36.0, [0.0, 73.7], stopped),
                "99 % (99 % to 100 %) of the stall, but 36.0 (0.0 to 73.7) operations complete between \
                 two discards, where a barrier lets one queue depth (8) through",
            ),
            (fit(8.0, [7.9, 8.1], stopped), "but too few discards came"),
            (
                fit(40.0, [39.0, 41.0], [0.1, 0.2]),
                "but the drive also wrote",
            ),
        ] {
            let text = barrier(&fit, 1).unwrap();
            assert!(
                text.starts_with("unclear: ") && text.contains(why),
                "{text}"
            );
        }
        let many = barrier(&fit(8.0, [7.9, 8.1], stopped), 3).unwrap();
        assert!(many.ends_with(", but 3 drives take turns"), "{many}");
    }

    #[test]
    fn drives_tell_what_they_counted() {
        let drive = |name: &str, host, flash| Drive {
            name: name.to_owned(),
            model: None,
            firmware: None,
            serial: None,
            transport: None,
            size_bytes: None,
            rotational: None,
            discard_max_bytes: None,
            life: None,
            written: Some(Written {
                host_written_bytes: host,
                flash_written_bytes: flash,
            }),
        };
        let text = |all: &[Drive]| drives(all).map(|fact| fact.text);
        let flash = drive("nvme0n1", Some(8 << 30), Some(12 << 30));
        assert_eq!(
            text(std::slice::from_ref(&flash)).as_deref(),
            Some(
                "by its own count 8.0 GiB written by the host, 12.0 GiB to flash: write \
                 amplification 1.50"
            )
        );
        let host = drive("sda", Some(8 << 30), None);
        assert!(
            text(&[flash, host.clone()])
                .unwrap()
                .ends_with("write amplification 1.50; sda: 8.0 GiB written by the host")
        );
        assert_eq!(
            text(&[Drive {
                written: None,
                ..host
            }]),
            None
        );
    }

    #[test]
    fn devices_were_busy_no_longer_than_discards_waited() {
        let text = |commands, await_us| {
            let discard = Discard {
                commands: Some(commands),
                active_s: Some(3.0),
                await_us,
                ..Discard::default()
            };
            trim(&discard).map(|fact| fact.text).unwrap_or_default()
        };
        // Ten of 75 ms, each in an interval of its own.
        assert!(text(10, Some(75e3)).contains("busy with them for at most 0.75 s"));
        // Many at a time, and waits that nobody measured.
        assert!(text(900, Some(75e3)).contains("at most 3.0 s"));
        assert!(text(10, None).contains("at most 3.0 s"));
    }
}
