//! The frame of a chart: axes, grid, marks and lines, for a file of its own or for a page.
//!
//! Lines lie in an inner picture. A page stretches it to its width, and the page's script zooms it by
//! its `viewBox`. Text lies over it, at shares of the width, and keeps its size.

use super::axis::{Axis, Stroke};
use super::ticks;
use crate::charts::Unit;
use crate::html::escape::{self, text};

/// Size of a file's picture, and of what stands around its plot, in px.
const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 34.0;

/// Width of a file's plot, in px.
const PLOT: f64 = WIDTH - LEFT - RIGHT;

/// Units of a line's coordinates in a px of a file.
const PER_PX: f64 = 10.0;

/// Units of a page's plot, in which no px is known.
const STRETCHED: f64 = 10_000.0;

/// Width of a line's sample in the legend, in px.
const SAMPLE: f64 = 28.0;

/// Where a chart is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    /// In a file of its own.
    File,
    /// In a page, as wide as there is room.
    Page,
}

/// A chart while it is made.
pub(crate) struct Frame {
    medium: Medium,
    title: String,
    x: Axis,
    y: Axis,
    /// The units of the values along the axes, for the page's script.
    units: [&'static str; 2],
    /// The plot's size in units of its lines, and its height in px.
    wide: f64,
    tall: f64,
    px: f64,
    lines: String,
    over: String,
    /// A sample, and its name.
    legend: Vec<(String, String)>,
}

impl Frame {
    /// `px`: the plot's height in a page.
    pub(super) fn new(medium: Medium, title: &str, x: Axis, y: Axis, px: f64) -> Frame {
        let (wide, tall, px) = match medium {
            Medium::File => {
                let px = HEIGHT - TOP - BOTTOM;
                (PER_PX * PLOT, PER_PX * px, px)
            }
            Medium::Page => (STRETCHED, STRETCHED, px),
        };
        Frame {
            medium,
            title: title.to_owned(),
            x: x.sound(),
            y: y.sound(),
            units: [""; 2],
            wide,
            tall,
            px,
            lines: String::new(),
            over: String::new(),
            legend: Vec::new(),
        }
    }

    /// So long a stretch of the x axis is at least ten units wide: zoomed into, it is exact, too.
    pub(super) fn exact_to(&mut self, step: f64) {
        if self.medium == Medium::Page && step > 0.0 {
            let steps = (self.x.high - self.x.low) / step;
            self.wide = (10.0 * steps).round().clamp(STRETCHED, 1e7);
        }
    }

    /// Units of the lines in a px of a line's width: a page keeps it as it is.
    fn per_px(&self) -> f64 {
        match self.medium {
            Medium::File => PER_PX,
            Medium::Page => 1.0,
        }
    }

    /// Where values are among the lines.
    pub(super) fn at(&self, x: f64, y: f64) -> [i64; 2] {
        let place = |share: f64, long: f64| (share * long).round().clamp(-1e8, 1e8) as i64;
        let (x, y) = (self.x.share(x), 1.0 - self.y.share(y));
        [place(x, self.wide), place(y, self.tall)]
    }

    /// A place on the x axis as a share of the width, for what lies over the lines.
    fn percent(&self, x: f64) -> String {
        format!("{:.2}%", 100.0 * self.x.share(x).clamp(-1e6, 1e6))
    }

    /// Adds an element among the lines.
    pub(super) fn among(&mut self, element: &str) {
        self.lines += element;
        self.lines.push('\n');
    }

    /// Adds an element over the lines.
    pub(super) fn over(&mut self, element: &str) {
        self.over += element;
        self.over.push('\n');
    }

    /// Whether a page can come to show it, and whether it is seen without zooming.
    fn shown(&self, from: f64, to: f64) -> Option<&'static str> {
        let seen = from < self.x.high && to > self.x.low;
        match (seen, self.medium) {
            (true, _) => Some(""),
            (false, Medium::Page) => Some(" visibility=\"hidden\""),
            (false, Medium::File) => None,
        }
    }

    /// Shades a stretch of the x axis over the whole height.
    pub(super) fn shade(&mut self, from: f64, to: f64, fill: &str, opacity: f64) {
        let ([left, _], [right, _]) = (self.at(from, 0.0), self.at(to, 0.0));
        if right > left && self.shown(from, to).is_some() {
            let least = (self.wide / PLOT) as i64;
            self.among(&format!(
                "<rect x=\"{left}\" width=\"{}\" height=\"{}\" fill=\"{fill}\" fill-opacity=\"{opacity}\"/>",
                (right - left).max(least),
                self.tall
            ));
        }
    }

    /// Words at the top of a stretch, as far as they fit into it.
    pub(super) fn word(&mut self, from: f64, to: f64, word: &str) {
        let Some(hidden) = self.shown(from, to) else {
            return;
        };
        let (from, to) = (written(from), written(to));
        let (left, right) = (from.max(self.x.low), to.min(self.x.high));
        let share = self.x.share(right) - self.x.share(left);
        let fits = share * PLOT > 7.0 * word.chars().count() as f64;
        if fits || self.medium == Medium::Page {
            self.over(&format!(
                "<svg data-at=\"{from} {to}\" x=\"{}\" width=\"{:.2}%\" height=\"20\"{hidden}>\
                 <text x=\"4\" y=\"14\" fill=\"#666\" font-size=\"11\">{}</text></svg>",
                self.percent(left),
                100.0 * share.max(0.0),
                text(word)
            ));
        }
    }

