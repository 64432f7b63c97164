//! The steps of a cell.

use record::units::typed;
use serde::{Deserialize, Serialize};

use crate::suite::cell::Cell;

/// One step of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Makes the file system.
    Mkfs,
    /// Creates the files, with several writers at once.
    Create,
    /// Removes the files one by one, each with an `rm` of its own.
    RmEach,
    /// Removes the files with one `rm`.
    Rm,
    /// Removes the files with `trimbench rm`.
    RmTrimbench,
    /// Trims with `fstrim`.
    Fstrim,
    /// Trims with `trimbench fstrim`.
    FstrimTrimbench,
    /// Reads beside a deletion with plain unlink.
    Run,
    /// Reads beside a deletion with `trimbench rm`.
    RunRmTrimbench,
    /// Reads beside a deletion and a trim of the whole file system.
    RunFstrim,
}

impl Step {
    /// All steps, in their order.
    pub const ALL: [Step; 10] = [
        Step::Mkfs,
        Step::Create,
        Step::RmEach,
        Step::Rm,
        Step::RmTrimbench,
        Step::Fstrim,
        Step::FstrimTrimbench,
        Step::Run,
        Step::RunRmTrimbench,
        Step::RunFstrim,
    ];

    /// The steps of a cell, in their order. Where the mount sends discards, paced deletion is run
    /// beside readers; where it sends none, a trim is.
    pub fn of(cell: &Cell) -> Vec<Step> {
        let discards = cell.mounting.discards();
        let mut steps = Step::ALL.to_vec();
        steps.retain(|step| match step {
            Step::Run | Step::RunRmTrimbench => discards,
            Step::RunFstrim => !discards,
            _ => true,
        });
        steps
    }

    /// The step in words.
    pub fn words(self) -> &'static str {
        self.texts().1
    }

    /// Its name, as the log has it.
    pub fn name(self) -> &'static str {
        self.texts().0
    }

    /// Its name, and the step in words.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Step::Mkfs => ("mkfs", "mkfs"),
            Step::Create => ("create", "create files"),
            Step::RmEach => ("rm-each", "rm, one by one"),
            Step::Rm => ("rm", "rm, all at once"),
            Step::RmTrimbench => ("rm-trimbench", "trimbench rm"),
            Step::Fstrim => ("fstrim", "fstrim"),
            Step::FstrimTrimbench => ("fstrim-trimbench", "trimbench fstrim"),
            Step::Run => ("run", "reads beside rm"),
            Step::RunRmTrimbench => ("run-rm-trimbench", "reads beside trimbench rm"),
            Step::RunFstrim => ("run-fstrim", "reads beside fstrim"),
        }
    }

    /// Whether it is a run of readers beside a deletion.
    pub fn is_run(self) -> bool {
        matches!(self, Step::Run | Step::RunRmTrimbench | Step::RunFstrim)
    }

    /// Whether it removes the files.
    pub fn is_rm(self) -> bool {
        matches!(self, Step::RmEach | Step::Rm | Step::RmTrimbench)
    }

    /// Whether it trims.
    pub fn is_trim(self) -> bool {
        matches!(self, Step::Fstrim | Step::FstrimTrimbench)
    }
}

impl std::str::FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        let found = Step::ALL.into_iter().find(|step| step.name() == text);
        found.ok_or_else(|| {
            let names = Step::ALL.map(Step::name);
            let hint = typed::hint(&typed::nearest(text, names));
            format!(
                "no step is called '{text}'{} There are {}.",
                typed::sentence_end(&hint),
                names.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_found_by_the_name_that_the_log_has() {
        for step in Step::ALL {
            assert_eq!(step.name().parse(), Ok(step));
            let json = serde_json::to_value(step).unwrap();
            assert_eq!(json, step.name());
        }
        let refused = "fstrin".parse::<Step>().unwrap_err();
        assert!(refused.contains("did you mean 'fstrim'?"), "{refused}");
        for cell in Cell::all() {
            let steps = Step::of(&cell);
            assert!(steps[0] == Step::Mkfs && steps.is_sorted(), "{cell}");
        }
    }
}
