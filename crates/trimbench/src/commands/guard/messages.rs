//! The messages of `trimbench guard`.

use std::path::Path;

use reclaim::guard::{
    Event, FoundBy, Left, Reported, SecondNames, Status, TrimLeft, TrimReport, Watched,
};
use reclaim::throttle::Summary;
use serde_json::{Value, json};
use units::names::quoted;

use crate::commands::guard::args::StartArgs;
use crate::interference;

/// The first message.
pub(super) fn begins(directory: &Path, args: &StartArgs) -> String {
    format!(
        "{}: guards files of {} or more; stop with Ctrl-C, or with: trimbench guard stop {}",
        quoted(directory),
        units::bytes(args.min_size),
        quoted(directory)
    )
}

/// An event.
pub(super) fn event(event: &Event<'_>) -> String {
    match event {
        Event::Note(note) => note.clone(),
        Event::Freed {
            directory,
            freed,
            summary,
        } => {
            let text = format!(
                "{}: freed {} with {} in {}",
                quoted(directory),
                files(freed.files),
                units::bytes(freed.bytes),
                units::seconds(freed.seconds)
            );
            with_figures(text, *summary)
        }
        Event::Trimmed {
            directory,
            bytes,
            seconds,
            summary,
        } => {
            let text = format!(
                "{}: trimmed {} in {}",
                quoted(directory),
                units::bytes(*bytes),
                units::seconds(*seconds)
            );
            with_figures(text, *summary)
        }
    }
}

