//! A report for a terminal.

use std::collections::BTreeMap;

use record::units as show;

use super::Subject;
use super::join::{Causes, FEW_LOOKS};
use super::observe::Observation;
use super::report::{SenderWork, Stretch, Victim, Wait, Why};
use super::sampler::Sample;
use crate::{Look, wrapped};

/// Rows of a table of waits, of senders and of other victims.
const ROWS: usize = 6;

/// The widest bar of a second.
const BAR: usize = 50;

/// At most so many bars; of more stretches, each bar stands for several.
const BARS: usize = 60;

/// The whole report: the sentence first, the evidence below.
pub fn page(why: &Why, look: Look) -> String {
    let width = look.width.min(100);
    let mut page = wrapped(&why.sentence, width, "", "");
    if let Some(victim) = why.victims.first() {
        page += "\n";
        page += &waits(victim);
        page += &bars(&why.timeline, look);
    }
    page += &senders(&why.senders);
    page += &devices(why);
    page += &others(why);
    let missing = why.missing.iter();
    let missing = missing.map(|one| format!("{}: {}", one.what, one.why));
    let parts = [
        ("What helps", why.advice.clone()),
        ("Not found out", missing.collect()),
    ];
    for (head, lines) in parts.iter().filter(|part| !part.1.is_empty()) {
        page += &format!("\n{head}\n");
        for line in lines {
            page += &wrapped(line, width, "  ", "    ");
        }
    }
    page += &footer(why);
    // Frames, names and reasons may come from a recording of another machine.
    let page = record::units::names::harmless(&page);
    if look.unicode { page } else { ascii(&page) }
}

fn waits(victim: &Victim) -> String {
    let mut text = format!(
        "Where {} spent {}{}\n",
        record::units::names::harmless(&victim.name),
        show::seconds(victim.seconds),
        match (victim.looks as f64) < FEW_LOOKS {
            true => format!(" (rough: {})", show::counted(victim.looks, "look")),
            false => String::new(),
        }
    );
    for wait in victim
        .waits
        .iter()
        .filter(|wait| shown(wait, victim))
        .take(ROWS)
    {
        let share = wait.seconds / victim.seconds.max(1e-9);
        let stack: Vec<&str> = wait.stack.iter().take(3).map(String::as_str).collect();
        text += &format!(
            "  {:>8}  {:>5}  {:<27} {:<14} {}",
            show::seconds(wait.seconds),
            show::percent(share),
            wait.cause.about(),
            wait.call.unwrap_or("-"),
            place(wait)
        );
        text.truncate(text.trim_end().len());
        text += "\n";
        if !stack.is_empty() {
            text += &format!("{:19}{}\n", "", stack.join(" ← "));
        }
    }
    text
}

/// Less than one in a thousand is noise.
fn shown(wait: &Wait, victim: &Victim) -> bool {
    wait.seconds >= victim.seconds / 1000.0
}

/// Where it waited, as far as the cause does not name it.
fn place(wait: &Wait) -> String {
    let words = Some(wait.place.words()).filter(|words| *words != wait.cause.about());
    let at = wait.at.as_deref();
    let at = at.map(|at| format!("on {}", record::units::names::shown(at)));
    let parts = words.map(str::to_owned).into_iter().chain(at);
    parts.collect::<Vec<_>>().join(" ")
}

