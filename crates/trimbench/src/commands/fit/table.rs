//! The fitted figures, as a table with their confidence, and in words.

use record::units::percent;
use ssd::fit::{Barrier, Estimate, Figure, Fit};

/// Columns of the rows' names.
const NAME: usize = 22;

/// The whole text.
pub(super) fn of(fit: &Fit, device: &str) -> String {
    let mut text = format!(
        "What discards cost on {device}\n\n  {:<NAME$}{:>10}  {:<22}{:>10}\n",
        "a discard of", "takes", "95 % confidence", "discards"
    );
    for (at, point) in fit.points.iter().enumerate() {
        let takes = match fit.service_us.value() {
            Some(_) if point.service_us.low > 0.0 => time(point.service_us.value),
            // No longer than a larger one.
            _ => {
                let larger = fit.points[at..].iter().map(|one| one.service_us.high);
                format!("≤ {}", time(larger.fold(f64::INFINITY, f64::min)))
            }
        };
        let (size, range) = (point.size(), range(&point.service_us, time));
        let discards = record::units::count(point.discards);
        let queued = if point.queued { "  queued" } else { "" };
        text += &format!("  {size:<NAME$}{takes:>10}  {range:<22}{discards:>10}{queued}\n");
    }
    if fit.points.is_empty() {
        row(&mut text, &mib(fit.at_mib), &fit.service_us, time);
    }
    text.push('\n');
    costs(
        &mut text,
        [&fit.a_us, &fit.b_us_per_mib],
        fit.costs_in_card(),
    );
    row(&mut text, "phi, share that blocks", &fit.share.phi, percent);
    let read_us = &fit.reads.service_us;
    row(&mut text, "a read, no discards", read_us, time);
    text += &format!("  {:<NAME$}{}\n\n{}\n", "queue", queue(fit), sentence(fit));
    for note in &fit.notes {
        text += &format!("! {note}\n");
    }
    text
}

/// The cost in a sentence.
fn sentence(fit: &Fit) -> String {
    if let (Some(a), Some(b)) = (fit.a_us.value(), fit.b_us_per_mib.value()) {
        let even = match a > 0.0 && b > 0.0 {
            true => format!(
                "; beyond {} its size costs more than the discard itself",
                mib(a / b)
            ),
            false => String::new(),
        };
        return format!("TRIM costs {} + {}/MiB{even}.", time(a), time(b));
    }
    let size = mib(fit.at_mib);
    match &fit.service_us {
        Figure::Known(service) => format!("TRIM of {size} costs {}.", time(service.value)),
        Figure::AtMost { bound, .. } => {
            format!("TRIM of {size} costs the drive at most {}.", time(*bound))
        }
        Figure::Unknown { why } => format!("What TRIM costs is unknown: {why}."),
    }
}

fn mib(mib: f64) -> String {
    record::units::bytes((mib * record::units::MIB as f64) as u64)
}

/// A time with three digits: a hundredth of a millisecond counts here.
fn time(us: f64) -> String {
    let (value, unit) = match us {
        _ if !us.is_finite() => return "–".to_owned(),
        _ if us >= 999_500.0 => (us / 1e6, "s"),
        _ if us >= 999.5 => (us / 1e3, "ms"),
        _ => (us, "µs"),
    };
    let decimals = match value {
        _ if value == 0.0 || value >= 99.95 => 0,
        _ if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

fn queue(fit: &Fit) -> String {
    let seen = fit.share.seen();
    if fit.drains() {
        return "non-NCQ drain: Linux sends each TRIM alone, outside of the queue".to_owned();
    }
    match fit.share.barrier {
        Some(Barrier::Batches | Barrier::TimeLost) => format!("exclusive: a barrier; {seen}"),
        Some(Barrier::None) => format!("no barrier; {seen}"),
        None => {
            "–  not known: closed-loop readers show it that stall beside discards one at a time"
                .to_owned()
        }
    }
}

/// The two parts of the cost. Of one that isn't known, what the card assumes, and the reason once.
fn costs(text: &mut String, [a, b]: [&Figure; 2], in_card: (f64, f64)) {
    let mut whys = Vec::new();
    for (name, figure, in_card) in [
        ("a, each discard", a, in_card.0),
        ("b, each MiB", b, in_card.1),
    ] {
        let bound = figure
            .at_most()
            .map_or("–".to_owned(), |us| format!("≤ {}", time(us)));
        match figure {
            Figure::Known(_) => row(text, name, figure, time),
            _ => {
                let assumed = time(in_card);
                *text += &format!("  {name:<NAME$}{bound:>10}  the card assumes {assumed}\n");
                whys.extend(figure.why().map(|why| (&name[..1], why)));
            }
        }
    }
    match whys[..] {
        [(_, a), (_, b)] if a == b => *text += &format!("      {a}\n"),
        _ => whys
            .iter()
            .for_each(|(of, why)| *text += &format!("      {of}: {why}\n")),
    }
}

fn row(text: &mut String, name: &str, figure: &Figure, show: fn(f64) -> String) {
    let (value, more) = match figure {
        Figure::Known(known) => (show(known.value), range(known, show)),
        Figure::AtMost { bound, why } => (format!("≤ {}", show(*bound)), why.clone()),
        Figure::Unknown { why } => ("–".to_owned(), why.clone()),
    };
    *text += &format!("  {name:<NAME$}{value:>10}  {more}\n");
}

fn range(estimate: &Estimate, show: fn(f64) -> String) -> String {
    format!("{} to {}", show(estimate.low), show(estimate.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_that_is_unknown_has_its_reason_once_and_what_the_card_assumes() {
        let mut text = String::new();
        let unknown = Figure::Unknown {
            why: "one size only".to_owned(),
        };
        costs(&mut text, [&unknown, &unknown], (506.0, 8.0));
        let rows = "  a, each discard                –  the card assumes 506 µs\n  \
                    b, each MiB                    –  the card assumes 8.00 µs\n      \
                    one size only\n";
        assert_eq!(text, rows);
    }

    #[test]
    fn times_have_three_digits() {
        let shown = [0.0, 8.444, 124.4, 999.6, 1584.0, 50_123.0, 3e6].map(time);
        let expected = [
            "0 µs", "8.44 µs", "124 µs", "1.00 ms", "1.58 ms", "50.1 ms", "3.00 s",
        ];
        assert_eq!(shown, expected);
    }
}
