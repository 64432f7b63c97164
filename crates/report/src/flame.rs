//! Blocked time as a flame graph, with the timeline of discards below: a picture, and a page.
//!
//! Written by hand, as the other pictures are: a flame graph is rectangles with text. Its frames go
//! from the program at the bottom to the function that waits at the top (Brendan Gregg,
//! "The Flame Graph", CACM 59(6), 2016).

use std::collections::BTreeMap;

use record::units::{percent, seconds};
use record::waits::Stack;

use crate::html::escape::{self, text};
use crate::html::shell;
use crate::svg::shapes::{document, label, rect, within_a_page};

/// One stretch of the timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stretch {
    /// Its start, in seconds.
    pub at_s: f64,
    /// Its length, in seconds.
    pub seconds: f64,
    /// Blocked in its own discards, in seconds.
    pub in_discards_s: f64,
    /// Blocked behind discards, in seconds.
    pub behind_discards_s: f64,
    /// Blocked on something else, in seconds.
    pub blocked_s: f64,
    /// For how long a discard at least was in flight, in seconds.
    pub discarding_s: f64,
}

/// All that is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocked {
    /// The answer in a sentence.
    pub title: String,
    /// The whole report, as a terminal shows it.
    pub report: String,
    /// The stacks.
    pub stacks: Vec<Stack>,
    /// The timeline.
    pub timeline: Vec<Stretch>,
}

/// Width of the picture and its margins, in px.
const WIDTH: f64 = 1000.0;
const LEFT: f64 = 10.0;
/// Height of a frame.
const ROW: f64 = 18.0;
/// Height of the title and the key of colours.
const TOP: f64 = 46.0;
/// Height of the timeline's bars, of the lane of discards, and of the space around them.
const BARS: f64 = 80.0;
const LANE: f64 = 12.0;
const GAP: f64 = 24.0;
/// Narrower frames are left out.
const NARROWEST: f64 = 0.4;
/// Width of a character, so that text is cut to its frame.
const CHARACTER: f64 = 6.7;
/// At most so many levels are drawn.
const DEEPEST: usize = 48;

/// Colours of waits: behind or in discards, and others.
const DISCARDS: &str = "#d55e00";
const BEHIND: &str = "#e69f00";
const OTHERS: &str = "#56b4e9";
const GREY: &str = "fill=\"#666\"";

/// A frame with those above it.
#[derive(Debug, Default)]
struct Node {
    seconds: f64,
    discards_s: f64,
    own_s: f64,
    above: BTreeMap<String, Node>,
}

impl Node {
    fn of(stacks: &[Stack]) -> Node {
        let mut root = Node::default();
        for stack in stacks.iter().filter(|one| one.seconds > 0.0) {
            let mut node = &mut root;
            node.add(stack);
            for frame in stack.frames.iter().take(DEEPEST) {
                node = node.above.entry(frame.clone()).or_default();
                node.add(stack);
            }
        }
        root
    }

    fn add(&mut self, stack: &Stack) {
        self.seconds += stack.seconds;
        self.discards_s += stack.discards_s;
        self.own_s += stack.own_s;
    }

    /// Levels above it that are wide enough to be drawn.
    fn height(&self, px_per_s: f64) -> usize {
        let wide = |node: &&Node| node.seconds * px_per_s >= NARROWEST;
        let all = self.above.values().filter(wide);
        all.map(|node| 1 + node.height(px_per_s)).max().unwrap_or(0)
    }
}

/// The picture, with its XML declaration.
pub fn svg(blocked: &Blocked) -> String {
    let root = Node::of(&blocked.stacks);
    let wide = WIDTH - 2.0 * LEFT;
    let px_per_s = match root.seconds > 0.0 {
        true => wide / root.seconds,
        false => 0.0,
    };
    let levels = root.height(px_per_s);
    let bottom = TOP + ROW * levels.max(1) as f64;
    let height = bottom + GAP + BARS + LANE + 2.0 * GAP;
    let mut body = key() + "\n";
    if levels == 0 {
        body += &label([LEFT, TOP + 13.0], GREY, "nothing was blocked");
    }
    frames(&mut body, &root, LEFT, bottom - ROW, px_per_s, root.seconds);
    timeline(&mut body, &blocked.timeline, bottom + GAP);
    let heading = format!("Blocked for {}", seconds(root.seconds));
    document([WIDTH, height], &blocked.title, LEFT, &heading, &body)
}