/// A bar for each stretch of time: in discards, behind discards, blocked, on a processor.
fn bars(timeline: &[Stretch], look: Look) -> String {
    let [first, _, ..] = timeline else {
        return String::new();
    };
    let each = timeline.len().div_ceil(BARS);
    let length_s = each as f64 * first.length_s;
    let mut text = format!(
        "\nEach {}: █ in its discards  ▓ behind discards  ▒ blocked otherwise  · processor   discards in flight\n",
        show::seconds(length_s)
    );
    let width = BAR.min(look.width.saturating_sub(30));
    for chunk in timeline.chunks(each) {
        let whole = chunk.iter().map(|one| one.length_s).sum::<f64>();
        let sum = |of: fn(&Stretch) -> f64| chunk.iter().map(of).sum::<f64>() / whole;
        let mut bar = String::new();
        let mut end = 0.0;
        for (sign, share) in [
            ('█', sum(|one| one.in_discards_s)),
            ('▓', sum(|one| one.behind_discards_s)),
            ('▒', sum(|one| one.blocked_s)),
            ('·', sum(|one| one.cpu_s)),
        ] {
            end += share;
            let cells = (end.min(1.0) * width as f64).round() as usize;
            while bar.chars().count() < cells {
                bar.push(sign);
            }
        }
        let discarding = sum(|one| one.discarding_s);
        let line = format!(
            "  {:>5.*} s │{bar:<width$}│ {}",
            usize::from(length_s < 1.0),
            chunk[0].at_s,
            if discarding > 0.0 {
                show::percent(discarding.min(1.0))
            } else {
                String::new()
            }
        );
        text += line.trim_end();
        text += "\n";
    }
    text
}

fn senders(all: &[SenderWork]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut text = "\nWho sent discards\n".to_owned();
    // What took the drive for less than a hundredth of the first's time explains nothing.
    let least = all.first().map_or(0.0, |one| one.in_drive_s / 100.0);
    let shown = all.iter().filter(|one| one.in_drive_s >= least);
    let count = shown.clone().take(ROWS).count();
    for one in shown.take(ROWS) {
        let program = record::units::names::harmless(&one.program);
        let mean = show::mean_ms(one.mean_ms);
        text += &format!(
            "  {:<8} {:>9} × {:>8} {:>9}, {:>8} in the drive  {}{}\n",
            one.device,
            show::count(one.discards),
            mean,
            show::bytes(one.bytes),
            show::seconds(one.in_drive_s),
            one.reason.of(&program),
            match (&one.deletion, &one.deleted) {
                (Some(deletion), _) => format!(
                    " ← {} (pid {})",
                    record::units::names::harmless(&deletion.program),
                    deletion.pid
                ),
                (None, Some(deleted)) => format!(" ← the cleaner {}", deleted.words()),
                (None, None) => String::new(),
            }
        );
    }
    let rest = &all[count..];
    if !rest.is_empty() {
        let discards = rest.iter().map(|one| one.discards).sum();
        let in_drive_s = rest.iter().map(|one| one.in_drive_s).sum();
        text += &format!(
            "  and {} by {} more, {} in the drives\n",
            record::units::counted(discards, "discard"),
            record::units::counted(rest.len() as u64, "sender"),
            show::seconds(in_drive_s)
        );
    }
    text
}

fn devices(why: &Why) -> String {
    let mut text = String::new();
    let busy = why
        .devices
        .iter()
        .filter(|one| one.discards > 0 || one.reads + one.writes > 100);
    for (index, one) in busy.take(ROWS).enumerate() {
        if index == 0 {
            text += "\nDevices         reads  mean   writes  mean   discards  mean    flushes  mean    discarding\n";
        }
        let ms = show::mean_ms;
        text += &format!(
            "  {:<8} {:>10} {:>8} {:>8} {:>8} {:>7} {:>8} {:>7} {:>8}  {}\n",
            one.device,
            show::count(one.reads),
            ms(one.read_ms),
            show::count(one.writes),
            ms(one.write_ms),
            show::count(one.discards),
            ms(one.discard_ms),
            show::count(one.flushes),
            ms(one.flush_ms),
            show::seconds(one.discarding_s),
        );
    }
    text
}

fn others(why: &Why) -> String {
    let others = why
        .victims
        .iter()
        .skip(1)
        .filter(|one| one.blocked_s >= 0.01);
    let mut text = String::new();
    for (index, one) in others.take(ROWS).enumerate() {
        if index == 0 {
            text += "\nProcesses that waited             blocked  for discards  most of it for\n";
        }
        let most = one.waits.iter().find(|wait| wait.cause.is_blocked());
        text += &format!(
            "  {:<22} {:>7} {:>9} {:>13}  {}\n",
            record::units::names::harmless(&one.name),
            one.pid,
            show::seconds(one.blocked_s),
            show::seconds(one.discards_s),
            most.map_or("-", |wait| wait.cause.about()),
        );
    }
    text
}

