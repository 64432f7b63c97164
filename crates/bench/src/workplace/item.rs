//! A file that is made for the deletion, and where it lies.

use std::fs::File;
use std::path::PathBuf;

use linux::files::{Caching, FileError};
use linux::owner::{Folder, Name, WorkDir};

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