/// The page: the sentence, the picture and the report.
pub fn html(blocked: &Blocked) -> String {
    let picture = shell::overflow("", "Flame graph", within_a_page(&svg(blocked)));
    let report = format!("<pre>{}</pre>\n", escape::text(&blocked.report));
    let report = shell::overflow("", "Report", &report);
    let title = escape::prose(&blocked.title);
    shell::end_without_script(format!(
        "{}<header>\n<h1>{title}</h1>\n</header>\n<main>\n<figure id=\"flame\">\n\
         <figcaption>Where the blocked time went; below, when, and when discards were in flight. Point \
         at a frame to see its time.</figcaption>\n{picture}</figure>\n<h2>Report</h2>\n{report}",
        shell::begin(&blocked.title)
    ))
}

fn key() -> String {
    let entries = [
        (DISCARDS, "in discards of its own"),
        (BEHIND, "behind discards"),
        (OTHERS, "blocked on something else"),
    ];
    let mut text = String::new();
    let mut x = LEFT;
    for (colour, words) in entries {
        text += &rect([x, 27.0], [12.0, 12.0], &format!("fill=\"{colour}\""));
        text += &label([x + 16.0, 37.0], "", words);
        x += 34.0 + 6.2 * words.len() as f64;
    }
    text
}

/// Draws the frames above a node, from `x` on with the lowest at `y`. The parts of a frame have the
/// colours of its causes.
fn frames(svg: &mut String, node: &Node, mut x: f64, y: f64, px_per_s: f64, whole_s: f64) {
    for (name, above) in &node.above {
        let width = above.seconds * px_per_s;
        if width >= NARROWEST {
            let share = above.seconds / whole_s;
            let (took, blamed) = (seconds(above.seconds), seconds(above.discards_s));
            let about = format!(
                "{name}: {took} ({}), {blamed} of it discards' fault",
                percent(share)
            );
            *svg += &format!("<g><title>{}</title>", text(&about));
            let high = ROW - 1.0;
            *svg += &rect([x, y], [width, high], &format!("fill=\"{OTHERS}\""));
            let mut part = x;
            let behind_s = above.discards_s - above.own_s;
            for (blocked_s, fill) in [(above.own_s, DISCARDS), (behind_s, BEHIND)] {
                let width = blocked_s * px_per_s;
                if width >= 0.05 {
                    *svg += &rect([part, y], [width, high], &format!("fill=\"{fill}\""));
                    part += width;
                }
            }
            let border = "fill=\"none\" stroke=\"#fff\" stroke-width=\".5\"";
            *svg += &rect([x, y], [width, high], border);
            let room = ((width - 6.0) / CHARACTER) as usize;
            if room >= 3 {
                *svg += &label([x + 3.0, y + 13.0], "", &cut(name, room));
            }
            *svg += "</g>\n";
            frames(svg, above, x, y - ROW, px_per_s, whole_s);
        }
        x += width;
    }
}

/// A name in so many characters at most.
fn cut(name: &str, room: usize) -> String {
    if name.chars().count() <= room {
        return name.to_owned();
    }
    let short: String = name.chars().take(room - 1).collect();
    short + "…"
}

