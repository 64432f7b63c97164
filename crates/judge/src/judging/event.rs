//! A deletion by another process that the run only watched (`run --event`).

use serde_json::Value;

use super::counting::LEAST_FREED;
use record::{DeletionLine, RunRecord};

/// Longest command in a sentence, in characters.
const LONGEST: usize = 60;

/// The event that a record's run watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The command as it was given.
    pub(super) command: String,
}

impl Event {
    /// The event of a record, by the plan in its head; `None` where the run
    /// deleted its own files.
    pub(super) fn of(record: &RunRecord) -> Option<Event> {
        let event = record.head.scenario.pointer("/deletion/method/event")?;
        // Records of the first builds have it below `trigger`.
        let text = event.get("text").or(event.pointer("/trigger/command/text"));
        Some(Event {
            command: text.and_then(Value::as_str)?.to_owned(),
        })
    }

    /// Its name within a sentence, short and without control characters.
    pub(super) fn name(&self) -> String {
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        let mut short: String = self.command.chars().take(LONGEST).map(printable).collect();
        if self.command.chars().count() > LONGEST {
            short.push('…');
        }
        format!("`{short}`")
    }
}

/// Whether an outside program or an event freed nothing, as far as the free
/// space tells. `discards` is whether there were any that matter.
pub(super) fn freed_nothing(
    deletion: &DeletionLine,
    event: Option<&Event>,
    discards: bool,
) -> bool {
    let Some(space) = deletion.space_freed_bytes else {
        return false;
    };
    let files_went = event.is_none() && deletion.bytes > 0;
    // The file system may have kept a file's space (a second name, a move), or
    // others have written as much meanwhile: discards tell these apart.
    let least = if files_went {
        deletion.bytes / 2
    } else {
        LEAST_FREED
    };
    let discards = discards && (files_went || event.is_some());
    space < least && !discards
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn nothing(event: bool, bytes: u64, space: Option<u64>, discards: bool) -> bool {
        let event = event.then(|| Event {
            command: "purge".to_owned(),
        });
        let line = DeletionLine {
            bytes,
            space_freed_bytes: space,
            ..DeletionLine::default()
        };
        freed_nothing(&line, event.as_ref(), discards)
    }

    #[test]
    fn a_program_that_freed_no_space_deleted_nothing() {
        assert!(nothing(false, 0, Some(0), false), "true {{}}");
        assert!(nothing(false, 0, Some(0), true), "discards of others");
        assert!(nothing(false, 32 * MIB, Some(4096), false), "mv {{}} there");
        assert!(!nothing(false, 32 * MIB, Some(32 * MIB), false));
        assert!(!nothing(false, 32 * MIB, Some(0), true), "others wrote");
        assert!(!nothing(false, 8192, Some(8192), false), "a tiny file");
        assert!(!nothing(false, 32 * MIB, None, false), "an old record");
    }

    #[test]
    fn an_event_without_space_and_discards_deleted_nothing() {
        assert!(nothing(true, 0, Some(4096), false));
        assert!(!nothing(true, 0, Some(0), true), "fstrim");
        assert!(!nothing(true, 2 * MIB, Some(2 * MIB), false));
    }

    #[test]
    fn a_long_command_is_cut_in_sentences() {
        let named = |command: &str| {
            let command = command.to_owned();
            Event { command }.name()
        };
        assert_eq!(named("rm -r\told"), "`rm -r old`");
        assert_eq!(named(&"ä".repeat(61)), format!("`{}…`", "ä".repeat(60)));
        assert_eq!(named(&"ä".repeat(60)), format!("`{}`", "ä".repeat(60)));
    }
}
