//! The verdict of a record: the same, whether its run has just ended or its file
//! was found years later.

use judge::{JudgeOptions, Verdict, judge};
use record::DeviceInfo;
use record::as_drive::{NotSlowed, slower};
use record::{RunRecord, as_drive};

use crate::exit::Error;

/// Judges a record as its run was asked to (`--low`), and fits its discards.
pub(crate) fn verdict(record: &RunRecord) -> Verdict {
    verdict_with(record, &options(record))
}

/// Judges a record with these options.
pub(crate) fn verdict_with(record: &RunRecord, options: &JudgeOptions) -> Verdict {
    ssd::fit::joined(judge(record, options), record)
}

/// The options for judging that the record holds.
pub(crate) fn options(record: &RunRecord) -> JudgeOptions {
    let said = record.head.scenario.get("low").and_then(|low| low.as_f64());
    JudgeOptions {
        low: said
            .filter(|low| (0.0..=1.0).contains(low))
            .unwrap_or(JudgeOptions::default().low),
    }
}

/// Whether a run on these devices can be shown in another drive's time.
pub(crate) fn has_drives_time(devices: &[DeviceInfo]) -> Result<(), Error> {
    match slower(devices) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(refused(&NotSlowed::Real)),
        Err(why) => Err(refused(&why)),
    }
}

/// A record in the time of the drive that its simulated one stands for.
pub(crate) fn in_drives_time(record: RunRecord) -> Result<RunRecord, Error> {
    as_drive(record).map_err(|why| refused(&why))
}

fn refused(why: &NotSlowed) -> Error {
    Error::Usage(format!("--as-drive: {why}"))
}
