//! Names beside marks, none of them on another.

use crate::html::escape::text;

/// Size of the letters, and about how wide one is, in px.
const HIGH: f64 = 12.0;
const WIDE: f64 = 6.3;
/// From a mark to its name.
const GAP: f64 = 4.0;
/// From one line of names to the next.
const STEP: f64 = 15.0;
/// So many lines up and down are tried.
const LINES: i32 = 12;

/// A rectangle in px: left, top, right, bottom.
pub(super) type Box = [f64; 4];

/// Where there are marks and names already.
pub(super) struct Labels {
    within: Box,
    occupied: Vec<Box>,
    radius: f64,
}

/// A name in its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Label {
    name: String,
    at: Box,
    right: bool,
}

impl Labels {
    /// None yet, beside marks of a radius; `occupied`: where no name may lie.
    pub(super) fn beside(within: Box, occupied: Vec<Box>, radius: f64) -> Labels {
        Labels {
            within,
            occupied,
            radius,
        }
    }

    /// A name's place: as near to its mark's height as is free, to its right or else to
    /// its left; where nothing is free, beside it.
    pub(super) fn put(&mut self, [x, y]: [f64; 2], name: &str) -> Label {
        let width = WIDE * name.chars().count() as f64;
        let beside = |lines: i32, right: bool| {
            let top = y - HIGH / 2.0 + STEP * f64::from(lines);
            let left = match right {
                true => x + self.radius + GAP,
                false => x - self.radius - GAP - width,
            };
            let at = [left, top, left + width, top + HIGH];
            (at, right)
        };
        let lines = (0..=LINES).flat_map(|n| if n == 0 { vec![0] } else { vec![-n, n] });
        let mut places = lines.flat_map(|n| [beside(n, true), beside(n, false)]);
        let free = |(at, _): &(Box, bool)| {
            let [left, top, right, bottom] = self.within;
            let inside = at[0] >= left && at[1] >= top && at[2] <= right && at[3] <= bottom;
            inside && !self.occupied.iter().any(|occupied| overlap(occupied, at))
        };
        let (at, right) = places.find(free).unwrap_or(beside(0, true));
        self.occupied.push(at);
        Label {
            name: name.to_owned(),
            at,
            right,
        }
    }
}

impl Label {
    /// The name, with a line to a mark that isn't beside it.
    pub(super) fn svg(&self, [x, y]: [f64; 2], colour: &str) -> String {
        let [left, top, right, bottom] = self.at;
        let (at, anchor) = match self.right {
            true => (left, "start"),
            false => (right, "end"),
        };
        let middle = f64::midpoint(top, bottom);
        let line = match (middle - y).abs() > 1.0 {
            true => format!(
                "<path d=\"M{x:.1} {y:.1}L{at:.1} {middle:.1}\" stroke=\"{colour}\" \
                 stroke-opacity=\".5\" fill=\"none\"/>"
            ),
            false => String::new(),
        };
        format!(
            "{line}<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" paint-order=\"stroke\" \
             stroke=\"#fff\" stroke-width=\"3\">{}</text>",
            bottom - 2.0,
            text(&self.name)
        )
    }
}

fn overlap(a: &Box, b: &Box) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLOT: Box = [80.0, 40.0, 780.0, 290.0];

    #[test]
    fn no_name_lies_on_another_or_on_a_mark() {
        let marks: Vec<[f64; 2]> = (0..9).map(|i| [700.0 + f64::from(i), 280.0]).collect();
        let occupied = marks
            .iter()
            .map(|&[x, y]| [x - 5.0, y - 5.0, x + 5.0, y + 5.0]);
        let mut labels = Labels::beside(PLOT, occupied.collect(), 5.0);
        let put: Vec<Label> = marks
            .iter()
            .map(|&mark| labels.put(mark, "online discard, at most 128 MiB"))
            .collect();
        for (i, label) in put.iter().enumerate() {
            assert!(put[..i].iter().all(|other| !overlap(&other.at, &label.at)));
            assert!(
                label.at[2] <= PLOT[2] && label.at[3] <= PLOT[3],
                "{label:?}"
            );
        }
        assert!(put.iter().any(|label| !label.right));
    }

    #[test]
    fn one_that_fits_nowhere_stands_beside_its_mark() {
        let mark = [790.0, 300.0];
        let label = Labels::beside(PLOT, Vec::new(), 5.0).put(mark, "a <b>");
        assert!(label.right && label.at[0] == 799.0);
        assert!(label.svg(mark, "#000").contains("a &lt;b&gt;"));
    }
}
