//! The progress that a person sees while a run goes on.

use std::path::Path;
use std::time::{Duration, Instant};

use bench::{Observer, Second};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use record::units::{bytes, bytes_decimal, names};
use record::{Event, EventKind, Part, PhaseName};
use report::terminal::{self, LiveLine, Style};

use crate::console::Stream;
use crate::status_line::one_line;

/// The seconds between two lines where standard error is no terminal.
const PLAIN_EVERY_S: f64 = 5.0;

/// How far the making of the files is.
#[derive(Debug, Clone, Copy)]
struct Preparing {
    began: Instant,
    /// Of a plain line, in seconds from then.
    next_s: f64,
    /// All is written, and being written back.
    whole: bool,
}

/// Shows a run: bars and a live line on a terminal, plain lines elsewhere.
pub(crate) struct Progress {
    kind: Kind,
    style: Style,
    interval: Duration,
    next_plain_s: f64,
    /// The worst second since the last plain line.
    worst: Option<Second>,
    preparing: Option<Preparing>,
}

enum Kind {
    /// Nothing is shown.
    Quiet,
    /// Lines, one after the other.
    Plain,
    /// One line, rewritten.
    Terminal(ProgressBar),
}

impl Progress {
    /// Progress goes to standard error, so that results can be redirected.
    pub(crate) fn new(quiet: bool, interval: Duration) -> Self {
        let kind = if quiet {
            Kind::Quiet
        } else if Stream::Err.is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(200));
            Kind::Terminal(bar)
        } else {
            Kind::Plain
        };
        Progress {
            kind,
            style: Stream::Err.style(),
            interval,
            next_plain_s: 0.0,
            worst: None,
            preparing: None,
        }
    }

    fn say(&self, text: &str) {
        match &self.kind {
            Kind::Quiet => {}
            Kind::Plain => Stream::Err.print(&format!("{text}\n")),
            Kind::Terminal(bar) => bar.println(text),
        }
    }
}

impl Progress {
    fn line(&self, second: &Second) -> String {
        let worst_us = second.worst_us;
        let line = LiveLine {
            elapsed_s: second.at_s,
            phase: second.phase,
            part: second.part,
            ops_per_s: second.ops_per_s,
            worst_us,
            stalls: worst_us.is_some_and(|us| us > self.interval.as_secs_f64() * 1e6),
            discard_bytes_per_s: second.discard_bytes_per_s,
            debt_bytes: second.debt_bytes,
        };
        terminal::live(&line, &self.style)
    }
}

/// The figures of this second, each with the worst since the last plain line.
fn worse(before: Option<Second>, now: &Second) -> Second {
    let Some(before) = before else {
        return now.clone();
    };
    let both = |before: Option<f64>, now: Option<f64>, of: fn(f64, f64) -> f64| {
        [before, now].into_iter().flatten().reduce(of)
    };
    Second {
        ops_per_s: both(before.ops_per_s, now.ops_per_s, f64::min),
        worst_us: both(before.worst_us, now.worst_us, f64::max),
        discard_bytes_per_s: before.discard_bytes_per_s.max(now.discard_bytes_per_s),
        debt_bytes: before.debt_bytes.max(now.debt_bytes),
        ..now.clone()
    }
}