/// Bars of the blocked time, stacked, and a lane of discards in flight below.
fn timeline(svg: &mut String, all: &[Stretch], top: f64) {
    let Some(last) = all.last() else { return };
    let end_s = (last.at_s + last.seconds).max(1e-9);
    let scale = (WIDTH - 2.0 * LEFT) / end_s;
    let bottom = top + BARS;
    let about = "blocked, as a share of each stretch";
    *svg += &label([LEFT, top - 6.0], GREY, about);
    for y in [top, bottom] {
        let line = "fill=\"#000\" fill-opacity=\".15\"";
        *svg += &rect([LEFT, y], [WIDTH - 2.0 * LEFT, 1.0], line);
    }
    for one in all {
        let (x, width) = (LEFT + one.at_s * scale, one.seconds * scale);
        let mut y = bottom;
        for (seconds, fill) in [
            (one.in_discards_s, DISCARDS),
            (one.behind_discards_s, BEHIND),
            (one.blocked_s, OTHERS),
        ] {
            let height = (seconds / one.seconds.max(1e-9)).min(1.0) * BARS;
            let height = height.min(y - top);
            if height >= 0.05 {
                y -= height;
                *svg += &rect([x, y], [width, height], &format!("fill=\"{fill}\""));
            }
        }
        let share = (one.discarding_s / one.seconds.max(1e-9)).clamp(0.0, 1.0);
        if share > 0.0 {
            let fill = format!("class=\"lane\" fill=\"#000\" fill-opacity=\"{share:.2}\"");
            *svg += &rect([x, bottom + 3.0], [width, LANE], &fill);
        }
    }
    let y = bottom + LANE + 18.0;
    *svg += &label([LEFT, y], GREY, "0 s; the dark lane: a discard in flight");
    let end = format!("{GREY} text-anchor=\"end\"");
    *svg += &label([WIDTH - LEFT, y], &end, &seconds(end_s));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[&str], seconds: f64, discards_s: f64) -> Stack {
        Stack {
            frames: frames.iter().map(|&frame| frame.to_owned()).collect(),
            seconds,
            discards_s,
            own_s: 0.0,
        }
    }

    fn blocked() -> Blocked {
        Blocked {
            title: "dd waited 3.0 s <b> of 4.0 s".to_owned(),
            report: "Where dd spent 4.0 s\n  <script>".to_owned(),
            stacks: vec![
                stack(&["dd", "write", "submit_bio_wait"], 3.0, 3.0),
                stack(&["dd", "write", "jbd2_log_wait_commit"], 0.5, 0.0),
                stack(&["dd", "fsync"], 0.5, 0.1),
                stack(&["dd", "too narrow"], 1e-4, 0.0),
                stack(&["nothing"], 0.0, 0.0),
            ],
            timeline: (0..4)
                .map(|at| Stretch {
                    at_s: f64::from(at),
                    seconds: 1.0,
                    behind_discards_s: 0.75,
                    blocked_s: 0.25,
                    discarding_s: 0.9,
                    ..Stretch::default()
                })
                .collect(),
        }
    }

    /// The widths of the frames with this name.
    fn width(svg: &str, name: &str) -> f64 {
        let lines = svg
            .lines()
            .filter(|line| line.starts_with(&format!("<g><title>{name}: ")));
        let width = |line: &str| -> f64 {
            let rest = line.split_once("width=\"").unwrap().1;
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        lines.map(width).sum()
    }

    #[test]
    fn frames_are_as_wide_as_their_time() {
        let svg = svg(&blocked());
        assert!((width(&svg, "dd") - 980.0).abs() < 0.1, "{svg}");
        assert!(
            (width(&svg, "write") - 980.0 * 3.5 / 4.0001).abs() < 0.1,
            "{svg}"
        );
        assert!((width(&svg, "submit_bio_wait") - 980.0 * 3.0 / 4.0001).abs() < 0.1);
        assert_eq!(width(&svg, "too narrow"), 0.0);
        assert!(
            svg.contains("3.0 s (75 %), 3.0 s of it discards&#39; fault"),
            "{svg}"
        );
        assert_eq!(svg.matches("class=\"lane\"").count(), 4);
        assert!(!svg.contains("<b>"));
    }

    #[test]
    fn a_frame_has_the_colours_of_its_causes() {
        let mut all = blocked();
        all.stacks = vec![stack(&["dd"], 4.0, 3.0)];
        all.stacks[0].own_s = 1.0;
        all.timeline.clear();
        let svg = svg(&all);
        let frame = svg.lines().find(|line| line.starts_with("<g>")).unwrap();
        for (width, colour) in [(980, OTHERS), (245, DISCARDS), (490, BEHIND)] {
            let part = format!("width=\"{width}.00\" height=\"17.00\" fill=\"{colour}\"");
            assert!(frame.contains(&part), "{part} in {frame}");
        }
    }

    #[test]
    fn a_page_holds_the_picture_and_nothing_hostile() {
        let html = html(&blocked());
        assert!(html.contains("<svg ") && html.contains("Where dd spent"));
        assert!(
            !html.contains("<script>") && !html.contains("<?xml"),
            "{html}"
        );
    }

    #[test]
    fn nothing_blocked_is_a_picture_that_says_so() {
        let empty = Blocked {
            stacks: Vec::new(),
            timeline: Vec::new(),
            ..blocked()
        };
        assert!(svg(&empty).contains("nothing was blocked"));
    }
}
