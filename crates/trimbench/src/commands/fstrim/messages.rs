//! The messages of a trim: its progress, its result, and its cost for other I/O.

use std::path::{Path, PathBuf};
use std::time::Duration;

use diagnose::forecast::Forecast;
use pace::Refusal;
use reclaim::throttle::Summary;
use reclaim::trim::{Selected, Trimmed};
use reclaim::{Event, Progress, Reply};
use record::units::names::{quoted, shown};
use record::units::{byte_rate, bytes, counted, percent, seconds};

use super::halt::Halt;
use crate::commands::fstrim::args::FstrimArgs;
use crate::console::Stream;
use crate::status_line::Live;
use crate::{freeing, goal, interference};

/// Reports, and stops when the user presses Ctrl-C or the lease is lost.
pub(super) struct Printer {
    quiet: bool,
    people: Stream,
    path: PathBuf,
    live: Live,
}

impl Printer {
    pub(super) fn new(args: &FstrimArgs, people: Stream) -> Printer {
        Printer {
            quiet: args.quiet,
            people,
            path: PathBuf::new(),
            live: Live::new("trimbench fstrim"),
        }
    }

    /// Of another file system from now on.
    pub(super) fn begin(&mut self, path: &Path) {
        self.path = path.to_owned();
        self.live.restart();
    }

    /// Removes the live line.
    pub(super) fn end(&mut self) {
        self.live.end();
    }

    pub(super) fn hear(&mut self, event: Event<'_>, halt: &Halt) -> Reply {
        let path = &self.path;
        match event {
            Event::Progress(progress) if !self.quiet => self
                .live
                .show(|elapsed| format!("{}: {}", shown(path), line(&progress, elapsed))),
            Event::Note(sentence) => self.note(&format!("{}: {sentence}", shown(path))),
            _ => {}
        }
        match halt.is_due() {
            true => Reply::Stop,
            false => Reply::Yes,
        }
    }

    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            self.failed(text);
        }
    }

    pub(super) fn failed(&self, text: &str) {
        self.live
            .print(Stream::Err, &format!("trimbench fstrim: {text}\n"));
    }

    /// How it ended.
    pub(super) fn trimmed(&self, one: &Selected, trimmed: &Trimmed, args: &FstrimArgs) {
        if args.verbose && trimmed.stopped.is_none() {
            self.people.print(&as_fstrim(one, trimmed.bytes));
        }
        if !args.quiet {
            for line in summary(trimmed) {
                self.note(&format!("{}: {line}", shown(&one.path)));
            }
        }
        if let Some(kept) = &trimmed.kept {
            self.note(&format!(
                "{}: it is done, but what was noted stays: {kept}; remove it, or the next --resume \
                 goes on there",
                shown(&one.path)
            ));
        }
        if trimmed.stopped.is_some() {
            self.failed(&stopped(&one.path, trimmed, args));
        }
    }
}

/// The most that a trim discards: by the free extents, or where they are unknown up to `bound`.
pub(super) fn at_most(forecast: Option<&Forecast>, bound: u64) -> String {
    match forecast {
        Some(forecast) => diagnose::forecast::sentence(forecast, "at most"),
        None => format!("at most {}", bytes(bound)),
    }
}

/// fstrim's own line.
fn as_fstrim(one: &Selected, trimmed: u64) -> String {
    let on = match one.source.as_str() {
        "" => String::new(),
        source => format!(" on {source}"),
    };
    let (path, size) = (shown(&one.path), bytes(trimmed));
    format!("{path}: {size} ({trimmed} bytes) trimmed{on}\n")
}

/// Describes where it stopped, with the command that continues.
fn stopped(path: &Path, trimmed: &Trimmed, args: &FstrimArgs) -> String {
    let (done, all) = (trimmed.progress.looked.bytes, trimmed.progress.total_bytes);
    let share = percent(done as f64 / all.max(1) as f64);
    let on = match trimmed.noted {
        true => go_on(path, args, None),
        false => "how far it came could not be kept".to_owned(),
    };
    let (done, all) = (bytes(done), bytes(all));
    format!(
        "{}: interrupted at {done} of {all} ({share}); {on}",
        shown(path)
    )
}

/// Explains that the goal can't be met, with the command that continues with one that can.
pub(super) fn refused(path: &Path, refusal: Refusal, args: &FstrimArgs) -> String {
    let on = go_on(path, args, Some(refusal));
    format!("{}: {refusal}; {on}", shown(path))
}

/// The command that goes on with it.
fn go_on(path: &Path, args: &FstrimArgs, refused: Option<Refusal>) -> String {
    let (words, path) = (goal::in_shell(&given(args, refused)), quoted(path));
    format!("go on with: trimbench fstrim --resume{words} {path}")
}

/// The options that a resumed trim needs: the part that was asked for, and the goal. A goal that
/// was refused is replaced by one that can be met.
fn given(args: &FstrimArgs, refused: Option<Refusal>) -> Vec<String> {
    let set = args.set.iter().map(|setting| format!("--set={setting}"));
    let words = args.part().into_iter().chain(set);
    words.chain(args.goal.given_but(refused)).collect()
}