fn with_figures(text: String, summary: Option<&Summary>) -> String {
    let Some(summary) = summary else { return text };
    let lost = interference::lost(summary);
    let goals = interference::goals(summary).into_iter();
    std::iter::once(format!("{text}; {lost}"))
        .chain(goals)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The first message of a guard by trims.
pub(super) fn trims(directory: &Path) -> String {
    format!(
        "{}: trims what is freed on this file system; stop with Ctrl-C, or with: trimbench guard stop {}",
        quoted(directory),
        quoted(directory)
    )
}

/// The debt that a guard by trims leaves, if any.
pub(super) fn untrimmed(left: &TrimLeft) -> Option<String> {
    (left.debt_bytes > 0).then(|| {
        format!(
            "{}: {} that are free aren't trimmed; start a guard again, or run: trimbench fstrim {}",
            quoted(&left.directory),
            units::bytes(left.debt_bytes),
            quoted(&left.directory)
        )
    })
}

/// Second names that an ended guard left.
pub(super) fn left(left: &Left) -> String {
    still_there(&left.directory, &left.names)
}

/// Second names that are still there, and the next step.
pub(super) fn still_there(directory: &Path, names: &SecondNames) -> String {
    let mut parts = Vec::new();
    if names.waiting_files > 0 {
        parts.push(format!(
            "{} with {} wait to be freed",
            files(names.waiting_files),
            units::bytes(names.waiting_bytes)
        ));
    }
    if names.guarded_files > 0 {
        parts.push(format!(
            "{} in use keep their second name",
            files(names.guarded_files)
        ));
    }
    format!(
        "{}: {}; start a guard again, or free them with: trimbench guard stop --remove {}",
        quoted(directory),
        parts.join(", "),
        quoted(directory)
    )
}

fn files(count: u64) -> String {
    format!(
        "{} file{}",
        units::count(count),
        if count == 1 { "" } else { "s" }
    )
}

/// How a guard stands.
pub(super) fn status(status: &Status) -> String {
    let names = &status.names;
    let mut text = match status.pid {
        Some(pid) => format!("{}: guarded by process {pid}\n", quoted(&status.directory)),
        None => format!("{}: no guard runs\n", quoted(&status.directory)),
    };
    let trims = |reported: &Reported| reported.trim.map(|trim| (trim, reported.clone()));
    if let Some((trim, reported)) = status.reported.as_ref().and_then(trims) {
        return text + &trim_status(&trim, &reported);
    }
    text += &format!(
        "  guarded   {}, {}\n  waiting   {}, {}",
        files(names.guarded_files),
        units::bytes(names.guarded_bytes),
        files(names.waiting_files),
        units::bytes(names.waiting_bytes)
    );
    if names.waiting_files > 0 {
        text += &format!(", the oldest for {}", units::seconds(names.oldest_s as f64));
    }
    text += "\n";
    let Some(reported) = &status.reported else {
        return text;
    };
    text += &format!(
        "  freed     {}, {}\n{}",
        files(reported.freed.files),
        units::bytes(reported.freed.bytes),
        goal(reported)
    );
    let found_by = match reported.found_by {
        Some(FoundBy::Fanotify) => "as the kernel reports them (fanotify)",
        Some(FoundBy::Scan) => "by scans",
        None => "not yet",
    };
    text + &format!(
        "  files     of {} or more, found {found_by}\n",
        units::bytes(reported.min_bytes)
    )
}

fn goal(reported: &Reported) -> String {
    let latency = reported.max_latency_ms;
    format!(
        "  goal      --slowdown {}{}; met {} times, missed {} times\n",
        units::percent_exact(reported.slowdown),
        latency.map_or(String::new(), |ms| format!(" --max-latency {ms}ms")),
        reported.freed.goal_met,
        reported.freed.goal_missed,
    )
}

/// How a guard by trims stands.
fn trim_status(trim: &TrimReport, reported: &Reported) -> String {
    let mut text = format!(
        "  debt      {} freed and not trimmed, in {} extents",
        units::bytes(trim.debt_bytes),
        units::count(trim.extents)
    );
    if let Some(oldest) = trim.oldest_s {
        text += &format!(", the oldest for {}", units::seconds(oldest as f64));
    }
    text += "\n";
    if trim.unknown_bytes > 0 {
        text += &format!(
            "  unknown   {} are free and may never have been trimmed\n",
            units::bytes(trim.unknown_bytes)
        );
    }
    if trim.unseen_bytes > 0 {
        text += &format!(
            "  unseen    up to {} were used and freed between two looks\n",
            units::bytes(trim.unseen_bytes)
        );
    }
    if trim.short_bytes > 0 {
        text += &format!(
            "  short     {} of the debt in runs below {} wait for more\n",
            units::bytes(trim.short_bytes),
            units::bytes(trim.min_run_bytes)
        );
    }
    text += &format!("  trimmed   {}", units::bytes(trim.trimmed_bytes));
    if let (Some(p50), Some(p99)) = (trim.age_p50_s, trim.age_p99_s) {
        text += &format!(
            ", half within {}, 99 % within {} of being freed",
            units::seconds(p50),
            units::seconds(p99)
        );
    }
    text + "\n" + &goal(reported)
}

/// The same as JSON.
pub(super) fn json(status: &Status) -> Value {
    let names = &status.names;
    json!({
        "schema": "trimbench.guard/1",
        "directory": status.directory.to_string_lossy(),
        "pid": status.pid,
        "guarded": { "files": names.guarded_files, "bytes": names.guarded_bytes },
        "waiting": {
            "files": names.waiting_files,
            "bytes": names.waiting_bytes,
            "oldest_s": (names.waiting_files > 0).then_some(names.oldest_s),
        },
        "freed": status.reported.as_ref().map(|reported| json!({
            "files": reported.freed.files, "bytes": reported.freed.bytes,
        })),
        "goal": status.reported.as_ref().map(|reported| json!({
            "slowdown": reported.slowdown,
            "max_latency_ms": reported.max_latency_ms,
            "met": reported.freed.goal_met,
            "missed": reported.freed.goal_missed,
        })),
        "min_bytes": status.reported.as_ref().map(|reported| reported.min_bytes),
        "most": status.reported.as_ref().map(|reported| reported.most),
        "by": status.reported.as_ref().map(|reported| match reported.trim {
            Some(_) => "trim",
            None => "link",
        }),
        "trim": status.reported.as_ref().and_then(|reported| reported.trim),
        "found_by": status.reported.as_ref().and_then(|reported| reported.found_by),
    })
}

/// The result of a dry run.
pub(super) fn watched(directory: &Path, watched: &Watched, min_size: u64) -> String {
    let all = watched.large.bytes + watched.small.bytes + watched.truncated_bytes;
    let share = |bytes: u64| units::percent(bytes as f64 / all.max(1) as f64);
    let mut text = format!(
        "{}: in {} programs freed {} here\n",
        quoted(directory),
        units::seconds(watched.seconds),
        units::bytes(all)
    );
    if all > 0 {
        text += &format!(
            "  {:>8}  {} deleted of {} or more, with {}: --by link would have freed them\n",
            share(watched.large.bytes),
            files(watched.large.files),
            units::bytes(min_size),
            units::bytes(watched.large.bytes)
        );
        text += &format!(
            "  {:>8}  {} deleted below that, with {}\n  {:>8}  {} by truncating files, which --by link can't catch\n",
            share(watched.small.bytes),
            files(watched.small.files),
            units::bytes(watched.small.bytes),
            share(watched.truncated_bytes),
            units::bytes(watched.truncated_bytes)
        );
        text += &format!(
            "  {:>8}  with --by trim, on a mount without discard\n",
            share(all)
        );
    }
    text
}
