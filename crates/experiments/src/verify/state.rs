//! A record of all that was forced to the medium, for a later boot.

use std::io;
use std::path::{Path, PathBuf};

use record::form;
use serde::{Deserialize, Serialize};

use crate::verify::place::{Place, Surveyed};
use crate::verify::slot::{Cell, Content, Slot};
use crate::verify::{Plan, VerifyError};

const SCHEMA: &str = "trimbench.verify-state/1";

/// A state file's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    schema: String,
    /// The version that wrote it.
    #[serde(default)]
    version: String,
    /// The number in each sector.
    pub(crate) volume: u64,
    /// The directory or device that was named.
    pub(crate) path: PathBuf,
    /// The name of the test's directory; `None` on a raw device.
    pub(crate) directory: Option<String>,
    pub(crate) size_bytes: u64,
    /// Seconds of the test that are done.
    pub(crate) done_s: f64,
    pub(crate) slots: Vec<SlotState>,
}

/// A slot as it was at the last checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SlotState {
    pub(crate) number: u32,
    pub(crate) next: u32,
    pub(crate) length: usize,
    /// Nothing was written to it after the checkpoint: it must be as it was.
    pub(crate) frozen: bool,
    /// Blocks in a row, and their content.
    runs: Vec<(u64, Content)>,
}

impl State {
    /// Of a test that begins.
    pub(crate) fn new(plan: &Plan, surveyed: &Surveyed) -> State {
        State {
            schema: SCHEMA.to_owned(),
            version: form::VERSION.to_owned(),
            volume: plan.volume,
            path: surveyed.path.clone(),
            directory: match &surveyed.place {
                Place::Directory { home, .. } => Some(home.name()),
                Place::Device { .. } => None,
            },
            size_bytes: surveyed.size_bytes,
            done_s: 0.0,
            slots: Vec::new(),
        }
    }

    /// Reads a state file; `None` if there is none.
    pub(crate) fn read(path: &Path) -> Result<Option<State>, VerifyError> {
        let bad = |why: String| VerifyError::State {
            path: path.to_owned(),
            why,
        };
        let text = match std::fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| bad(format!("it can't be read: {error}")))?,
        };
        if let Some(why) = form::refusal(&text, SCHEMA) {
            return Err(bad(why));
        }
        let state: State = serde_json::from_slice(&text)
            .map_err(|error| bad(format!("it is none of `trimbench verify`: {error}")))?;
        let fits = |slot: &SlotState| {
            let blocks: u64 = slot.runs.iter().map(|(count, _)| count).sum();
            slot.number > 0 && slot.length as u64 <= blocks && blocks < 1 << 40
        };
        if state.schema != SCHEMA || state.slots.is_empty() || !state.slots.iter().all(fits) {
            return Err(bad("it is damaged".to_owned()));
        }
        Ok(Some(state))
    }

    /// Writes it: whole, and forced to the medium.
    pub(crate) fn write(&self, path: &Path) -> Result<(), VerifyError> {
        let bad = |error: io::Error| VerifyError::State {
            path: path.to_owned(),
            why: format!("it can't be written: {error}"),
        };
        let text = serde_json::to_vec(self).map_err(|error| bad(error.into()))?;
        linux::files::replace(path, &text, 0o600).map_err(bad)
    }
}

impl SlotState {
    pub(crate) fn of(slot: &Slot) -> SlotState {
        let runs = slot
            .map
            .chunk_by(|a, b| Content::from(*a) == Content::from(*b));
        let runs = runs.map(|run| (run.len() as u64, run[0].into())).collect();
        SlotState {
            number: slot.number,
            next: slot.next(),
            length: slot.length,
            frozen: slot.frozen,
            runs,
        }
    }

    /// Blocks of the slot.
    pub(crate) fn blocks(&self) -> usize {
        self.runs.iter().map(|(count, _)| *count as usize).sum()
    }

    /// The content that each block ought to have.
    pub(crate) fn map(&self) -> Vec<Cell> {
        let cells = self.runs.iter().flat_map(|(count, content)| {
            std::iter::repeat_n(Cell::from(*content), *count as usize)
        });
        cells.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        assert_eq!(State::read(&path).unwrap(), None);
        let map = vec![Content::Unknown.into(); 8];
        let mut slot = Slot::new(3, 0, tempfile::tempfile().unwrap(), 8, map);
        slot.set(0..2, Content::Data(9));
        slot.set(2..5, Content::Zeros);
        slot.trimmed(1..2);
        slot.go_on(77);
        let state = State {
            schema: SCHEMA.to_owned(),
            version: form::VERSION.to_owned(),
            volume: u64::MAX,
            path: "/data".into(),
            directory: Some("x".into()),
            size_bytes: 1 << 20,
            done_s: 2.5,
            slots: vec![SlotState::of(&slot)],
        };
        state.write(&path).unwrap();
        let read = State::read(&path).unwrap().unwrap();
        assert_eq!(read, state);
        assert_eq!(read.slots[0].map(), slot.map);
        assert_eq!((read.slots[0].blocks(), read.slots[0].next), (8, 77));
    }

    #[test]
    fn another_file_is_no_state() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let slots = r#"{"number":1,"next":1,"length":9,"frozen":false,"runs":[[1,"zeros"]]}"#;
        for text in [
            "",
            "{}",
            &format!(
                r#"{{"schema":"{SCHEMA}","volume":1,"path":"/","directory":null,"size_bytes":1,"done_s":0,"slots":[{slots}]}}"#
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = State::read(&path).unwrap_err();
            assert!(
                error.is_usage() && error.to_string().contains("state file"),
                "{error}"
            );
        }
    }
}
