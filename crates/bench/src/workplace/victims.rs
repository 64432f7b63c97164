//! Which files are deleted in which part. Pure.

use std::fs::File;
use std::path::PathBuf;

use linux::files::{Caching, FileError};
use linux::owner::{Folder, Name, WorkDir};
use record::Part;

use crate::plan::{Control, Method, Plan};

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
        let files = deletion.files_before();
        let numbered = |numbers: std::ops::RangeInclusive<u32>| match deletion.method {
            Method::Swap(_) => Set {
                victims: numbers.clone().map(Item::Table).collect(),
                replacements: numbers.map(Item::Replacement).collect(),
            },
            _ => Set {
                victims: numbers.map(|n| Item::Plain(Name::Victim(n))).collect(),
                replacements: Vec::new(),
            },
        };
        let control = match plan.control {
            Control::Off => Set::default(),
            Control::Nodiscard => numbered(files + 1..=2 * files),
            Control::SecondName => Set {
                victims: (1..=files).map(|n| Item::Plain(Name::Second(n))).collect(),
                replacements: Vec::new(),
            },
        };
        Victims {
            main: numbered(1..=files),
            control,
            shared: plan.control == Control::SecondName,
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

/// A file made to be deleted, or to take the place of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    /// Right in the run's directory.
    Plain(Name),
    /// A table that is swapped. It lies in the deleter's folder, because the
    /// swap gives it a name of its own choice meanwhile.
    Table(u32),
    /// The file that replaces the table.
    Replacement(u32),
}

impl Item {
    /// Creates it, still empty.
    pub(crate) fn create(self, work: &WorkDir) -> Result<File, FileError> {
        match self {
            Item::Plain(name) => work.create_file(name, Caching::Buffered),
            Item::Table(_) | Item::Replacement(_) => {
                work.create_file_in(Folder::Deleter, &self.name(), Caching::Buffered)
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(self, work: &WorkDir) -> PathBuf {
        match self {
            Item::Plain(name) => work.path_of(name),
            Item::Table(_) | Item::Replacement(_) => {
                work.path_of_folder(Folder::Deleter).join(self.name())
            }
        }
    }

    fn name(self) -> String {
        match self {
            Item::Plain(name) => name.to_string(),
            Item::Table(number) => format!("table-{number:06}"),
            Item::Replacement(number) => format!("replacement-{number:06}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;
    use crate::plan::{Spill, Swap, Unlink, example, example_deletion};

    fn victims(method: impl Into<Method>, control: Control) -> Victims {
        let mut plan = example();
        plan.deletion = Some(example_deletion(method));
        plan.control = control;
        Victims::of(&plan)
    }

    #[test]
    fn a_control_that_deletes_has_files_of_its_own() {
        for (method, made_files) in [(Unlink { parallel: 1 }.into(), 8), (Method::from(Swap), 16)] {
            let victims = victims(method, Control::Nodiscard);
            let made: Vec<Item> = victims.to_make().chain(victims.replacements()).collect();
            let different: HashSet<String> = made.iter().map(|item| format!("{item:?}")).collect();
            assert_eq!(different.len(), made.len());
            assert_eq!(made.len(), made_files);
            assert_eq!(victims.second_names().count(), 0);
        }
    }

    #[test]
    fn second_names_are_not_made_but_given() {
        let unlink = Unlink { parallel: 1 };
        let victims = victims(unlink, Control::SecondName);
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
        let spill = Spill {
            parallel: 2,
            pause: s,
            run_for: s,
        };
        assert_eq!(victims(spill, Control::Off).to_make().count(), 0);
    }
}
