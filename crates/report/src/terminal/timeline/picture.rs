//! One part of a run, plot by plot.

use std::ops::Range;

use ::judge::counting;
use ::judge::verdict::Foreground;
use ::record::Part;
use ::record::RunRecord;

use super::axis::{self, Events};
use super::panel::{Panel, gutter, push};
use super::window::{Window, means};
use crate::series::{self, Discards, Mark};
use crate::terminal::page::{Ink, Page, ink};

/// The drawing of one part of a run.
pub(super) struct Picture<'a> {
    pub(super) record: &'a RunRecord,
    pub(super) part: Part,
    pub(super) window: &'a Window,
    /// The top of each actor's rates.
    pub(super) highest_rates: &'a [f64],
    pub(super) discards: &'a Discards,
    /// The verdict's actors of the part.
    pub(super) foreground: &'a [Foreground],
}

impl Picture<'_> {
    pub(super) fn draw(&self, page: &mut Page) {
        let actors = self.order();
        for (n, &actor) in actors.iter().enumerate() {
            let seen = self.seen(actor);
            let marks = self.marks(actor, seen);
            if n > 0 {
                page.line(&[gutter("", false)]);
            }
            // The first actor is the one whose work matters; the others stand by.
            let rows = if n == 0 { 5 } else { 2 };
            if n == 0 || !self.keeps_its_rate(actor) {
                self.rate(page, actor, rows, &marks);
            }
            self.mark_row(page, &marks);
            self.latency(page, actor, seen);
        }
        self.trim(page);
        self.debt(page);
        axis::phases(page, self.record, self.part, self.window);
        let events = Events::of(self.record, self.window);
        events.draw_marks(page);
        axis::seconds(page, self.window);
        events.draw_legend(page);
    }

    /// Actors as the verdict orders them, then those it doesn't know.
    fn order(&self) -> Vec<usize> {
        let actors = &self.record.head.actors;
        let place = |seen: &Foreground| actors.iter().position(|actor| actor.name == seen.actor);
        let mut order: Vec<usize> = self.foreground.iter().filter_map(place).collect();
        order.dedup();
        let others = (0..actors.len()).filter(|actor| !order.contains(actor));
        let others: Vec<usize> = others.collect();
        [order, others].concat()
    }

    fn seen(&self, actor: usize) -> Option<&Foreground> {
        let name = &self.record.head.actors[actor].name;
        self.foreground.iter().find(|seen| seen.actor == *name)
    }

    /// The worst mark of each column.
    fn marks(&self, actor: usize, seen: Option<&Foreground>) -> Vec<Option<Mark>> {
        let Some(seen) = seen else {
            return vec![None; self.window.columns.len()];
        };
        let marks = series::marks(self.record, actor, seen, self.discards);
        let has = |range: &Range<usize>, mark| {
            let has = range.clone().any(|i| marks[i] == Some(mark));
            has.then_some(mark)
        };
        let worst = |range| has(range, Mark::Stall).or_else(|| has(range, Mark::Dip));
        self.window.columns.iter().map(worst).collect()
    }

    /// An open loop that never falls behind has a rate that tells nothing.
    fn keeps_its_rate(&self, actor: usize) -> bool {
        let means = means(self.record, self.window, actor);
        let known = || means.iter().flatten().copied();
        let most = known().fold(0.0, f64::max);
        self.record.head.actors[actor].loop_kind.is_open() && known().all(|rate| rate >= 0.9 * most)
    }

    fn rate(&self, page: &mut Page, actor: usize, rows: usize, marks: &[Option<Mark>]) {
        let scale = self.highest_rates[actor];
        let share = |rates: Vec<Option<f64>>| -> Vec<Option<f64>> {
            let share = |rate: f64| if scale > 0.0 { rate / scale } else { 0.0 };
            rates.into_iter().map(|rate| rate.map(share)).collect()
        };
        let means = means(self.record, self.window, actor);
        // An interval that expects a few operations often has none, which means nothing.
        let expected = scale * self.record.head.interval_ms / 1e3;
        let least = match expected < series::ENOUGH_OPERATIONS {
            true => means.clone(),
            false => self.window.least(|i| series::rate(self.record, actor, i)),
        };
        let mut labels = vec![String::new(); rows];
        labels[0] = record::units::rate(scale);
        labels[1] = self.record.head.actors[actor].name.clone();
        if rows > 2 {
            labels[rows - 1] = "0".to_owned();
        }
        let ink = |mark: &Option<Mark>| match mark {
            Some(Mark::Stall) => Ink::Red,
            Some(Mark::Dip) => Ink::Yellow,
            None => Ink::Cyan,
        };
        let panel = Panel {
            labels,
            bars: share(least),
            shade: share(means),
            inks: marks.iter().map(ink).collect(),
        };
        panel.draw(page);
    }

    fn mark_row(&self, page: &mut Page, marks: &[Option<Mark>]) {
        let stalled = marks.contains(&Some(Mark::Stall));
        let dipped = marks.contains(&Some(Mark::Dip));
        let label = match (stalled, dipped) {
            (true, true) => "stall, dip",
            (true, false) => "stall",
            (false, true) => "dip",
            (false, false) => return,
        };
        let mut line = vec![gutter(label, false)];
        for mark in marks {
            match mark {
                Some(Mark::Stall) => push(&mut line, Ink::BoldRed, '━'),
                Some(Mark::Dip) => push(&mut line, Ink::BoldYellow, '─'),
                None => push(&mut line, Ink::Plain, ' '),
            }
        }
        page.line(&line);
    }

    /// The latency on a logarithmic scale of whole decades.
    fn latency(&self, page: &mut Page, actor: usize, seen: Option<&Foreground>) {
        let latency_us = |i| series::latency_us(self.record, actor, i);
        let worst = self.window.greatest(latency_us);
        let known = || worst.iter().flatten().copied();
        let least = known().fold(f64::INFINITY, f64::min);
        let most = known().fold(0.0, f64::max);
        if most <= 0.0 {
            return;
        }
        let low = least.log10().floor();
        let high = most.log10().ceil().max(low + 1.0);
        let decade = |n: f64| record::units::latency_us(10_f64.powf(n)).replace(".0 ", " ");
        let labels = vec![
            format!("p99 {:>7}", decade(high)),
            self.record.head.actors[actor].name.clone(),
            decade(low),
        ];
        let alarming = seen.map_or(f64::INFINITY, alarming_us);
        let ink = |us: &Option<f64>| match us {
            Some(us) if *us > alarming => Ink::Red,
            _ => Ink::Yellow,
        };
        // The lowest decade's foot would be nothing; a latency is always something.
        let bar = |us: f64| ((us.log10() - low) / (high - low)).max(1e-9);
        let panel = Panel {
            labels,
            inks: worst.iter().map(ink).collect(),
            bars: worst.iter().map(|us| us.map(bar)).collect(),
            shade: Vec::new(),
        };
        panel.draw(page);
    }

    fn trim(&self, page: &mut Page) {
        let head = &self.record.head;
        if counting::nobody_counts(head) {
            page.line(&[gutter("TRIM", false), ink(Ink::Dim, " unknown")]);
            return;
        }
        let sized = !counting::without_sizes(head);
        let rates = self.window.greatest(|i| match sized {
            true => self.discards.rate(self.record, i),
            false => Some(self.commands(i)),
        });
        // A journal's own discards of a few KiB aren't what is looked for.
        let most = rates.iter().flatten().copied().fold(0.0, f64::max);
        let significant = |rate: &f64| *rate >= series::SIGNIFICANT * most;
        let rates = rates.into_iter().map(|rate| rate.filter(significant));
        let rates = rates.collect();
        let show = |rate: f64| match sized {
            true => format!("{}/s", record::units::bytes_decimal(rate as u64)),
            false => record::units::rate(rate),
        };
        bars(page, "TRIM", Ink::Magenta, rates, show);
    }

    /// Discards per second.
    fn commands(&self, interval: usize) -> f64 {
        let devices = self.discards.devices.iter();
        let all = devices.map(|&device| self.record.intervals.devices[device].discards[interval]);
        all.map(f64::from).sum::<f64>() / f64::from(self.record.intervals.seconds[interval])
    }

    fn debt(&self, page: &mut Page) {
        // An imported log doesn't tell what was freed.
        if self.record.intervals.freed_bytes.iter().all(|&n| n == 0) {
            return;
        }
        let debt = self.window.greatest(|i| Some(self.discards.debt[i] as f64));
        // A debt of at most 1 % counts as paid.
        let most = debt.iter().flatten().copied().fold(0.0, f64::max);
        let debt = debt
            .into_iter()
            .map(|debt| debt.filter(|&debt| debt > 0.01 * most));
        let show = |bytes: f64| record::units::bytes(bytes as u64);
        bars(page, "debt", Ink::Blue, debt.collect(), show);
    }
}

/// A latency that the baseline had nothing like, in microseconds.
fn alarming_us(seen: &Foreground) -> f64 {
    let p99 = seen.baseline.p99_us.unwrap_or(f64::INFINITY);
    (10.0 * p99).max(seen.baseline.max_us.unwrap_or(0.0))
}

/// Two rows of bars from 0; one row that says so where there is nothing.
fn bars(
    page: &mut Page,
    name: &str,
    hue: Ink,
    values: Vec<Option<f64>>,
    show: impl Fn(f64) -> String,
) {
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        page.line(&[gutter(name, false), ink(Ink::Dim, " none")]);
        return;
    }
    Panel {
        labels: vec![show(most), name.to_owned()],
        inks: vec![hue; values.len()],
        bars: values.into_iter().map(|v| v.map(|v| v / most)).collect(),
        shade: Vec::new(),
    }
    .draw(page);
}