    /// A dashed line at a moment, in a page with its mark above.
    pub(super) fn moment(&mut self, at: f64, mark: &str, words: &str) {
        let Some(hidden) = self.shown(at, at) else {
            return;
        };
        let at = written(at);
        let x = self.percent(at);
        let words = text(words);
        self.over(&format!(
            "<line data-at=\"{at}\" x1=\"{x}\" x2=\"{x}\" y2=\"100%\" stroke=\"#666\" \
             stroke-dasharray=\"4 4\"{hidden}><title>{words}</title></line>"
        ));
        if self.medium == Medium::Page {
            self.over(&format!(
                "<text data-at=\"{at}\" data-event=\"{words}\" x=\"{x}\" y=\"-3\" fill=\"#666\" \
                 font-size=\"11\" text-anchor=\"middle\"{hidden}>{}</text>",
                text(mark)
            ));
        }
    }

    /// A line; it is interrupted where a value isn't finite.
    pub(super) fn line(
        &mut self,
        name: &str,
        points: impl Iterator<Item = (f64, f64)>,
        stroke: &Stroke,
    ) {
        let mut path = String::new();
        let mut pen: Option<[i64; 2]> = None;
        let mut relative = false;
        for (x, y) in points {
            if !(x.is_finite() && y.is_finite()) {
                (pen, relative) = (None, false);
                continue;
            }
            let [x, y] = self.at(x, y);
            match pen {
                None => path += &format!("M{x} {y}"),
                Some([a, b]) => {
                    path.push(if relative { ' ' } else { 'l' });
                    path += &format!("{} {}", x - a, y - b);
                    relative = true;
                }
            }
            pen = Some([x, y]);
        }
        self.path(name, &path.replace(" -", "-"), stroke);
    }

    fn path(&mut self, name: &str, path: &str, stroke: &Stroke) {
        if !path.is_empty() {
            self.among(&format!(
                "<path data-name=\"{}\" fill=\"none\" stroke-linejoin=\"round\" {} d=\"{path}\"/>",
                text(name),
                stroke.attributes(self.per_px())
            ));
        }
    }

    /// An entry of the legend, beside those before.
    pub(super) fn legend(&mut self, name: &str, stroke: &Stroke) {
        let sample = stroke.attributes(1.0);
        let sample = format!("<path fill=\"none\" {sample} d=\"M0 5h28\"/>");
        self.legend.push((sample, name.to_owned()));
    }

    /// The y axis with its grid.
    pub(super) fn y_axis(&mut self, unit: Unit) {
        let about = if self.px < 200.0 { 3 } else { 5 };
        let values = match self.y.log {
            true => ticks::logarithmic(self.y.low, self.y.high),
            false => ticks::linear(self.y.low, self.y.high, about, unit == Unit::Bytes),
        };
        self.units[1] = unit.name();
        for value in values {
            let y = (1.0 - self.y.share(value)) * self.px;
            self.over(&format!(
                "<line x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#000\" stroke-opacity=\".1\"/>\
                 <text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                y + 4.0,
                text(&ticks::label(unit, value))
            ));
        }
    }

    /// The x axis with given ticks of values in this unit.
    pub(super) fn x_axis(&mut self, unit: &'static str, marks: &[(f64, String)]) {
        self.units[0] = unit;
        let below = self.px + 18.0;
        let mut group = String::from("<g class=\"x\">");
        for (value, label) in marks {
            let x = self.percent(*value);
            group += &format!(
                "<line x1=\"{x}\" x2=\"{x}\" y2=\"100%\" stroke=\"#000\" stroke-opacity=\".1\"/>\
                 <text x=\"{x}\" y=\"{below}\" text-anchor=\"middle\">{}</text>",
                text(label)
            );
        }
        self.over(&(group + "</g>"));
    }

    /// The plot: the lines, stretched, and what lies over them.
    fn inner(&self) -> String {
        format!(
            "<svg class=\"stretch\" width=\"100%\" height=\"{}\" viewBox=\"0 0 {} {}\" \
             preserveAspectRatio=\"none\">\n{}</svg>\n{}",
            self.px, self.wide, self.tall, self.lines, self.over
        )
    }

