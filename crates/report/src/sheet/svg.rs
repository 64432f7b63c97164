//! Small multiples: the same rows in each chart, side by side.

use super::{Panel, Sheet};
use crate::html::escape::text;
use crate::svg::axis::COLOURS;
use crate::svg::shapes::{document, label, rect};

/// Size of a row and of a chart's title, in px.
const ROW: f64 = 18.0;
const TITLE: f64 = 26.0;
/// Width of the rows' names, of a bar of full length, and of its figure, in px.
const BAR: f64 = 150.0;
const FIGURE: f64 = 56.0;
const GAP: f64 = 18.0;
const CHARACTER: f64 = 6.7;
/// Charts side by side; the names stand at the left of each line of charts.
const ACROSS: usize = 3;
const HEAD: f64 = 34.0;

/// All charts of a sheet as one stand-alone picture.
pub fn svg(of: &Sheet) -> String {
    let labels = of.panels.first().map_or(&[][..], |panel| &panel.bars);
    let longest = labels.iter().map(|bar| bar.label.chars().count()).max();
    let names = longest.unwrap_or(0) as f64 * CHARACTER + 12.0;
    let across = ACROSS.min(of.panels.len()).max(1) as f64;
    let width = (names + across * (BAR + FIGURE + GAP)).max(320.0);
    let height_of_line = TITLE + labels.len() as f64 * ROW + GAP;
    let lines = of.panels.len().div_ceil(ACROSS) as f64;
    let height = HEAD + lines * height_of_line;
    let mut svg = String::new();
    for (i, panel) in of.panels.iter().enumerate() {
        let top = HEAD + (i / ACROSS) as f64 * height_of_line;
        let left = names + (i % ACROSS) as f64 * (BAR + FIGURE + GAP);
        if i % ACROSS == 0 {
            svg += &row_names(panel, names, top);
        }
        svg += &chart(panel, left, top);
    }
    document([width, height], &of.title, 6.0, &of.title, &svg)
}

fn row_names(panel: &Panel, right: f64, top: f64) -> String {
    let names = panel.bars.iter().enumerate().map(|(i, bar)| {
        let at = [right - 6.0, top + TITLE + i as f64 * ROW + 12.0];
        label(at, "text-anchor=\"end\"", &bar.label)
    });
    names.collect()
}

/// A chart: each bar is the median, with a line from the least to the most.
fn chart(panel: &Panel, left: f64, top: f64) -> String {
    let ranges = panel.bars.iter().filter_map(|bar| bar.range);
    let most = ranges
        .flatten()
        .filter(|v| v.is_finite())
        .fold(0.0, f64::max);
    let x = |value: f64| {
        let share = if most > 0.0 { value / most } else { 0.0 };
        left + BAR * share.clamp(0.0, 1.0)
    };
    let mut svg = label([left, top + 16.0], "font-weight=\"bold\"", &panel.title);
    for (i, bar) in panel.bars.iter().enumerate() {
        let y = top + TITLE + i as f64 * ROW;
        let Some([least, median, highest]) = bar.range else {
            svg += &label([left, y + 12.0], "fill=\"#666\"", "–");
            continue;
        };
        let figure = figure(median);
        let fill = format!("fill=\"{}\" fill-opacity=\".75\"", COLOURS[0]);
        let long = (x(median) - left).max(0.5);
        let at = [x(highest).max(x(median)) + 4.0, y + 12.0];
        svg += &format!(
            "<g><title>{}: {figure}</title>{}<path d=\"M{:.1} {:.1}H{:.1}\" stroke=\"#222\"/>{}</g>\n",
            text(&bar.label),
            rect([left, y + 3.0], [long, ROW - 6.0], &fill),
            x(least),
            y + ROW / 2.0,
            x(highest),
            label(at, "", &figure)
        );
    }
    svg
}

/// A figure with three digits.
fn figure(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "–".to_owned(),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.09995 => format!("{value:.3}"),
        v if v > 0.0 => format!("{value:.4}"),
        _ => "0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::tests::sample;

    #[test]
    fn every_bar_has_its_figure_and_no_name_is_markup() {
        let picture = svg(&sample());
        assert_eq!(picture.matches("<g><title>").count(), 4, "{picture}");
        assert!(picture.contains("ext4/discard/discard: 152"), "{picture}");
        assert!(
            !picture.contains("<b>") && !picture.contains("<script>"),
            "{picture}"
        );
        let nothing = svg(&Sheet::default());
        assert!(nothing.ends_with("</svg>\n"), "{nothing}");
    }

    #[test]
    fn figures_have_three_digits() {
        let of = [152.4, 12.34, 1.234, 0.1234, 0.0467, 0.0, f64::NAN].map(figure);
        assert_eq!(of, ["152", "12.3", "1.23", "0.123", "0.0467", "0", "–"]);
    }
}
