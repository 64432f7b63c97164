//! Another program deletes; the growth of the file system's free space is the amount that it frees.

use std::sync::Arc;
use std::time::Duration;

use record::units::names;
use serde::Serialize;

use super::command;
use super::progress::Progress;
use super::space::FreeSpace;
use super::spec::{Files, How, Way, seconds};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static HOW: How = How {
    name: "event",
    about: "delete nothing of the test's: watch what the command of --event does",
    keys: &["no-sync", "event", "event-quiet"],
    of: |asked, _| {
        let text = asked.event.clone().unwrap_or_default();
        Ok(Event {
            argv: command::program("--event", &text, "rm -r /data/old")?,
            text,
            quiet: asked.event_quiet(),
            writes_at_most_bytes: None,
        }
        .into())
    },
    discards: true,
    has_files: false,
    is_foreign: true,
    ..How::FILES
};

pub(super) static TRIM: How = How {
    name: "trim",
    about: "delete nothing: trim all free space, paced by trimbench fstrim (root only)",
    keys: &["event-quiet", "writes-at-most"],
    of: |asked, _| {
        let program = std::env::current_exe()
            .map_err(|error| format!("can't tell where this program is: {error}"))?;
        let program = program.to_string_lossy().into_owned();
        Ok(Event {
            text: "trimbench fstrim".to_owned(),
            argv: vec![program, "fstrim".to_owned()],
            quiet: asked.event_quiet(),
            writes_at_most_bytes: Some(asked.writes_at_most_bytes()),
        }
        .into())
    },
    discards: true,
    has_files: false,
    is_foreign: true,
    ..How::FILES
};

/// A deletion by another program, which the run only watches. The freed amount is the growth of the
/// file system's free space, whatever causes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// Its command as it was given.
    pub text: String,
    /// Program and arguments, run without a shell in a process group of its own.
    pub argv: Vec<String>,
    /// It is over when no significant discard has come for so long.
    #[serde(serialize_with = "seconds", rename = "quiet_s")]
    pub quiet: Duration,
    /// Of a trim of all free space the most bytes that the run writes: the verdict has its gain.
    /// `None` of other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_at_most_bytes: Option<u64>,
}

impl Event {
    /// Of a trim: gives its command the mount point.
    pub fn at_mount(&mut self, mount: &str) {
        if self.writes_at_most_bytes.is_some() {
            self.text.push_str(&format!(" {}", names::quoted(mount)));
            self.argv.push(mount.to_owned());
        }
    }
}

impl Way for Event {
    fn start(self, files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError> {
        let space = FreeSpace::of(&files.dir)?;
        let look = move |progress: &Progress| progress.set_freed(space.freed_bytes());
        let progress = Progress::new(clock, 2, 0, 0);
        let argv = self.argv.into_iter().map(Into::into).collect();
        command::start_watched(vec![argv], progress, look)
    }
}