    /// The chart as a file of its own.
    pub(crate) fn file(self) -> String {
        let mut legend = String::new();
        let mut x = LEFT;
        for (sample, name) in &self.legend {
            legend += &format!(
                "<g transform=\"translate({x:.1} 27)\">{sample}<text x=\"{:.1}\" y=\"9\">{}</text></g>\n",
                SAMPLE + 6.0,
                text(name)
            );
            x += SAMPLE + 26.0 + 7.0 * name.chars().count() as f64;
        }
        let body = format!(
            "{legend}<svg x=\"{LEFT}\" y=\"{TOP}\" width=\"{PLOT}\" height=\"{}\" overflow=\"visible\">\n{}</svg>\n",
            self.px,
            self.inner()
        );
        let title = text(&self.title);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"18\" font-size=\"14\" font-weight=\"bold\">{title}</text>\n{body}</svg>\n"
        )
    }

    /// The chart as a figure of a page; a screen reader reads its label.
    pub(crate) fn figure(self, id: &str, about: &str) -> String {
        let entry = |(sample, name): &(String, String)| {
            let name = escape::prose(name);
            format!("<li><svg width=\"{SAMPLE}\" height=\"10\">{sample}</svg>{name}</li>")
        };
        let legend: String = self.legend.iter().map(entry).collect();
        let (title, about) = (escape::prose(&self.title), escape::prose(about));
        let [x, y] = self.units;
        let log = if self.y.log { " data-log=\"\"" } else { "" };
        let (px, wide, tall, inner) = (self.px, self.wide, self.tall, self.inner());
        let [[left, right], [low, high]] = [self.x, self.y].map(|axis| [axis.low, axis.high]);
        format!(
            "<figure id=\"{id}\">\n<figcaption>{title}<ul class=\"legend\">{legend}</ul></figcaption>\n\
             <div class=\"plot\" tabindex=\"0\" role=\"group\" aria-roledescription=\"chart\" \
             aria-label=\"{title}. {about}\">\n\
             <svg aria-hidden=\"true\" width=\"100%\" height=\"{px}\" data-x=\"{left} {right} {wide} {x}\" \
             data-y=\"{low} {high} {tall} {y}\"{log}>\n{inner}<line class=\"cursor\" y2=\"100%\" visibility=\"hidden\"/></svg></div>\n\
             <p class=\"readout\" aria-live=\"polite\"></p>\n</figure>\n"
        )
    }
}

/// A moment to the microsecond. A broken record gives one that can be written.
fn written(at: f64) -> f64 {
    if at.is_nan() {
        return 0.0;
    }
    ((at * 1e6).round() / 1e6).clamp(-1e9, 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The points of a path, in units.
    fn points(svg: &str) -> Vec<[i64; 2]> {
        let (_, d) = svg.split_once(" d=\"").unwrap();
        let d = d.split('"').next().unwrap().replace('-', " -");
        let mut at = [0, 0];
        let mut points = Vec::new();
        for part in d.split(['M', 'l']).filter(|part| !part.is_empty()) {
            let numbers: Vec<i64> = part
                .split_whitespace()
                .map(|n| n.parse().unwrap())
                .collect();
            let absolute = d[..d.find(part).unwrap()].ends_with('M');
            for pair in numbers.chunks(2) {
                let from = if absolute { [0, 0] } else { at };
                at = [from[0] + pair[0], from[1] + pair[1]];
                points.push(at);
            }
        }
        points
    }

    #[test]
    fn a_line_of_a_page_keeps_its_values_and_its_gaps() {
        let values = [0.1, 92_100.0, 3_920.0, f64::NAN, 250_000.0];
        let x = Axis::between(61.4, 136.4);
        let mut frame = Frame::new(Medium::Page, "t", x, Axis::between(0.0, 100_000.0), 140.0);
        frame.exact_to(0.1);
        let at = (0..).map(|i| 70.05 + 0.1 * f64::from(i));
        frame.line("reader", at.zip(values), &Stroke::nth(0, 1.0));
        let (wide, tall) = (frame.wide, frame.tall);
        let points = points(&frame.figure("id", ""));
        let finite: Vec<(usize, f64)> = values
            .into_iter()
            .enumerate()
            .filter(|v| v.1.is_finite())
            .collect();
        assert_eq!(points.len(), finite.len());
        for ([x, y], (i, value)) in points.into_iter().zip(finite) {
            let (at, read) = (61.4 + 75.0 * x as f64 / wide, 1e5 * (1.0 - y as f64 / tall));
            assert!((at - 70.05 - 0.1 * i as f64).abs() < 0.01, "{at}");
            assert!((read - value).abs() <= 10.0, "{read} instead of {value}");
        }
    }

    #[test]
    fn a_file_is_scaled_evenly_so_that_strokes_need_no_browser() {
        let mut frame = Frame::new(
            Medium::File,
            "t",
            Axis::between(0.0, 1.0),
            Axis::between(0.0, 1.0),
            0.0,
        );
        frame.line(
            "a",
            [(0.0, 0.0), (1.0, 1.0)].into_iter(),
            &Stroke::nth(1, 1.5),
        );
        let svg = frame.file();
        assert!(svg.contains("viewBox=\"0 0 7000 2420\""), "{svg}");
        assert!(
            svg.contains("stroke-width=\"15\" stroke-dasharray=\"80 40\""),
            "{svg}"
        );
        assert!(svg.contains("d=\"M0 2420l7000-2420\""), "{svg}");
    }
}
