//! What a person sees while a run goes on.

use std::time::Duration;

use bench::{Observer, Second};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use report::terminal::{self, LiveLine, Style};
use timeline::record::{Event, EventKind, Part, PhaseName};
use timeline::units;

use crate::console::Stream;

/// Where nobody looks at a terminal, a line is printed only so often.
const PLAIN_EVERY_S: f64 = 5.0;

/// Shows a run: bars and a live line on a terminal, plain lines elsewhere.
pub(crate) struct Progress {
    kind: Kind,
    style: Style,
    interval: Duration,
    next_plain_s: f64,
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
        }
    }

    /// Removes the live line.
    pub(crate) fn end(self) {
        if let Kind::Terminal(bar) = self.kind {
            bar.finish_and_clear();
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
                _ => ProgressStyle::with_template("{msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            });
        }
    }

    fn preparing(&mut self, done_bytes: u64, total_bytes: u64) {
        if let Kind::Terminal(bar) = &self.kind {
            bar.set_length(total_bytes);
            bar.set_position(done_bytes);
        }
    }

    fn second(&mut self, second: &Second) {
        if second.phase == PhaseName::Prepare {
            return;
        }
        let aged = |us: &f64| Duration::from_secs_f64(us / 1e6) > self.interval;
        let line = terminal::live(
            &LiveLine {
                elapsed_s: second.at_s,
                phase: second.phase,
                part: second.part,
                ops_per_s: second.ops_per_s,
                p99_us: second.p99_us,
                oldest_us: second.oldest_us.filter(aged),
                discard_bytes_per_s: second.discard_bytes_per_s,
                debt_bytes: second.debt_bytes,
            },
            &self.style,
        );
        match &self.kind {
            Kind::Quiet => {}
            Kind::Terminal(bar) => bar.set_message(line),
            Kind::Plain if second.at_s < self.next_plain_s => {}
            Kind::Plain => {
                self.next_plain_s = second.at_s + PLAIN_EVERY_S;
                self.say(&line);
            }
        }
    }

    fn event(&mut self, event: &Event) {
        let detail = event.detail.as_deref().unwrap_or_default();
        match event.kind {
            EventKind::Warning => self.say(&format!("warning: {detail}")),
            EventKind::Prepared => self.say(detail),
            EventKind::SettleLimit => self.say(&format!("warning: the foreground is {detail}")),
            EventKind::DiscardsDidNotCome => self.say(&format!("warning: {detail}")),
            _ => {}
        }
    }
}

fn bar_style() -> ProgressStyle {
    ProgressStyle::with_template(
        "{wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} ETA {eta}",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// What a sweep found, in words.
pub(crate) fn swept(found: &bench::Swept) -> String {
    match found {
        bench::Swept::Removed { path, bytes, .. } => format!(
            "removed {} that a killed run had left in {}",
            units::bytes(*bytes),
            path.display()
        ),
        bench::Swept::InUse { path, pid } => format!(
            "{} belongs to a run that goes on ({}): its load disturbs this one",
            path.display(),
            pid.map_or("process unknown".to_owned(), |pid| format!("process {pid}")),
        ),
        bench::Swept::Left { path, because } => {
            format!("left {} alone, because {because}", path.display())
        }
    }
}
