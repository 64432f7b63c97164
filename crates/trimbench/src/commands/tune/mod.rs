//! `trimbench tune`.

use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

use bench::Survey;
use bench::plan::Place;
use experiments::tune::{
    Advice, Findings, Goal, Rounds, Settings, Target, Trials, advise, frontier,
};
use progress::Progress;
use record::DeviceInfo;
use record::units::percent_exact;
use record::units::settings::Section;

use crate::commands::tune::args::{Details, TuneArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::output::Sink;
use crate::{confirm, console, output, run_progress, signals};

pub(crate) mod args;
mod intentions;
mod json;
mod progress;
mod set;
mod table;

/// Carries out the command.
pub(crate) fn run(args: &TuneArgs) -> Result<Exit, Error> {
    let details = Details::of(&args.set).map_err(Error::Usage)?;
    if let Some(file) = &args.trim_after {
        return trim_after(file, &args.path, details.slowdown());
    }
    if let Some(file) = &args.free_all {
        return free_all(file);
    }
    output::refuse_dry(args.dry_run, "--json", args.json.as_deref())?;
    let people = match args.json.as_deref() == Some(Path::new("-")) {
        true => Stream::Err,
        false => Stream::Out,
    };
    let target = Target::find(&args.path)?;
    if !args.dry_run {
        run_progress::sweep(&target.directory);
    }
    let place = Place::Directory(target.directory.clone());
    let is_root = rustix::process::geteuid().is_root();
    let survey = Survey::of(&place).map_err(|error| without_root(error.into(), is_root))?;
    let survey = crate::simulated::enter_cgroup(survey, args.dry_run);
    let trials = Trials::choose(&args.request(&details), &target, &survey)?;
    let slowed = slowed(&survey.devices);
    people.print(&intentions::of(&trials, args, &details, &target));
    people.print(&slowed);
    if args.dry_run {
        return Ok(Exit::Done);
    }
    let json = Sink::named(&args.json)?;
    if let Some(directory) = &details.records {
        output::make_directory(directory)?;
    }
    let stop = signals::stop_flag()?;
    // The first thing that needs root, and before anybody is asked.
    let mut settings = Settings::take(&target)?;
    if !args.yes && std::io::stdin().is_terminal() && !confirm::yes("Begin? [y/N] ", &stop) {
        return Ok(match stop.load(Ordering::Relaxed) {
            true => Exit::Interrupted,
            false => Exit::Done,
        });
    }
    let records = details.records.as_deref();
    let progress = Progress::new(people, &trials, records);
    let performed = Rounds::new(&trials, &survey, args.time, progress, stop).perform(&mut settings);
    let found = match performed {
        Ok(found) if found.interrupted => return interrupted(settings, &target),
        Ok(found) => found,
        Err(error) => {
            // The first error is returned; if the settings stay changed, that is printed beside it.
            if let Err(left) = settings.restore() {
                console::error(&left.into());
            }
            Stream::Err.print(&set::left_changed(&target));
            return Err(error.into());
        }
    };
    let goal = Goal {
        slowdown: details.slowdown(),
        limit_bytes: target.range.now_bytes,
        online: target.is_online(),
        deleted_bytes: trials.setup.size_bytes,
        // Whoever asks for single runs has what they say.
        least_runs: trials.repeats.min(2) as usize,
    };
    let advice = advise(&found.points, &goal);
    show(people, &found, &advice, &trials);
    people.print(&slowed);
    let kept = match advice.set.filter(|_| args.apply) {
        Some(trial) => settings.keep(&trial).map(|()| Some(trial)),
        None => settings.restore().map(|()| None),
    };
    // The result is written first, and what was set is printed, whatever else goes wrong.
    let applied = matches!(kept, Ok(Some(_)));
    let result = json::of(&target, &trials, &found, &advice, applied);
    let written = json.map_or(Ok(()), |mut json| {
        json.write(|to| to.write_all(result.as_bytes()))
    });
    let kept = match kept {
        Ok(kept) => kept,
        Err(error) => {
            Stream::Err.print(&set::left_changed(&target));
            if let Err(unwritten) = &written {
                console::error(unwritten);
            }
            return Err(error.into());
        }
    };
    people.print(&set::commands_or_done(
        &target,
        &advice,
        kept,
        details.slowdown(),
    ));
    if kept.is_none_or(|trial| trial.limit_bytes == target.range.now_bytes) {
        people.print(&set::left_changed(&target));
    }
    written.map(|()| Exit::Done)
}

/// The error of a place where nothing can be made. A plain user lacks more than a place.
fn without_root(error: Error, is_root: bool) -> Error {
    match is_root {
        true => error,
        false => usage(
            "trimbench tune needs root, for it changes the drive's settings: run it with sudo",
        ),
    }
}

/// The sentence about a simulated drive in stretched time; empty for any other.
fn slowed(devices: &[DeviceInfo]) -> String {
    let Ok(Some(slower)) = record::as_drive::slower(devices) else {
        return String::new();
    };
    let (times, how) = slower.in_words();
    let other = match how {
        "slower" => "shorter",
        _ => "longer",
    };
    format!(
        "The drive is simulated, and {times} times {how} than the one it stands for. All times here are as \
         measured; on that drive they are {times} times {other}.\n"
    )
}

/// Puts all back after the user has stopped it.
fn interrupted(settings: Settings, target: &Target) -> Result<Exit, Error> {
    let restored = settings.restore();
    if restored.is_ok() {
        Stream::Err.print(
            "trimbench: interrupted; what it had made is removed, what it had set is put back\n",
        );
    }
    Stream::Err.print(&set::left_changed(target));
    Ok(restored.map(|()| Exit::Interrupted)?)
}

/// The table, what follows and what it costs.
fn show(people: Stream, found: &Findings, advice: &Advice, trials: &Trials) {
    let on = frontier(&found.points);
    let mut text = format!("\n{}\n", table::of(&found.points, &on, trials));
    for note in &found.notes {
        text += &format!("! {note}\n");
    }
    text += &format!("\n{}\n\nWhat each choice costs:\n", advice.text);
    for cost in &advice.costs {
        text += &format!("  {}: {}.\n", cost.choice, cost.cost);
    }
    people.print(&text);
}

/// Removes the file, and has btrfs discard what it emptied.
fn free_all(file: &Path) -> Result<Exit, Error> {
    experiments::tune::free_with_groups(file)?;
    Ok(Exit::Done)
}

/// Removes the file, and becomes `trimbench fstrim`.
fn trim_after(file: &Path, path: &Path, slowdown: f64) -> Result<Exit, Error> {
    let range = experiments::tune::free(file)?;
    let failed = |e: std::io::Error| Error::Setting(format!("can't run `trimbench fstrim`: {e}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("fstrim").arg(path).arg("--quiet");
    command.arg(format!("--slowdown={}", percent_exact(slowdown)));
    // What else is free isn't a part of the experiment, but for the rest of a chunk of btrfs.
    command.arg(format!("--offset={}", range.start));
    command.arg(format!("--length={}", (range.end - range.start).max(1)));
    Err(failed(command.exec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_user_is_sent_to_sudo() {
        let shown = |is_root| without_root(usage("no file"), is_root).to_string();
        assert!(shown(false).contains("needs root"), "{}", shown(false));
        assert_eq!(shown(true), "no file");
    }

    #[test]
    fn a_drive_in_stretched_time_is_named_as_such() {
        let mut device = DeviceInfo {
            leaf: true,
            ..DeviceInfo::disk("loop9")
        };
        assert_eq!(slowed(std::slice::from_ref(&device)), "");
        device.slower = Some(record::Slower {
            times: 12.0,
            converted: false,
        });
        let text = slowed(&[device]);
        assert!(text.contains("12 times slower"), "{text}");
        assert!(text.contains("12 times shorter"), "{text}");
    }
}
