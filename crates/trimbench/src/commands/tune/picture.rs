//! The foreground's loss in the worst 100 ms against how long the freeing takes.

use experiments::tune::Point;

use super::table::LETTERS;

/// Cells of the picture.
const WIDTH: usize = 60;
const HEIGHT: usize = 11;

/// The picture: time to the right, logarithmic; loss upwards.
pub(super) fn of(points: &[Point], unicode: bool) -> String {
    let times = || points.iter().map(|point| point.freeing_s.median.max(0.01));
    let (Some(from), Some(to)) = (
        times().min_by(f64::total_cmp),
        times().max_by(f64::total_cmp),
    ) else {
        return String::new();
    };
    // Half as long and twice as long fit as well, so that nothing stands on an edge.
    let (from, to) = (from / 2.0, to * 2.0);
    let mut cells = vec![[' '; WIDTH]; HEIGHT];
    for (i, point) in points.iter().enumerate() {
        let right = (point.freeing_s.median.max(0.01) / from).ln() / (to / from).ln();
        let x = (right * (WIDTH - 1) as f64).round() as usize;
        let up = point.worst_loss.median.clamp(0.0, 1.0);
        let y = HEIGHT - 1 - (up * (HEIGHT - 1) as f64).round() as usize;
        let row = &mut cells[y];
        // The next free place, for points often lie on each other.
        let free = (x.min(WIDTH - 1)..WIDTH).find(|&x| row[x] == ' ');
        if let Some(x) = free {
            row[x] = char::from(LETTERS[i % LETTERS.len()]);
        }
    }
    let (bar, corner, line) = if unicode {
        ('│', '└', "─")
    } else {
        ('|', '+', "-")
    };
    let mut text = "  lost in the worst 100 ms\n".to_owned();
    for (y, row) in cells.iter().enumerate() {
        let label = match y {
            0 => "100 %",
            y if y == HEIGHT / 2 => "50 %",
            y if y == HEIGHT - 1 => "0 %",
            _ => "",
        };
        let row: String = row.iter().collect();
        text += &format!("  {label:>6} {bar}{}\n", row.trim_end());
    }
    text += &format!("  {:>6} {corner}{}\n", "", line.repeat(WIDTH));
    let (left, right) = (record::units::seconds(from), record::units::seconds(to));
    let middle = "freed in (logarithmic)";
    let gap = WIDTH.saturating_sub(left.len() + right.len() + middle.len()) / 2;
    text += &format!("  {:>6}  {left}{:gap$}{middle}{:gap$}{right}\n", "", "", "");
    text
}
