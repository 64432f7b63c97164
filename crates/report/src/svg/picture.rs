//! The pictures: what is drawn into the frame of each.

use super::frame::{Axis, COLOURS, Frame};
use super::ticks;
use crate::charts::{Chart, Cost, Curves, Heat, Kind, Spans, Unit};

/// Shades of a heat map, dark to bright (cividis; Nuñez, Anderton and Renslow 2018).
const HEAT: [&str; 8] = [
    "#00224e", "#213b6e", "#4c556c", "#666970", "#807f78", "#a49d78", "#cbba69", "#fee838",
];

/// A chart over time, from the baseline on.
pub(super) fn over_time(chart: &Chart, spans: &Spans) -> String {
    let [from, to] = spans.view;
    let x = time(spans);
    let shown = |i: &usize| (from..=to).contains(&chart.x[*i]);
    let values = || {
        let lines = chart.lines.iter();
        lines.flat_map(|line| (0..chart.x.len()).filter(shown).map(|i| line.y[i]))
    };
    let y = match chart.top {
        _ if chart.log => Axis::log_around(values()),
        Some(high) => Axis::to(high),
        None => Axis::from_zero(values()),
    };
    let cut = chart.cut().map_or(String::new(), |cut| format!(" ({cut})"));
    let mut frame = Frame::new(&format!("{}{cut}", chart.title), x, y);
    phases(&mut frame, spans);
    for (kind, colour, opacity) in [(Kind::Stall, "#d55e00", 0.2), (Kind::Dip, "#f0e442", 0.35)] {
        for (from, to) in spans.united(kind, &chart.actors) {
            frame.shade(from, to, colour, opacity);
        }
    }
    frame.y_axis(chart.unit);
    seconds(&mut frame, x);
    for (n, line) in chart.lines.iter().enumerate() {
        let style = if chart.bands {
            // Percentiles of one latency: one hue, the median boldest.
            let (width, dash) = [(2.0, ""), (1.0, "6 3"), (1.0, "")][n.min(2)];
            format!(
                "stroke=\"{}\" stroke-width=\"{width}\" stroke-dasharray=\"{dash}\"",
                COLOURS[0]
            )
        } else {
            Frame::style(n, 1.5)
        };
        frame.line(chart.x.iter().copied().zip(line.y.iter().copied()), &style);
        // A single line is named by the title.
        if chart.lines.len() > 1 {
            frame.legend(&line.name, &style);
        }
    }
    frame.finish()
}

/// A heat map, in the same stretch of time.
pub(super) fn heat(heat: &Heat, spans: &Spans) -> String {
    let top = heat.lowest_us * heat.ratio.powi(heat.rows as i32);
    let x = time(spans);
    let y = Axis {
        low: heat.lowest_us,
        high: top,
        log: true,
    };
    let mut frame = Frame::new(&format!("Latencies of {}", heat.name), x, y);
    let mut paths = vec![String::new(); HEAT.len()];
    let tall = frame.y(heat.lowest_us) - frame.y(heat.lowest_us * heat.ratio);
    for column in &heat.columns {
        if column.to < x.low || column.from > x.high {
            continue;
        }
        let (left, right) = (frame.x(column.from), frame.x(column.to));
        for cell in column.cells.chunks_exact(2) {
            let shade = heat.shade(column, cell[1]) * (HEAT.len() - 1) as f64;
            let bottom = frame.y(heat.lowest_us * heat.ratio.powi(cell[0] as i32));
            paths[(shade.round() as usize).min(HEAT.len() - 1)] += &format!(
                "M{left:.1} {bottom:.1}h{:.1}v{:.1}H{left:.1}z",
                right - left,
                -tall
            );
        }
    }
    for (path, colour) in paths.iter().zip(HEAT) {
        if !path.is_empty() {
            frame.raw(&format!(
                "<path clip-path=\"url(#plot)\" fill=\"{colour}\" d=\"{path}\"/>"
            ));
        }
    }
    frame.y_axis(Unit::Us);
    seconds(&mut frame, x);
    let [least, most] = heat.per_s.map(|v| ticks::label(Unit::PerSecond, v));
    frame.key(
        &least,
        &HEAT,
        &format!("{most} operations per second in a cell"),
    );
    frame.finish()
}