fn footer(why: &Why) -> String {
    let sampling = &why.sampling;
    let is_partial = sampling.partial_turns * 10 > sampling.turns;
    let every = match sampling.spacing_s.filter(|_| is_partial) {
        Some(spacing_s) => format!("{} on average", show::seconds(spacing_s)),
        None => show::seconds(sampling.period_s),
    };
    let mut text = format!(
        "\n{} in {}, each thread every {}; {} of one processor used",
        show::counted(sampling.samples, "look"),
        show::seconds(why.seconds),
        every,
        show::percent(sampling.cpu_share),
    );
    if is_partial {
        text += "; more looks would take more than 1 %";
    }
    if sampling.lost_events > 0 {
        text += &format!("; {} lost", show::counted(sampling.lost_events, "event"));
    }
    text + "\n"
}

fn ascii(text: &str) -> String {
    let sign = |sign: char| match sign {
        '█' => '#',
        '▓' => '=',
        '▒' => '-',
        '·' => '.',
        '│' => '|',
        '←' => '<',
        '×' => 'x',
        'µ' => 'u',
        '–' => '-',
        other if other.is_ascii() => other,
        _ => '?',
    };
    text.chars().map(sign).collect()
}

/// The stacks of all waits in the folded format of flame graph tools: a line for each, its frames
/// separated by `;`, then the time in microseconds (Gregg's `flamegraph.pl`). Threads that run or
/// sleep for something else than storage have none. The kernel's own threads count too.
pub fn folded(observation: &Observation, subject: &Subject) -> String {
    let causes = Causes::of(observation, subject);
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for sample in &observation.sampled.samples {
        let all = causes.of_sample(sample);
        let blocked = all.iter().filter(|(cause, _)| cause.is_blocked());
        let seconds: f64 = blocked.map(|(_, seconds)| seconds).sum();
        if seconds > 0.0 {
            *sums.entry(frames(observation, sample)).or_default() += seconds;
        }
    }
    let line = |(frames, seconds): (&String, &f64)| format!("{frames} {:.0}\n", seconds * 1e6);
    sums.iter().map(line).collect()
}

fn frames(observation: &Observation, sample: &Sample) -> String {
    let sampled = &observation.sampled;
    let mut names = vec![sampled.threads[sample.thread].comm.as_str()];
    names.extend(sample.call.and_then(|call| call.name()));
    let functions = sampled.stacks[sample.stack].iter().rev();
    names.extend(functions.map(String::as_str));
    joined(&names)
}

/// Frames in a line that no name can break.
fn joined(names: &[&str]) -> String {
    let names = names.iter().map(|name| {
        let name = record::units::names::harmless(name);
        name.replace([';', ' ', '\n'], "_")
    });
    names.collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::frames::Reason;

    #[test]
    fn names_cannot_break_a_folded_line() {
        assert_eq!(
            joined(&["a; b\nc", "write", "submit_bio_wait"]),
            "a__b_c;write;submit_bio_wait"
        );
    }

    #[test]
    fn senders_that_took_next_to_nothing_are_one_line() {
        let one = |in_drive_s| SenderWork {
            device: "sda".to_owned(),
            reason: Reason::XfsLog,
            program: "kworker".to_owned(),
            pid: None,
            discards: 69,
            bytes: 1 << 20,
            mean_ms: None,
            longest_ms: 0.0,
            in_drive_s,
            deleted: None,
            deletion: None,
        };
        let text = senders(&[one(2.0), one(0.01), one(0.01)]);
        assert_eq!(text.matches("sda").count(), 1, "{text}");
        assert!(
            text.ends_with("and 138 discards by 2 senders more, 20.0 ms in the drives\n"),
            "{text}"
        );
    }
}
