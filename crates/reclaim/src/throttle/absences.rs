//! Spans in which this process did not run: which looks of a throttle they spoil.

use linux::presence::Witness;
use record::absence::Absent;

/// The look after an absence is left out, and the next one: the first may have read its counters
/// before the absence, and then the second has what happened meanwhile.
const LOOKS: u8 = 2;

/// Watches whether this process runs.
#[derive(Debug, Default)]
pub(super) struct Absences {
    /// Where something is measured.
    witness: Option<Witness>,
    all: Vec<Absent>,
    /// The number of looks that are still to be left out.
    looks: u8,
}

impl Absences {
    /// Begins to watch. If no thread can be started, it sees no absence.
    pub(super) fn watch() -> Absences {
        Absences {
            witness: Witness::start().ok(),
            ..Absences::default()
        }
    }

    /// Whether the look that is being made is to be left out.
    pub(super) fn spoil_this_look(&mut self) -> bool {
        self.note();
        let spoilt = self.looks > 0;
        self.looks = self.looks.saturating_sub(1);
        spoilt
    }

    /// How long this process has been away so far, in seconds.
    pub(super) fn seconds(&mut self) -> f64 {
        self.note();
        self.all.iter().map(|absent| absent.seconds).sum()
    }

    /// All of them.
    pub(super) fn take(&mut self) -> Vec<Absent> {
        self.note();
        std::mem::take(&mut self.all)
    }

    fn note(&mut self) {
        let found = self.witness.as_ref().map_or(Vec::new(), Witness::take);
        if !found.is_empty() {
            self.looks = LOOKS;
        }
        self.all.extend(found);
    }
}
