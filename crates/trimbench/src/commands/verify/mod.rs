//! `trimbench verify`.

pub(crate) mod args;
mod remover;

use std::ffi::OsStr;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use experiments::verify::{Outcome, Plan, Progress, Report, VerifyError, Where, verify};
use record::units::names::shown;
use record::units::settings::Section;

use crate::commands::verify::args::{Details, VerifyArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit};
use crate::filled::Watched;
use crate::output::Output;
use crate::signals;
use crate::status_line::Live;

/// Carries out the command.
pub(crate) fn run(args: &VerifyArgs) -> Result<Exit, Error> {
    let plan = plan(args)?;
    let to_stdout = args.json.as_deref() == Some(Path::new("-"));
    let file = args
        .json
        .as_deref()
        .filter(|_| !to_stdout)
        .map(Output::open)
        .transpose()?;
    let stop = signals::stop_flag()?;
    crate::simulated::refuse_full(std::slice::from_ref(&args.path))?;
    let stores = match &plan.place {
        Where::Directory(path) => Watched::under(std::slice::from_ref(path)),
        Where::Device { path, .. } => {
            Watched::of(path.file_name().and_then(OsStr::to_str).into_iter())
        }
    };
    let mut live = Live::new("trimbench verify");
    let ended = verify(&plan, &stop, Some(&remover::remove), &mut |progress| {
        live.show(|_| line(progress));
    });
    live.end();
    stores.report("verify");
    let report = ended.map_err(|error| explained(error, args))?;
    let json = serde_json::to_value(&report).unwrap_or_default();
    match to_stdout {
        true => Stream::Out.json(&json),
        false => Stream::Out.print(&report.text()),
    }
    if let Some(file) = file {
        file.json(&json)?;
    }
    if report.outcome != Outcome::Clean || plan.check {
        about_state(args);
    }
    Ok(exit(&report))
}

fn plan(args: &VerifyArgs) -> Result<Plan, Error> {
    let found = std::fs::metadata(&args.path).map(|found| found.file_type());
    let device = found.as_ref().is_ok_and(FileTypeExt::is_block_device);
    let directory = found.as_ref().map_or(true, std::fs::FileType::is_dir);
    let place = match (device, args.destroy_data) {
        (true, true) => Where::Device {
            path: args.path.clone(),
            force: args.force,
        },
        (true, false) => {
            return Err(Error::Usage(format!(
                "{} is a block device, and testing it destroys all data on it: say so with \
                 --destroy-data, or name a directory",
                shown(&args.path)
            )));
        }
        (false, true) => {
            return Err(Error::Usage(format!(
                "--destroy-data: {} is not a block device; name one, such as /dev/sdb, or leave \
                 the option out",
                shown(&args.path)
            )));
        }
        (false, false) if !directory => {
            return Err(Error::Usage(format!(
                "{} is not a directory; name a directory, or a block device with --destroy-data",
                shown(&args.path)
            )));
        }
        (false, false) => Where::Directory(args.path.clone()),
    };
    let details = Details::of(&args.set).map_err(Error::Usage)?;
    if details.remount() && device {
        return Err(Error::Usage(
            "--set remount=true: a raw device isn't mounted; leave it out".to_owned(),
        ));
    }
    Ok(Plan {
        place,
        duration: args.duration,
        size_bytes: args.size,
        rate: details.rate,
        workers: details.workers(),
        fstrim: details.fstrim(),
        remount: details.remount(),
        state: args.state.clone(),
        check: args.check,
        volume: fastrand::u64(..),
    })
}

fn explained(error: VerifyError, args: &VerifyArgs) -> Error {
    about_state(args);
    match error.is_usage() {
        true => Error::Usage(error.to_string()),
        false => Error::Verify(error),
    }
}

/// Prints that the test can be continued, if its state is kept.
fn about_state(args: &VerifyArgs) {
    if let Some(state) = args.state.as_deref().filter(|state| state.exists()) {
        Stream::Err.print(&format!(
            "trimbench verify: the data and {} are kept; the same command goes on\n",
            shown(state)
        ));
    }
}

fn line(progress: &Progress) -> String {
    let mut text = format!(
        "{}: {} written, {} compared",
        progress.doing,
        record::units::bytes(progress.written_bytes),
        record::units::bytes(progress.read_bytes),
    );
    if let Some(left) = progress.left {
        text += &format!(", {} left", record::units::minutes(left));
    }
    if progress.findings > 0 {
        let places = record::units::counted(progress.findings, "damaged place");
        text += &format!(", {places} FOUND");
    }
    text
}

fn exit(report: &Report) -> Exit {
    match report.outcome {
        Outcome::Clean => Exit::Done,
        Outcome::Corrupt => Exit::ConditionHeld,
        Outcome::Interrupted => Exit::Interrupted,
        Outcome::Failed | Outcome::Incomplete | Outcome::Errors => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_time_left_is_shown_only_where_it_is_known() {
        let mut progress = Progress {
            doing: "writing all of it",
            left: None,
            written_bytes: 0,
            read_bytes: 0,
            findings: 0,
        };
        assert_eq!(
            line(&progress),
            "writing all of it: 0 B written, 0 B compared"
        );
        (progress.left, progress.findings) = (Some(Duration::from_secs(75)), 2);
        assert!(line(&progress).ends_with(", 75 s left, 2 damaged places FOUND"));
    }
}