/// How far it is, in words.
fn line(progress: &Progress, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let (looked, all) = (progress.looked.bytes, progress.total_bytes);
    let parts = vec![
        format!("{} of {} looked at", bytes(looked), bytes(all)),
        format!("{} trimmed", bytes(progress.freed_bytes)),
        byte_rate(progress.freed_bytes as f64 / seconds),
        counted(progress.looked.windows, "window"),
    ];
    let per_s = progress.looked.now_bytes as f64 / seconds;
    let left = Some(all.saturating_sub(looked));
    freeing::line(parts, progress, left, per_s, elapsed)
}

/// The result with its goals, in one text.
pub(super) fn result(trimmed: &Trimmed) -> String {
    summary(trimmed).join("; ")
}

/// The result, a fact a line.
fn summary(trimmed: &Trimmed) -> Vec<String> {
    let (summary, progress) = (&trimmed.summary, &trimmed.progress);
    let windows = counted(progress.looked.windows, "window");
    let (freed, took) = (
        bytes(progress.freed_bytes),
        seconds(summary.elapsed.as_secs_f64()),
    );
    let discarded = discarded(summary);
    let text = format!("trimmed {freed} in {windows} and {took}, {discarded}");
    let report = interference::report(summary);
    std::iter::once(text).chain(report).collect()
}

fn discarded(summary: &Summary) -> String {
    let observed = summary.observed.as_ref();
    if observed.is_some_and(|observed| observed.own.bytes == 0) {
        return "nothing of it was discarded".to_owned();
    }
    let all = summary.discarded + observed.map_or(0, |observed| observed.others.bytes);
    let discards = counted(summary.discards, "discard");
    let text = format!("{} discarded in {discards}", bytes(all));
    match all.saturating_sub(summary.freed) {
        others if bytes(all) == bytes(all - others) => text,
        others => format!("{text}, {} of it by others", bytes(others)),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn parsed(words: &[&str]) -> Box<FstrimArgs> {
        let all = [&["trimbench", "fstrim", "/data"], words].concat();
        match Cli::try_parse_from(all).unwrap().command {
            Command::Fstrim(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_given_is_read_as_the_same() {
        for (words, expected) in [
            (
                &["--offset", "4k", "--set", "rate=300M/s"][..],
                &["--offset=4096", "--set=rate=300M/s"][..],
            ),
            (
                &["--deadline", "20m", "--slowdown", "5%", "--minimum", "1M"],
                &["--minimum=1048576", "--slowdown=5%", "--deadline=20m"],
            ),
            (&["--profile", "870-evo"], &["--profile=870-evo"]),
            (&["--verbose", "--resume"], &[]),
        ] {
            let once = given(&parsed(words), None);
            assert_eq!(once, expected, "{words:?}");
            let again: Vec<&str> = once.iter().map(String::as_str).collect();
            assert_eq!(given(&parsed(&again), None), once);
        }
    }

    #[test]
    fn it_says_how_far_how_fast_and_how_long() {
        let progress = Progress {
            total_bytes: 4 << 30,
            freed_bytes: 512 << 20,
            added_latency: Some(Duration::from_millis(2)),
            looked: reclaim::Looked {
                bytes: 3 << 30,
                now_bytes: 1 << 30,
                windows: 24,
            },
            ..Progress::default()
        };
        let text = line(&progress, Duration::from_secs(10));
        for part in [
            "3.0 GiB of 4.0 GiB looked at",
            ", 512 MiB trimmed",
            "24 windows",
            "other I/O waits 2.0 ms longer",
            "10.0 s left",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn what_others_discarded_is_no_part_of_the_trim() {
        let of = |freed, more| {
            discarded(&Summary {
                freed,
                discarded: freed + more,
                discards: 330,
                ..Summary::default()
            })
        };
        assert_eq!(of(3 << 30, 0), "3.0 GiB discarded in 330 discards");
        let beside = "4.2 GiB discarded in 330 discards, 2.7 GiB of it by others";
        assert_eq!(of(3 << 29, 2765 << 20), beside);
    }

    #[test]
    fn a_dry_run_has_one_figure_of_what_is_free() {
        let known = Forecast {
            bytes: 3 << 20,
            commands: 2,
            ..Forecast::default()
        };
        assert_eq!(
            at_most(Some(&known), 2 << 30),
            "at most 3.0 MiB: 2 discards"
        );
        assert_eq!(at_most(None, 2 << 30), "at most 2.0 GiB");
    }

    #[test]
    fn the_verbose_line_is_fstrims() {
        let one = Selected {
            path: PathBuf::from("/data"),
            source: "/dev/sda1".to_owned(),
        };
        assert_eq!(
            as_fstrim(&one, 1 << 30),
            "/data: 1.0 GiB (1073741824 bytes) trimmed on /dev/sda1\n"
        );
    }
}
