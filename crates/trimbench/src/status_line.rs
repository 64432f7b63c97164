//! One line that says how far something is: rewritten on a terminal, one line after
//! the other elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console::Stream;

/// Before that, nothing is shown.
const SILENT: Duration = Duration::from_secs(1);
const PLAIN_EVERY: Duration = Duration::from_secs(5);
const LIVE_EVERY: Duration = Duration::from_millis(200);

/// The line of one command.
pub(crate) struct Live {
    command: &'static str,
    bar: Option<ProgressBar>,
    terminal: bool,
    began: Instant,
    next: Duration,
}

impl Live {
    /// For a command that is called so.
    pub(crate) fn new(command: &'static str) -> Live {
        Live {
            command,
            bar: None,
            terminal: Stream::Err.is_terminal(),
            began: Instant::now(),
            next: SILENT,
        }
    }

    /// Begins anew.
    pub(crate) fn restart(&mut self) {
        self.end();
        (self.began, self.next) = (Instant::now(), SILENT);
    }

    /// Shows the line, which is made of the time since the beginning, if it is time.
    pub(crate) fn show(&mut self, line: impl FnOnce(Duration) -> String) {
        let elapsed = self.began.elapsed();
        if elapsed < self.next {
            return;
        }
        if !self.terminal {
            self.next = elapsed + PLAIN_EVERY;
            if elapsed >= PLAIN_EVERY {
                let text = line(elapsed);
                Stream::Err.print(&format!("{}: {text}\n", self.command));
            }
            return;
        }
        self.next = elapsed + LIVE_EVERY;
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(one_line());
            bar
        });
        bar.set_message(line(elapsed));
        bar.tick();
    }

    /// Prints something that stays.
    pub(crate) fn print(&self, stream: Stream, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| stream.print(text)),
            None => stream.print(text),
        }
    }

    /// Removes the line.
    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// The style of a line that is cut to the terminal's width: one that wraps can't be cleared.
pub(crate) fn one_line() -> ProgressStyle {
    ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}
