//! Every way that production deletes.
//!
//! A new way is a file beside this one, and its line in the table of [`ways!`] below.

use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use record::units::UnitError;
use record::units::kinds::one_of;
use serde::{Serialize, Serializer};

use super::asked::AskedDeletion;
use super::progress::Progress;
use super::refuse;
use super::victim::Victim;
use crate::clock::Clock;
use crate::error::LoadError;

/// A way of deleting, before its figures are known.
#[derive(Debug)]
pub struct How {
    /// Its name: lower-case letters.
    pub name: &'static str,
    /// Its effect, in one line.
    pub about: &'static str,
    /// The keys of `[deletion]` that do something with it, beside those of the files.
    pub keys: &'static [&'static str],
    /// The method with all its figures; the second argument is the bytes to delete.
    ///
    /// # Errors
    /// With what is wrong, for a person.
    pub of: fn(&AskedDeletion, u64) -> Result<Method, String>,
    /// Whether the key `how` takes its name.
    pub(super) is_word: bool,
    /// Whether the run makes the files that it deletes before it begins.
    pub has_files: bool,
    /// Whether it works in a folder of its own, where it names the files.
    pub has_folder: bool,
    /// Whether it leaves alone what has another name.
    pub spares_names: bool,
    /// Whether it discards, or something else does, whatever the mount's options are.
    pub discards: bool,
    /// Whether an outside program or a person decides how much it frees.
    pub is_foreign: bool,
}

impl How {
    /// A way that deletes the test's own files: what most have in common.
    pub(super) const FILES: How = How {
        name: "",
        about: "",
        keys: &[],
        of: |_, _| Err(String::new()),
        is_word: true,
        has_files: true,
        has_folder: false,
        spares_names: false,
        discards: false,
        is_foreign: false,
    };

    /// Those that the key `how` takes.
    pub(super) fn all_words() -> impl Iterator<Item = &'static How> + Clone {
        HOWS.iter().copied().filter(|how| how.is_word)
    }

    /// Their names, each with what it does.
    pub(super) fn words() -> Vec<(&'static str, &'static str)> {
        How::all_words().map(|how| (how.name, how.about)).collect()
    }

    /// The way of a name.
    pub(super) fn parse(text: &str) -> Result<&'static How, UnitError> {
        let words = How::all_words().map(|how| (how.name, how));
        one_of("way to delete", text, words)
    }

    /// Whether a key of `[deletion]` does something with it.
    pub(super) fn takes(&self, key: &str) -> bool {
        let of_files = ["size", "files", "extent-size", "no-sync"];
        self.keys.contains(&key) || self.has_files && of_files.contains(&key)
    }

    /// Whether it is to delete nothing.
    pub fn is_none(&self) -> bool {
        *self == NONE
    }
}

impl PartialEq for How {
    fn eq(&self, other: &How) -> bool {
        self.name == other.name
    }
}

/// Nothing is deleted.
pub(super) static NONE: How = How {
    name: "none",
    about: "delete nothing: only measure the foreground",
    has_files: false,
    ..How::FILES
};

/// A way with its figures, which a record's scenario shows.
pub(super) trait Way: fmt::Debug + Serialize {
    /// How long it creates and drops, if that is what it does, instead of deleting files that are
    /// there. How much it frees isn't known before.
    fn run_for(&self) -> Option<Duration> {
        None
    }

    /// Bytes of each file, where it makes its own.
    fn file_bytes(&self, _size_bytes: u64) -> Option<u64> {
        None
    }

    /// Whether it can be done as far as its figures tell, without a look at any file.
    fn check(&self, _files: &Files) -> Result<(), LoadError> {
        Ok(())
    }

