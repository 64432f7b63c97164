//! The charts: what is drawn into the frame of each.

use super::axis::{Axis, COLOURS, Stroke};
use super::frame::{Frame, Medium};
use super::ticks;
use crate::charts::{Chart, Curves, Kind, Spans, Unit};

/// Letters of events closer than this share of the width stand together.
const BESIDE: f64 = 0.025;

/// A chart over time, from the baseline on.
pub(crate) fn over_time(chart: &Chart, spans: &Spans, medium: Medium) -> Frame {
    let [from, to] = spans.view;
    let shown = |i: &usize| (from..=to).contains(&chart.x[*i]);
    let values = || {
        let lines = chart.lines.iter();
        lines.flat_map(|line| (0..chart.x.len()).filter(shown).map(|i| line.y[i]))
    };
    let y = match chart.top {
        _ if chart.log => Axis::log_around(values()),
        Some(high) => Axis::between(0.0, high),
        None => Axis::from_zero(values()),
    };
    // A page says it below the chart.
    let cut = chart.cut().filter(|_| medium == Medium::File);
    let cut = cut.map_or(String::new(), |cut| format!(" ({cut})"));
    let is_tall = chart.log || chart.id == "rate-0";
    let px = if is_tall { 200.0 } else { 140.0 };
    let mut frame = Frame::new(medium, &format!("{}{cut}", chart.title), time(spans), y, px);
    frame.exact_to(spans.step_s);
    phases(&mut frame, spans);
    for (kind, colour, opacity) in [(Kind::Stall, "#d55e00", 0.2), (Kind::Dip, "#f0e442", 0.35)] {
        for (from, to) in spans.united(kind, &chart.actors) {
            frame.shade(from, to, colour, opacity);
        }
    }
    frame.y_axis(chart.unit);
    seconds(&mut frame, spans);
    for (n, line) in chart.lines.iter().enumerate() {
        let stroke = if chart.bands {
            // Percentiles of one latency: one hue, the median boldest.
            let (width, dash): (f64, &[f64]) =
                [(2.0, &[][..]), (1.0, &[6.0, 3.0]), (1.0, &[])][n.min(2)];
            Stroke::new(COLOURS[0], width, dash)
        } else {
            Stroke::nth(n, 1.5)
        };
        let points = chart.x.iter().copied().zip(line.y.iter().copied());
        frame.line(&line.name, points, &stroke);
        // A single line is named by the title.
        if chart.lines.len() > 1 {
            frame.legend(&line.name, &stroke);
        }
    }
    events(&mut frame, spans);
    frame
}

/// Percentile curves before, during and after.
pub(crate) fn curves(curves: &Curves, medium: Medium) -> Frame {
    let all = || curves.curves.iter().flat_map(|curve| &curve.us).copied();
    let known = |i: &usize| curves.curves.iter().any(|curve| curve.us[*i].is_finite());
    let last = (0..curves.x.len()).rev().find(known);
    let x = Axis::between(0.0, last.map_or(1.0, |i| curves.x[i]).max(1.0));
    let title = format!("Latency of {} by percentile", curves.name);
    let mut frame = Frame::new(medium, &title, x, Axis::log_around(all()), 200.0);
    frame.y_axis(Unit::Us);
    let names = "0 %|90 %|99 %|99.9 %|99.99 %|99.999 %|99.9999 %".split('|');
    let marks = (0..).map(f64::from).zip(names.map(str::to_owned));
    let marks: Vec<(f64, String)> = marks.take_while(|&(nines, _)| nines <= x.high).collect();
    frame.x_axis("nines", &marks);
    for curve in &curves.curves {
        let stroke = Stroke::nth(curve.style, 2.0);
        let points = curves.x.iter().copied().zip(curve.us.iter().copied());
        frame.line(curve.name, points, &stroke);
        frame.legend(curve.name, &stroke);
    }
    frame
}

fn time(spans: &Spans) -> Axis {
    let [low, high] = spans.view;
    Axis::between(low, if high > low { high } else { low + 1.0 })
}

fn phases(frame: &mut Frame, spans: &Spans) {
    for (i, phase) in spans.phases.iter().enumerate() {
        if i % 2 == 1 {
            frame.shade(phase.from, phase.to, "#000", 0.05);
        }
        let control = if phase.control { "control " } else { "" };
        frame.word(phase.from, phase.to, &format!("{control}{}", phase.name));
    }
}

/// The moments as dashed lines, with their letters above.
fn events(frame: &mut Frame, spans: &Spans) {
    let wide = spans.view[1] - spans.view[0];
    let mut events = spans.lettered().into_iter().peekable();
    while let Some((mut mark, first)) = events.next() {
        let mut last = first.at;
        while let Some((letter, event)) = events.next_if(|(_, next)| {
            next.at - last < BESIDE * wide * mark.len() as f64 && next.at >= last
        }) {
            mark += &letter;
            frame.moment(event.at, "", event.word);
            last = event.at;
        }
        frame.moment(first.at, &mark, first.word);
    }
}

fn seconds(frame: &mut Frame, spans: &Spans) {
    let x = time(spans);
    let marks: Vec<(f64, String)> = ticks::linear(x.low, x.high, 6, false)
        .into_iter()
        // Sums of tenths have long tails.
        .map(|at| (at, format!("{} s", (at * 1e4).round() / 1e4)))
        .collect();
    frame.x_axis("s", &marks);
}
