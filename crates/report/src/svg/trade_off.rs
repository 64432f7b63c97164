//! Ways of freeing space: what each costs others against how long it takes.

use super::axis::{Axis, COLOURS, Stroke};
use super::frame::{Frame, Medium};
use super::labels::Labels;
use super::ticks;
use crate::html::escape::text;

/// Several ways to free the same space.
#[derive(Debug, Clone, PartialEq)]
pub struct TradeOff {
    /// Names what is freed, and where.
    pub title: String,
    /// Share of others' throughput that may be lost, 0 to 1.
    pub goal: f64,
    /// The time that the foreground loses with the present settings, in seconds. Spread over
    /// more time, the same loss is a smaller share of it.
    pub lost_s: f64,
    /// The ways.
    pub ways: Vec<Way>,
}

/// One way, with figures of one or more runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// Its name.
    pub name: String,
    /// Ways of one kind have one colour.
    pub kind: usize,
    /// How long it takes, in seconds: least, median, most.
    pub seconds: [f64; 3],
    /// Share of others' throughput that is lost meanwhile, 0 to 1: least, median, most.
    pub lost: [f64; 3],
    /// The same in the worst 100 ms.
    pub worst: f64,
    /// Whether another way is better in something and worse in nothing.
    pub beaten: bool,
}

/// The shortest time that is drawn, in seconds: the axis is logarithmic.
const SHORTEST_S: f64 = 0.01;
/// Radius of a mark, in px.
const MARK: f64 = 5.0;

const GOAL: Stroke = Stroke::new("#000", 1.5, &[6.0, 4.0]);
const SAME: Stroke = Stroke::new("#888", 1.0, &[]);
const WORST: Stroke = Stroke::new("#555", 1.0, &[1.0, 3.0]);

/// The picture: time to the right, logarithmic; what is lost upwards.
pub fn trade_off(of: &TradeOff) -> String {
    let times = of.ways.iter().flat_map(|way| way.seconds).map(seconds);
    let around = Axis::log_around(times);
    // Room for a mark at the edge and its name.
    let x = Axis {
        low: around.low / 1.5,
        high: around.high * 1.5,
        ..around
    };
    let mut frame = Frame::new(Medium::File, &of.title, x, Axis::between(0.0, 1.0), 0.0);
    frame.y_marks((0..=4).map(|i| (f64::from(i) / 4.0, format!("{} %", 25 * i))));
    let marks: Vec<(f64, String)> = ticks::logarithmic(x.low, x.high)
        .into_iter()
        .map(|at| (at, format!("{} s", (at * 1e4).round() / 1e4)))
        .collect();
    frame.x_axis("s", &marks);
    frame.captions(
        "hollow: another way is better in something and worse in nothing; seconds until all was \
         discarded",
        "throughput that other I/O loses",
    );
    same_loss(&mut frame, x, of.lost_s);
    let goal = share(of.goal);
    frame.line("", [(x.low, goal), (x.high, goal)].into_iter(), &GOAL);
    frame.legend(&format!("goal: {}", record::units::percent(goal)), &GOAL);
    frame.legend("as much lost as now, over more time", &SAME);
    frame.legend("up to the worst 100 ms", &WORST);
    let drawn: Vec<Drawn<'_>> = of.ways.iter().map(|way| Drawn::of(way, &frame)).collect();
    for drawn in &drawn {
        frame.over(&drawn.svg());
    }
    let [left, top, right, bottom] = frame.plot();
    let [_, y] = frame.px(x.low, goal);
    let line = [left, y - 1.0, right, y + 1.0];
    let occupied = drawn.iter().flat_map(Drawn::boxes).chain([line]).collect();
    let mut labels = Labels::beside([left, top, right, bottom], occupied, MARK);
    for drawn in &drawn {
        let label = labels.put(drawn.at(), &drawn.way.name);
        frame.over(&label.svg(drawn.at(), drawn.colour()));
    }
    frame.file()
}

/// A time that can be drawn.
fn seconds(s: f64) -> f64 {
    if s.is_finite() {
        s.max(SHORTEST_S)
    } else {
        SHORTEST_S
    }
}

/// A loss that can be drawn: less than nothing is noise.
fn share(lost: f64) -> f64 {
    if lost.is_finite() {
        lost.clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// Where the same time is lost, however it is spread.
fn same_loss(frame: &mut Frame, x: Axis, lost_s: f64) {
    if !(lost_s.is_finite() && lost_s > 0.0) {
        return;
    }
    let from = lost_s.max(x.low);
    let curve = (0..=60).map(|i| {
        let at = from * (x.high / from).powf(f64::from(i) / 60.0);
        (at, share(lost_s / at))
    });
    if from < x.high {
        frame.line("", curve, &SAME);
    }
}

/// A way in px.
struct Drawn<'w> {
    way: &'w Way,
    x: [f64; 3],
    y: [f64; 3],
    worst: f64,
}

impl Drawn<'_> {
    fn of<'w>(way: &'w Way, frame: &Frame) -> Drawn<'w> {
        Drawn {
            way,
            x: way.seconds.map(|s| frame.px(seconds(s), 0.0)[0]),
            y: way.lost.map(|lost| frame.px(SHORTEST_S, share(lost))[1]),
            worst: frame.px(SHORTEST_S, share(way.worst))[1],
        }
    }

    /// Its mark's middle.
    fn at(&self) -> [f64; 2] {
        [self.x[1], self.y[1]]
    }

    fn colour(&self) -> &'static str {
        COLOURS[self.way.kind % COLOURS.len()]
    }

    /// Where no name may lie: on its mark, on the ranges of its runs.
    fn boxes(&self) -> [[f64; 4]; 3] {
        let [x, y] = self.at();
        [
            [x - MARK, y - MARK, x + MARK, y + MARK],
            [self.x[0], y - 1.0, self.x[2], y + 1.0],
            [x - 1.0, self.y[2], x + 1.0, self.y[0]],
        ]
    }

    /// The mark with the ranges of its runs; hollow where another way beats it.
    fn svg(&self) -> String {
        let ([x, y], worst, colour) = (self.at(), self.worst, self.colour());
        let fill = if self.way.beaten { "#fff" } else { colour };
        format!(
            "<g stroke=\"{colour}\"><title>{}</title>\
             <path fill=\"none\" stroke-dasharray=\"1 3\" d=\"M{x:.1} {y:.1}V{worst:.1}\"/>\
             <path fill=\"none\" d=\"M{:.1} {worst:.1}h{:.1}M{:.1} {y:.1}H{:.1}M{x:.1} {:.1}V{:.1}\"/>\
             <circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{MARK}\" fill=\"{fill}\" stroke-width=\"1.5\"/></g>",
            text(&tooltip(self.way)),
            x - MARK,
            2.0 * MARK,
            self.x[0],
            self.x[2],
            self.y[0],
            self.y[2],
        )
    }
}

/// The text of a mark under the pointer.
fn tooltip(way: &Way) -> String {
    format!(
        "{}: {} of others' throughput for {}, {} in the worst 100 ms",
        way.name,
        record::units::percent(share(way.lost[1])),
        record::units::seconds(way.seconds[1].max(0.0)),
        record::units::percent(share(way.worst)),
    )
}
