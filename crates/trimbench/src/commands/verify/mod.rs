//! `trimbench verify`.

pub(crate) mod args;

use std::ffi::OsStr;
use std::os::unix::fs::FileTypeExt;

use experiments::verify::{Outcome, Plan, Progress, Report, Where, verify};
use record::units::names::shown;
use record::units::settings::Section;

use crate::commands::verify::args::{Details, VerifyArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::filled::Stores;
use crate::output::{self, Sink};
use crate::signals;
use crate::status_line::Live;

/// Carries out the command.
pub(crate) fn run(args: &VerifyArgs) -> Result<Exit, Error> {
    let plan = plan(args)?;
    let json = Sink::named(&args.json)?;
    let stop = signals::stop_flag()?;
    crate::simulated::refuse_full(std::slice::from_ref(&args.path))?;
    let stores = match &plan.place {
        Where::Directory(path) => Stores::under(std::slice::from_ref(path)),
        Where::Device { path, .. } => {
            Stores::of(path.file_name().and_then(OsStr::to_str).into_iter())
        }
    };
    let mut live = Live::new("trimbench verify");
    let ended = verify(&plan, &stop, &mut |progress| {
        live.show(|_| line(progress));
    });
    live.end();
    stores.report("verify");
    let report = ended.map_err(|error| match error.is_usage() {
        true => usage(error.to_string()),
        false => Error::Verify(error),
    })?;
    output::present(&report, json, Stream::Out, || report.text())?;
    Ok(exit(&report))
}

fn plan(args: &VerifyArgs) -> Result<Plan, Error> {
    let found = std::fs::metadata(&args.path).map(|found| found.file_type());
    let device = found.as_ref().is_ok_and(FileTypeExt::is_block_device);
    let directory = found.as_ref().map_or(true, std::fs::FileType::is_dir);
    let path = shown(&args.path);
    let place = match (device, args.destroy_data) {
        (true, true) => Where::Device {
            path: args.path.clone(),
            force: args.force,
        },
        (true, false) => {
            return Err(usage(format!(
                "{path} is a block device, and testing it destroys all data on it: say so with \
                 --destroy-data, or name a directory"
            )));
        }
        (false, true) => {
            return Err(usage(format!(
                "--destroy-data: {path} is not a block device; name one, such as /dev/sdb, or leave \
                 the option out"
            )));
        }
        (false, false) if !directory => {
            return Err(usage(format!(
                "{path} is not a directory; name a directory, or a block device with --destroy-data"
            )));
        }
        (false, false) => Where::Directory(args.path.clone()),
    };
    let details = Details::of(&args.set).map_err(Error::Usage)?;
    Ok(Plan {
        place,
        duration: args.duration,
        size_bytes: args.size,
        rate: details.rate,
        workers: details.workers(),
        fstrim: details.fstrim(),
        volume: fastrand::u64(..),
    })
}

fn line(progress: &Progress) -> String {
    let [written, read] = [progress.written_bytes, progress.read_bytes].map(record::units::bytes);
    let mut text = format!("{}: {written} written, {read} compared", progress.doing);
    if let Some(left) = progress.left {
        text += &format!(", {} left", record::units::minutes(left));
    }
    if progress.findings > 0 {
        // At the end those that continue each other are one place.
        let times = record::units::counted(progress.findings, "time");
        text += &format!(", damage FOUND {times}");
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
        assert!(line(&progress).ends_with(", 75 s left, damage FOUND 2 times"));
    }
}
