//! The messages of `trimbench guard`.

use std::path::Path;

use reclaim::guard::{Event, FoundBy, Left, SecondNames, Status, Watched};
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
            let Some(summary) = summary else { return text };
            let lost = interference::lost(summary);
            let goals = interference::goals(summary).into_iter();
            std::iter::once(format!("{text}; {lost}"))
                .chain(goals)
                .collect::<Vec<_>>()
                .join("; ")
        }
    }
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
    let latency = reported.max_latency_ms;
    text += &format!(
        "  freed     {}, {}\n  goal      --slowdown {}{}; met {} times, missed {} times\n",
        files(reported.freed.files),
        units::bytes(reported.freed.bytes),
        units::percent_exact(reported.slowdown),
        latency.map_or(String::new(), |ms| format!(" --max-latency {ms}ms")),
        reported.freed.goal_met,
        reported.freed.goal_missed,
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
            "  {:>8}  {} deleted of {} or more, with {}: guard would have freed them\n",
            share(watched.large.bytes),
            files(watched.large.files),
            units::bytes(min_size),
            units::bytes(watched.large.bytes)
        );
        text += &format!(
            "  {:>8}  {} deleted below that, with {}\n  {:>8}  {} by truncating files, which guard can't catch\n",
            share(watched.small.bytes),
            files(watched.small.files),
            units::bytes(watched.small.bytes),
            share(watched.truncated_bytes),
            units::bytes(watched.truncated_bytes)
        );
    }
    text
}
