//! The line that is rewritten every second while a run goes on.

use ::record::{Part, PhaseName};

use super::Style;
use super::glyphs::{left, right};
use super::page::{Ink, Page, Span, ink, plain};
use crate::words::phase;

/// The content of the live line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LiveLine {
    /// Seconds since the record's zero.
    pub elapsed_s: f64,
    /// The phase that runs.
    pub phase: PhaseName,
    /// The part it belongs to.
    pub part: Part,
    /// Operations per second of the first foreground actor; `None` while it isn't running.
    pub ops_per_s: Option<f64>,
    /// The longest wait of its operations, completed or in flight, in microseconds.
    pub worst_us: Option<f64>,
    /// Whether that wait is longer than an interval.
    pub stalls: bool,
    /// Bytes discarded per second.
    pub discard_bytes_per_s: f64,
    /// Bytes freed and not yet discarded.
    pub debt_bytes: u64,
}

/// One line, without a line end, of at most 80 columns (of `style.width`, if that is less).
/// Figures stay in their places from one line to the next.
pub fn live(line: &LiveLine, style: &Style) -> String {
    let name = match line.part {
        Part::Main => phase(line.phase).to_owned(),
        Part::Control => format!("control {}", phase(line.phase)),
    };
    let rate = line.ops_per_s.map_or("–".to_owned(), record::units::rate);
    let worst = line.worst_us.map(record::units::latency_us);
    let latency = format!("max {:>7}", worst.as_deref().unwrap_or("–"));
    let hue = if line.stalls { Ink::Red } else { Ink::Plain };
    let trimming = line.discard_bytes_per_s >= 1.0;
    let trim = if trimming {
        format!(
            "{}/s",
            record::units::bytes_decimal(line.discard_bytes_per_s as u64)
        )
    } else {
        "–".to_owned()
    };
    let debt = if line.debt_bytes > 0 {
        record::units::bytes(line.debt_bytes)
    } else {
        "–".to_owned()
    };
    let busy = |yes: bool| if yes { Ink::Magenta } else { Ink::Plain };
    let spans: [Span; 6] = [
        ink(Ink::Dim, right(&elapsed(line.elapsed_s), 7)),
        plain(format!(" {} ", left(&name, 16))),
        ink(Ink::Cyan, right(&rate, 11)),
        ink(hue, format!("  {}", left(&latency, 11))),
        ink(busy(trimming), format!("  TRIM {}", right(&trim, 9))),
        ink(
            busy(line.debt_bytes > 0),
            format!("  debt {}", right(&debt, 8)),
        ),
    ];
    let mut page = Page::new(style);
    page.line(&spans);
    page.finish().trim_end().to_owned()
}

/// Seconds while they read well, then hours, minutes and, for as long as they have room, seconds.
fn elapsed(s: f64) -> String {
    if !(s.is_finite() && s >= 0.0) {
        "–".to_owned()
    } else if s < 600.0 {
        format!("{s:.1} s")
    } else if s < 36_000.0 {
        let s = s as u64;
        format!("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
    } else {
        let s = s as u64;
        format!("{}:{:02} h", s / 3600, s / 60 % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style {
        colour: false,
        width: 80,
        unicode: true,
    };

    const QUIET: LiveLine = LiveLine {
        elapsed_s: 3.0,
        phase: PhaseName::Baseline,
        part: Part::Main,
        ops_per_s: Some(92_080.0),
        worst_us: Some(121.0),
        stalls: false,
        discard_bytes_per_s: 0.0,
        debt_bytes: 0,
    };

    const STALLED: LiveLine = LiveLine {
        elapsed_s: 71.0,
        phase: PhaseName::Delete,
        part: Part::Control,
        ops_per_s: Some(3_920.0),
        worst_us: Some(210_000.0),
        stalls: true,
        discard_bytes_per_s: 65.6e9,
        debt_bytes: 1 << 40,
    };

    #[test]
    fn figures_keep_their_places() {
        assert_eq!(
            [live(&QUIET, &STYLE), live(&STALLED, &STYLE)],
            [
                "  3.0 s baseline            92,100/s  max  121 µs  TRIM         –  debt        –",
                " 71.0 s control delete       3,920/s  max  210 ms  TRIM 65.6 GB/s  debt  1.0 TiB",
            ]
        );
    }

    #[test]
    fn nothing_known_is_said_so() {
        let line = LiveLine {
            elapsed_s: f64::NAN,
            ops_per_s: None,
            worst_us: None,
            discard_bytes_per_s: f64::NAN,
            ..QUIET
        };
        assert!(live(&line, &STYLE).contains("–  max       –"));
    }

    #[test]
    fn a_wait_of_more_than_an_interval_is_red() {
        let style = Style {
            colour: true,
            ..STYLE
        };
        assert!(live(&STALLED, &style).contains("\x1b[31m  max  210 ms\x1b[0m"));
        assert!(!live(&QUIET, &style).contains("\x1b[31m"));
    }
}