/// Percentile curves before, during and after.
pub(super) fn curves(curves: &Curves) -> String {
    let all = || curves.curves.iter().flat_map(|curve| &curve.us).copied();
    let told = |i: &usize| curves.curves.iter().any(|curve| curve.us[*i].is_finite());
    let last = (0..curves.x.len()).rev().find(told);
    let x = Axis {
        low: 0.0,
        high: last.map_or(1.0, |i| curves.x[i]).max(1.0),
        log: false,
    };
    let title = format!("Latency of {} by percentile", curves.name);
    let mut frame = Frame::new(&title, x, Axis::log_around(all()));
    frame.y_axis(Unit::Us);
    let names = [
        "0 %",
        "90 %",
        "99 %",
        "99.9 %",
        "99.99 %",
        "99.999 %",
        "99.9999 %",
    ];
    let marks: Vec<(f64, String)> = (0..)
        .zip(names)
        .map(|(nines, name)| (f64::from(nines), name.to_owned()))
        .take_while(|&(nines, _)| nines <= x.high)
        .collect();
    frame.x_axis(&marks);
    for curve in &curves.curves {
        let style = Frame::style(curve.style, 2.0);
        let points = curves.x.iter().copied().zip(curve.us.iter().copied());
        frame.line(points, &style);
        frame.legend(&curve.name, &style);
    }
    frame.finish()
}

/// Draws the cost of discards by size.
pub(super) fn cost(cost: &Cost, drives: &str) -> String {
    let sizes = cost.mib.iter().copied();
    let all = Axis::from_zero(sizes.chain(cost.service.map(|at| at[0])));
    let x = cost.top[0].map_or(all, Axis::to);
    let line = cost.line.map(|[a, b]| [a, a + b * x.high]);
    let waits = cost.us.iter().copied().chain(cost.service.map(|at| at[1]));
    let all = Axis::from_zero(waits.chain(line.map(|ends| ends[1])));
    let y = cost.top[1].map_or(all, |high| {
        Axis::to(line.map_or(high, |ends| high.max(ends[1])))
    });
    let mut frame = Frame::new(&format!("Wait of discards by their size: {drives}"), x, y);
    if let Some(beyond) = cost.told_beyond() {
        frame.captions(&beyond, "");
    }
    frame.y_axis(Unit::Us);
    let marks: Vec<(f64, String)> = ticks::linear(x.low, x.high, 6, false)
        .into_iter()
        .map(|mib| (mib, format!("{mib} MiB")))
        .collect();
    frame.x_axis(&marks);
    for (&mib, &us) in cost.mib.iter().zip(&cost.us) {
        let (x, y) = (frame.x(mib), frame.y(us));
        frame.raw(&format!(
            "<circle clip-path=\"url(#plot)\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{}\"/>",
            COLOURS[0]
        ));
    }
    if let (Some(ends), Some([a, b])) = (line, cost.line) {
        let style = Frame::style(1, 2.0);
        frame.line([(x.low, ends[0]), (x.high, ends[1])].into_iter(), &style);
        let (a, b) = (units::latency_us(a), units::latency_us(b));
        frame.legend(&format!("S = {a} + {b} per MiB"), &style);
    }
    if let Some([mib, us]) = cost.service {
        let (x, y) = (frame.x(mib), frame.y(us));
        frame.raw(&format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\" fill=\"none\" stroke-width=\"2\" stroke=\"{}\">\
             <title>service time</title></circle>",
            COLOURS[2]
        ));
    }
    frame.finish()
}

fn time(spans: &Spans) -> Axis {
    let [low, high] = spans.view;
    Axis {
        low,
        high: if high > low { high } else { low + 1.0 },
        log: false,
    }
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

fn seconds(frame: &mut Frame, x: Axis) {
    let marks: Vec<(f64, String)> = ticks::linear(x.low, x.high, 8, false)
        .into_iter()
        // Sums of tenths have long tails.
        .map(|at| (at, format!("{} s", (at * 1e4).round() / 1e4)))
        .collect();
    frame.x_axis(&marks);
}
