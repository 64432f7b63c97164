//! Which files are deleted in which part, and their form for `load`. Pure.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use linux::owner::Name;
use load::DeletionSpec;
use load::deleter::Occasion;
use record::Part;

use super::item::Item;
use crate::plan::{Control, Deletion, Method, Plan, Trigger};

/// The files of one part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Set {
    /// Deleted.
    pub(super) victims: Vec<Item>,
    /// Take the places of those, where the deletion is a swap.
    pub(super) replacements: Vec<Item>,
}

/// The files of both parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Victims {
    main: Set,
    control: Set,
    /// Whether the control's files are names of the others.
    shared: bool,
}

impl Victims {
    pub(super) fn of(plan: &Plan) -> Victims {
        let Some(deletion) = &plan.deletion else {
            return Victims::default();
        };
        let files = match deletion.method.has_files() {
            true => deletion.files,
            false => 0,
        };
        let numbered = |numbers: std::ops::RangeInclusive<u32>| match deletion.method {
            Method::Swap => Set {
                victims: numbers.clone().map(Item::Table).collect(),
                replacements: numbers.map(Item::Replacement).collect(),
            },
            _ => Set {
                victims: numbers.map(|n| Item::Plain(Name::Victim(n))).collect(),
                replacements: Vec::new(),
            },
        };
        let control = match plan.control {
            None => Set::default(),
            Some(Control::Nodiscard) => numbered(files + 1..=2 * files),
            Some(Control::SecondName) => Set {
                victims: (1..=files).map(|n| Item::Plain(Name::Second(n))).collect(),
                replacements: Vec::new(),
            },
        };
        Victims {
            main: numbered(1..=files),
            control,
            shared: plan.control == Some(Control::SecondName),
        }
    }

    pub(super) fn of_part(&self, part: Part) -> &Set {
        match part {
            Part::Main => &self.main,
            Part::Control => &self.control,
        }
    }

    /// Files to be made, the control's first.
    pub(super) fn to_make(&self) -> impl Iterator<Item = Item> {
        let control = match self.shared {
            true => &[],
            false => &self.control.victims[..],
        };
        control.iter().chain(&self.main.victims).copied()
    }

    pub(super) fn replacements(&self) -> impl Iterator<Item = Item> {
        let both = self.control.replacements.iter();
        both.chain(&self.main.replacements).copied()
    }

    /// Each file that gets a second name for the control, and that name.
    pub(super) fn second_names(&self) -> impl Iterator<Item = (Name, Name)> {
        let seconds = match self.shared {
            true => &self.control.victims[..],
            false => &[],
        };
        let pairs = self.main.victims.iter().zip(seconds);
        pairs.filter_map(|pair| match pair {
            (&Item::Plain(first), &Item::Plain(second)) => Some((first, second)),
            _ => None,
        })
    }
}

/// The files to delete in a directory.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) paths: Vec<PathBuf>,
    pub(super) replacements: Vec<PathBuf>,
    /// The deleter's own.
    pub(super) folder: PathBuf,
    /// Any directory of the file system.
    pub(super) anywhere: PathBuf,
    pub(super) seed: u64,
}

/// The deletion's form for `load`; `None` for what a file system can't do, or figures of 0.
pub(super) fn deletion(deletion: &Deletion, files: Files) -> Option<DeletionSpec> {
    let paths = files.paths;
    Some(match &deletion.method {
        Method::Unlink { parallel } => DeletionSpec::Unlink {
            paths,
            parallel: NonZeroU32::new(*parallel)?,
        },
        Method::Truncate {
            chunk_bytes,
            sleep,
            fsync,
        } => DeletionSpec::Truncate {
            paths,
            chunk_bytes: NonZeroU64::new(*chunk_bytes)?,
            sleep: *sleep,
            fsync: *fsync,
        },
        Method::Command { argv } => DeletionSpec::Command {
            argv: argv.iter().map(Into::into).collect(),
            paths,
        },
        Method::Event { trigger, .. } => DeletionSpec::Event {
            occasion: match trigger {
                Trigger::Command { argv, .. } => {
                    Occasion::Program(argv.iter().map(Into::into).collect())
                }
                Trigger::Manual => Occasion::Stopped,
            },
            dir: files.anywhere,
        },
        Method::Punch {
            from,
            chunk_bytes,
            sleep,
        } => DeletionSpec::Punch {
            paths,
            from: *from,
            chunk_bytes: NonZeroU64::new(*chunk_bytes)?,
            sleep: *sleep,
        },
        Method::Fstrim => DeletionSpec::Fstrim {
            dir: files.anywhere,
        },
        Method::Swap => DeletionSpec::Swap {
            pairs: paths.into_iter().zip(files.replacements).collect(),
        },
        Method::Purge { at_once, every } => DeletionSpec::Purge {
            paths,
            at_once: NonZeroU32::new(*at_once)?,
            every: *every,
        },
        &Method::Lsm {
            levels,
            file_bytes,
            rate_bytes_per_s,
            run_for,
        } => DeletionSpec::Lsm {
            dir: files.folder,
            levels,
            file_bytes,
            rate_bytes_per_s,
            space_bytes: deletion.size_bytes,
            run_for,
            seed: files.seed,
        },
        &Method::Spill {
            parallel,
            pause,
            run_for,
        } => DeletionSpec::Spill {
            dir: files.folder,
            file_bytes: deletion.file_bytes(),
            parallel: NonZeroU32::new(parallel)?,
            pause,
            run_for,
            seed: files.seed,
        },
        Method::Discard { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;
    use crate::plan::{example, example_deletion};

    fn victims(method: Method, control: Option<Control>) -> Victims {
        let mut plan = example();
        plan.deletion = Some(example_deletion(method));
        plan.control = control;
        Victims::of(&plan)
    }

    #[test]
    fn a_control_that_deletes_has_files_of_its_own() {
        for method in [Method::Unlink { parallel: 1 }, Method::Swap] {
            let victims = victims(method.clone(), Some(Control::Nodiscard));
            let made: Vec<Item> = victims.to_make().chain(victims.replacements()).collect();
            let different: HashSet<String> = made.iter().map(|item| format!("{item:?}")).collect();
            assert_eq!(different.len(), made.len());
            let swap = method == Method::Swap;
            assert_eq!(made.len(), if swap { 16 } else { 8 });
            assert_eq!(victims.second_names().count(), 0);
        }
    }

    #[test]
    fn second_names_are_not_made_but_given() {
        let unlink = Method::Unlink { parallel: 1 };
        let victims = victims(unlink, Some(Control::SecondName));
        assert_eq!(victims.to_make().count(), 4);
        assert_eq!(victims.second_names().count(), 4);
        assert_ne!(
            victims.of_part(Part::Control).victims,
            victims.of_part(Part::Main).victims
        );
    }

    #[test]
    fn what_goes_on_makes_its_files_itself() {
        let s = Duration::from_secs(1);
        let spill = Method::Spill {
            parallel: 2,
            pause: s,
            run_for: s,
        };
        assert_eq!(victims(spill.clone(), None).to_make().count(), 0);
        let files = Files {
            folder: "/run/deleter".into(),
            ..Files::default()
        };
        match deletion(&example_deletion(spill), files) {
            Some(DeletionSpec::Spill {
                dir, file_bytes, ..
            }) => {
                assert_eq!(dir, PathBuf::from("/run/deleter"));
                assert_eq!(file_bytes, 32 << 20);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_raw_devices_deletion_has_no_files() {
        let discard = Method::Discard { step_bytes: 4096 };
        assert!(deletion(&example_deletion(discard), Files::default()).is_none());
    }
}