impl Drop for Progress {
    /// Removes the live line.
    fn drop(&mut self) {
        if let Kind::Terminal(bar) = &self.kind {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Progress {
    fn phase(&mut self, name: PhaseName, part: Part) {
        let what = match name {
            PhaseName::Prepare => "prepare: making the files",
            PhaseName::Settle => "settle: waiting for a steady foreground",
            PhaseName::Baseline => "baseline: the foreground undisturbed",
            PhaseName::Delete => "delete: until what was freed is discarded",
            PhaseName::Recovery => "recovery: the foreground afterwards",
        };
        let part = match part {
            Part::Main => "",
            Part::Control => "control, ",
        };
        self.say(&format!("{part}{what}"));
        if let Kind::Terminal(bar) = &self.kind {
            bar.set_style(match name {
                PhaseName::Prepare => bar_style(),
                _ => one_line(),
            });
        }
    }

    fn preparing(&mut self, done_bytes: u64, total_bytes: u64) {
        let preparing = self.preparing.get_or_insert(Preparing {
            began: Instant::now(),
            next_s: PLAIN_EVERY_S,
            whole: false,
        });
        let elapsed_s = preparing.began.elapsed().as_secs_f64();
        let due = elapsed_s >= preparing.next_s;
        if due {
            preparing.next_s = elapsed_s + PLAIN_EVERY_S;
        }
        let newly_whole = total_bytes > 0 && done_bytes >= total_bytes && !preparing.whole;
        preparing.whole |= newly_whole;
        match &self.kind {
            Kind::Terminal(bar) => {
                bar.set_length(total_bytes);
                bar.set_position(done_bytes);
            }
            Kind::Plain if due && done_bytes < total_bytes => {
                self.say(&prepared(done_bytes, total_bytes, elapsed_s));
            }
            Kind::Plain | Kind::Quiet => {}
        }
        if newly_whole {
            self.say("prepare: writing back what is still in memory");
        }
    }

    fn second(&mut self, second: &Second) {
        if second.phase == PhaseName::Prepare {
            return;
        }
        match &self.kind {
            Kind::Quiet => {}
            Kind::Terminal(bar) => bar.set_message(self.line(second)),
            Kind::Plain => {
                let worst = worse(self.worst.take(), second);
                if second.at_s < self.next_plain_s {
                    self.worst = Some(worst);
                    return;
                }
                if self.next_plain_s == 0.0 {
                    self.say("each line has the worst of the seconds since the line before");
                }
                self.next_plain_s = second.at_s + PLAIN_EVERY_S;
                self.say(&self.line(&worst));
            }
        }
    }

    fn event(&mut self, event: &Event) {
        let detail = event.detail.as_deref().unwrap_or_default();
        match event.kind {
            EventKind::Warning | EventKind::DiscardsDidNotCome => {
                self.say(&format!("warning: {detail}"));
            }
            EventKind::Prepared => self.say(detail),
            EventKind::DeletionBegan if !detail.is_empty() => {
                self.say(&format!("event: {detail}"));
            }
            EventKind::SettleLimit => self.say(&format!("warning: the foreground is {detail}")),
            _ => {}
        }
    }
}

/// How far the files are, in words.
fn prepared(done_bytes: u64, total_bytes: u64, elapsed_s: f64) -> String {
    let done = format!("prepare: {} of {}", bytes(done_bytes), bytes(total_bytes));
    let per_s = done_bytes as f64 / elapsed_s;
    if per_s < 1.0 {
        return done;
    }
    let left_s = total_bytes.saturating_sub(done_bytes) as f64 / per_s;
    let rate = bytes_decimal(per_s as u64);
    format!("{done}, {rate}/s, {left_s:.0} s left")
}

fn bar_style() -> ProgressStyle {
    ProgressStyle::with_template(
        "{wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} ETA {eta}",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Removes what killed runs have left in a directory, and prints what it found.
pub(crate) fn sweep(directory: &Path) {
    for found in bench::sweep(directory).unwrap_or_default() {
        Stream::Err.print(&format!("{}\n", swept(&found)));
    }
}

/// The result of a sweep, in words.
pub(crate) fn swept(found: &bench::Swept) -> String {
    match found {
        bench::Swept::Removed {
            path, bytes: freed, ..
        } => {
            let (freed, path) = (bytes(*freed), names::shown(path));
            format!("removed {freed} that a killed run had left in {path}")
        }
        bench::Swept::InUse { path, pid } => {
            let process = pid.map_or("unknown".to_owned(), |pid| pid.to_string());
            let path = names::shown(path);
            format!(
                "{path} belongs to a run that goes on (process {process}): its load disturbs this one"
            )
        }
        bench::Swept::Left { path, because } => {
            format!("left {} alone, because {because}", names::shown(path))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_line_has_the_worst_of_the_seconds_before_it() {
        let of = |at_s, ops_per_s, worst_us| Second {
            at_s,
            phase: PhaseName::Delete,
            part: Part::Main,
            ops_per_s,
            worst_us,
            discard_bytes_per_s: 0.0,
            debt_bytes: 0,
        };
        let stalled = of(7.0, Some(4e3), Some(3e5));
        let worst = worse(Some(stalled), &of(8.0, Some(9e4), Some(90.0)));
        assert_eq!(
            (worst.at_s, worst.ops_per_s, worst.worst_us),
            (8.0, Some(4e3), Some(3e5))
        );
        assert_eq!(worse(None, &of(8.0, None, None)).ops_per_s, None);
    }

    #[test]
    fn plain_progress_tells_how_far_how_fast_and_how_long() {
        let gib = 1 << 30;
        assert_eq!(
            prepared(12 * gib, 33 * gib, 12.0),
            "prepare: 12.0 GiB of 33.0 GiB, 1.1 GB/s, 21 s left"
        );
        // Nothing is written yet: no rate, and no end in sight.
        assert!(!prepared(0, gib, 5.0).contains("left"));
    }
}
