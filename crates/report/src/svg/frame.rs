//! The frame of a chart: axes, grid, clipping, and the way from values to px.

use super::ticks;
use crate::charts::Unit;

/// Size of a picture, and of what stands around its plot.
const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 34.0;

/// Okabe and Ito's colours, which colour-blind people tell apart.
pub(crate) const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// Dashes beside them, for prints without colours.
pub(super) const DASHES: [&str; 4] = ["", "8 4", "2 3", "10 3 2 3"];

/// A range of values along an axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) log: bool,
}

impl Axis {
    /// From 0 to somewhat above the highest value.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>) -> Axis {
        let high = values.filter(|v| v.is_finite()).fold(0.0, f64::max);
        Axis {
            low: 0.0,
            high: if high > 0.0 { 1.08 * high } else { 1.0 },
            log: false,
        }
    }

    /// From 0 to a given end.
    pub(super) fn to(high: f64) -> Axis {
        Axis {
            low: 0.0,
            high,
            log: false,
        }
    }

    /// Around all values above 0, logarithmic.
    pub(super) fn log_around(values: impl Iterator<Item = f64>) -> Axis {
        let positive = values.filter(|v| v.is_finite() && *v > 0.0);
        let (low, high) = positive.fold((f64::MAX, 0.0), |(low, high): (f64, f64), v| {
            (low.min(v), high.max(v))
        });
        let (low, high) = if low <= high {
            (low, high)
        } else {
            (1.0, 10.0)
        };
        Axis {
            low: low / 1.2,
            high: high * 1.2,
            log: true,
        }
    }

    /// Itself, or where a broken record gives no range, one that can be drawn.
    fn sound(self) -> Axis {
        let Axis { low, high, log } = self;
        // The length can overflow where both ends don't.
        if low < high && (high - low).is_finite() && (!log || low > 0.0) {
            return self;
        }
        let (low, high) = if log { (1.0, 10.0) } else { (0.0, 1.0) };
        Axis { low, high, log }
    }

    /// Where a value is: 0 at the low end, 1 at the high one.
    fn share(&self, value: f64) -> f64 {
        if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

/// A picture while it is made.
pub(super) struct Frame {
    x: Axis,
    y: Axis,
    body: String,
    legend_x: f64,
}

impl Frame {
    pub(super) fn new(title: &str, x: Axis, y: Axis) -> Frame {
        let title = text(title);
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <clipPath id=\"plot\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/></clipPath>\n\
             <text x=\"{LEFT}\" y=\"18\" font-size=\"14\" font-weight=\"bold\">{title}</text>\n",
            WIDTH - LEFT - RIGHT,
            HEIGHT - TOP - BOTTOM
        );
        Frame {
            x: x.sound(),
            y: y.sound(),
            body,
            legend_x: LEFT,
        }
    }

    /// Where a value of the x axis is, in px; absurd ones at the picture's edge.
    pub(super) fn x(&self, value: f64) -> f64 {
        on_paper(LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT))
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        let bottom = HEIGHT - BOTTOM;
        on_paper(bottom - self.y.share(value) * (bottom - TOP))
    }

    /// Adds an element as it is.
    pub(super) fn raw(&mut self, element: &str) {
        self.body += element;
        self.body.push('\n');
    }

    /// Shades a stretch of the x axis over the whole height.
    pub(super) fn shade(&mut self, from: f64, to: f64, fill: &str, opacity: f64) {
        let (left, right) = (self.x(from.max(self.x.low)), self.x(to.min(self.x.high)));
        if right <= left {
            return;
        }
        self.raw(&format!(
            "<rect x=\"{left:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{}\" fill=\"{fill}\" \
             fill-opacity=\"{opacity}\"/>",
            (right - left).max(1.0),
            HEIGHT - TOP - BOTTOM
        ));
    }

    /// Words at the top of a stretch, if they fit into it.
    pub(super) fn word(&mut self, from: f64, to: f64, word: &str) {
        let (left, right) = (self.x(from.max(self.x.low)), self.x(to.min(self.x.high)));
        if right - left > 7.0 * word.chars().count() as f64 {
            self.raw(&format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#666\" font-size=\"11\">{}</text>",
                left + 4.0,
                TOP + 14.0,
                text(word)
            ));
        }
    }

    /// A line; it is interrupted where a value isn't finite. `style` is more attributes.
    pub(super) fn line(&mut self, points: impl Iterator<Item = (f64, f64)>, style: &str) {
        let mut path = String::new();
        let mut pen = 'M';
        for (x, y) in points {
            if !(x.is_finite() && y.is_finite()) {
                pen = 'M';
                continue;
            }
            path += &format!("{pen}{:.1} {:.1}", self.x(x), self.y(y));
            pen = 'L';
        }
        if !path.is_empty() {
            self.raw(&format!(
                "<path clip-path=\"url(#plot)\" fill=\"none\" stroke-linejoin=\"round\" {style} d=\"{path}\"/>"
            ));
        }
    }

    /// The colour and dash of the n-th line.
    pub(super) fn style(n: usize, width: f64) -> String {
        let (colour, dash) = (COLOURS[n % COLOURS.len()], DASHES[n % DASHES.len()]);
        format!("stroke=\"{colour}\" stroke-width=\"{width}\" stroke-dasharray=\"{dash}\"")
    }

    /// An entry of the legend, beside those before.
    pub(super) fn legend(&mut self, name: &str, style: &str) {
        let (x, y) = (self.legend_x, TOP - 12.0);
        self.raw(&format!(
            "<path d=\"M{x:.1} {y}h28\" fill=\"none\" {style}/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 34.0,
            y + 4.0,
            text(name)
        ));
        self.legend_x += 54.0 + 7.0 * name.chars().count() as f64;
    }

    /// A key of colours between two words.
    pub(super) fn key(&mut self, from: &str, colours: &[&str], to: &str) {
        let (mut x, y) = (self.legend_x, TOP - 17.0);
        let begin = 7.0 * from.chars().count() as f64 + 6.0;
        self.raw(&format!(
            "<text x=\"{x:.1}\" y=\"{}\">{}</text>",
            y + 9.0,
            text(from)
        ));
        x += begin;
        for colour in colours {
            self.raw(&format!(
                "<rect x=\"{x:.1}\" y=\"{y}\" width=\"14\" height=\"10\" fill=\"{colour}\"/>"
            ));
            x += 14.0;
        }
        let x = x + 6.0;
        self.raw(&format!(
            "<text x=\"{x:.1}\" y=\"{}\">{}</text>",
            y + 9.0,
            text(to)
        ));
    }

    /// The y axis with its grid.
    pub(super) fn y_axis(&mut self, unit: Unit) {
        let values = if self.y.log {
            ticks::logarithmic(self.y.low, self.y.high)
        } else {
            ticks::linear(self.y.low, self.y.high, 5, unit == Unit::Bytes)
        };
        let marks = values.into_iter();
        self.y_marks(marks.map(|value| (value, ticks::label(unit, value))));
    }

    /// The y axis with given ticks.
    pub(super) fn y_marks(&mut self, marks: impl Iterator<Item = (f64, String)>) {
        for (value, label) in marks {
            let y = self.y(value);
            self.raw(&format!(
                "<path d=\"M{LEFT} {y:.1}H{}\" stroke=\"#000\" stroke-opacity=\".1\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                text(&label)
            ));
        }
    }

    /// Writes the captions of the axes, where the title doesn't explain them.
    pub(super) fn captions(&mut self, x: &str, y: &str) {
        let middle = f64::midpoint(TOP, HEIGHT - BOTTOM);
        self.raw(&format!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#666\" font-size=\"11\">{}</text>\
             <text transform=\"translate(22 {middle}) rotate(-90)\" text-anchor=\"middle\" \
             fill=\"#666\" font-size=\"11\">{}</text>",
            WIDTH - RIGHT,
            HEIGHT - 3.0,
            text(x),
            text(y)
        ));
    }

    /// The plot, in px: left, top, right, bottom.
    pub(super) fn plot(&self) -> [f64; 4] {
        [LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM]
    }

    /// The x axis with given ticks.
    pub(super) fn x_axis(&mut self, marks: &[(f64, String)]) {
        let bottom = HEIGHT - BOTTOM;
        for (value, label) in marks {
            let x = self.x(*value);
            self.raw(&format!(
                "<path d=\"M{x:.1} {TOP}V{}\" stroke=\"#000\" stroke-opacity=\".1\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom,
                bottom + 18.0,
                text(label)
            ));
        }
    }

    /// The picture, finished.
    pub(super) fn finish(self) -> String {
        self.body + "</svg>\n"
    }
}

/// A place in px; what is absurdly far or no number is put outside of the picture.
fn on_paper(px: f64) -> f64 {
    if px.is_nan() {
        -1e5
    } else {
        px.clamp(-1e5, 1e5)
    }
}

/// Text that is no markup, and has no character that XML 1.0 forbids.
pub(crate) fn text(raw: &str) -> String {
    let mut safe = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => safe.push('\u{fffd}'),
            c if c.is_whitespace() => safe.push(' '),
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}