    /// Begins it, in threads of its own. It has been checked.
    fn start(self, files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError>;
}

macro_rules! ways {
    ($($name:ident = $module:ident;)+) => {
        $( pub use super::$module::$name; )+

        /// Every way of deleting, with its figures.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Method {
            $( #[doc = concat!("See [`", stringify!($name), "`].")] $name($name), )+
        }

        /// Every way of deleting, and none.
        pub static HOWS: &[&How] = &[$(&super::$module::HOW,)+ &super::event::TRIM, &NONE];

        $( impl From<$name> for Method {
            fn from(way: $name) -> Method {
                Method::$name(way)
            }
        } )+

        impl Method {
            /// The way that it is.
            pub fn how(&self) -> &'static How {
                match self { $( Method::$name(_) => &super::$module::HOW, )+ }
            }

            /// How long it creates and drops, if that is what it does: then there is no moment
            /// before which nothing was deleted.
            pub fn run_for(&self) -> Option<Duration> {
                match self { $( Method::$name(way) => way.run_for(), )+ }
            }

            /// Bytes of each file, where it makes its own of so many bytes all together.
            pub fn file_bytes(&self, size_bytes: u64) -> Option<u64> {
                match self { $( Method::$name(way) => way.file_bytes(size_bytes), )+ }
            }

            /// Whether it can be done as far as its figures tell, without a look at
            /// any file. [`Deletion::start`] asks the same; a plan may want to know earlier.
            ///
            /// # Errors
            /// [`LoadError::Spec`], with what to give instead.
            ///
            /// [`Deletion::start`]: super::Deletion::start
            pub fn check(&self, files: &Files) -> Result<(), LoadError> {
                match self { $( Method::$name(way) => way.check(files), )+ }
            }

            pub(super) fn start(self, files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError> {
                match self { $( Method::$name(way) => way.start(files, clock), )+ }
            }

            fn figures(&self) -> serde_json::Result<serde_json::Value> {
                match self { $( Method::$name(way) => serde_json::to_value(way), )+ }
            }
        }
    };
}

ways! {
    Unlink = unlink;
    Truncate = truncate;
    Punch = punch;
    Fstrim = fstrim;
    Swap = swap;
    Purge = purge;
    Lsm = lsm;
    Spill = spill;
    Event = event;
    Program = command;
    Discard = discard;
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.figures().map_err(serde::ser::Error::custom)? {
            serde_json::Value::Null => serializer.serialize_str(self.how().name),
            figures => serializer.collect_map([(self.how().name, figures)]),
        }
    }
}

impl Method {
    /// Whether it makes and drops files over a stretch of time.
    pub fn is_continuous(&self) -> bool {
        self.run_for().is_some()
    }

    /// The event, where it is one.
    pub fn event(&self) -> Option<&Event> {
        match self {
            Method::Event(event) => Some(event),
            _ => None,
        }
    }

    /// Of a trim of all free space, whose gain is measured, the most bytes that the run writes.
    pub fn writes_at_most(&self) -> Option<u64> {
        match self {
            Method::Event(event) => event.writes_at_most_bytes,
            _ => None,
        }
    }
}

/// A method, and what it frees.
#[derive(Debug, Clone)]
pub struct DeletionSpec {
    /// The method.
    pub method: Method,
    /// The files, or the raw device.
    pub files: Files,
}

/// The files, or the part of a raw device, that a deletion frees.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The files, one after the other.
    pub paths: Vec<PathBuf>,
    /// Of a swap the file that takes the place of each.
    pub replacements: Vec<PathBuf>,
    /// The directory of a deletion that names its files itself.
    pub folder: PathBuf,
    /// Any directory of the file system.
    pub dir: PathBuf,
    /// The raw device.
    pub device: Option<Device>,
    /// Bytes all together. A continuous deletion's files never take more at once.
    pub size_bytes: u64,
    /// Bytes of each file that the deletion makes.
    pub file_bytes: u64,
    /// Seed of the data.
    pub seed: u64,
}

/// A raw device.
#[derive(Debug, Clone)]
pub struct Device {
    /// Opened for writing.
    pub file: Arc<File>,
    /// Its path, for messages.
    pub path: PathBuf,
    /// First byte; a multiple of 512.
    pub start: u64,
}

impl Files {
    /// The files with their allocated sizes.
    pub(super) fn victims(self) -> Result<Vec<Victim>, LoadError> {
        Victim::look_at_all(self.paths)
    }
}

/// Files are made of whole blocks of this many bytes.
pub const BLOCK: u64 = 4096;

/// So many bytes, without a last block that isn't whole.
pub fn whole_blocks(bytes: u64) -> u64 {
    bytes / BLOCK * BLOCK
}

/// Refuses a figure of 0.
pub(super) fn at_least_one(figure: u64) -> Result<(), LoadError> {
    match figure {
        0 => Err(refuse(
            "the deletion has 0 where it needs at least 1: calls or files at a time, or bytes per \
             piece",
        )),
        _ => Ok(()),
    }
}

/// Writes a duration into a record, in seconds.
///
/// # Errors
/// Those of the serializer.
pub fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
