//! Which cells, how often, with how many files.

use record::units::{GIB, MIB, bytes};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::suite::cell::Cell;
use crate::suite::drive::Drive;
use crate::suite::step::Step;

/// Discards that take so long in all, in seconds, show a run whether they stall others: a stall
/// lasts 0.2 s at least, and its edges lie within intervals.
const TELLING_S: f64 = 0.5;
/// Bytes of a cell's files with `quick`.
const QUICK: u64 = 512 * MIB;
/// The most that the files take by default.
const MOST: u64 = 8 * GIB;
/// So many times slower than its profile a simulated drive can be.
const SLOWEST: f64 = 1000.0;
/// Share of a device that the files take by default.
const SHARE: u64 = 8;

/// A request; `None` is trimbench's choice.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// The cells.
    pub cells: Vec<Cell>,
    /// The steps besides mkfs; none: all of them.
    pub steps: Vec<Step>,
    /// Files of a cell.
    pub files: Option<u32>,
    /// Bytes of all files of a cell.
    pub size_bytes: Option<u64>,
    /// Files written at once.
    pub writers: Option<u32>,
    /// Rounds.
    pub repeats: Option<u32>,
    /// Fewer bytes, fewer rounds, shorter runs.
    pub quick: bool,
    /// Bytes that the drive discards per second, where that is known beforehand.
    pub discards_per_s: Option<f64>,
}

/// The work. It is part of the log, so that a suite that goes on does the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Names of the cells.
    pub cells: Vec<String>,
    /// The steps, in their order; a cell has those that apply to it.
    pub steps: Vec<Step>,
    /// How often each cell is gone through; they take turns.
    pub rounds: u32,
    /// Files of a cell.
    pub files: u32,
    /// Bytes of each file.
    pub file_bytes: u64,
    /// Files written at once.
    pub writers: u32,
    /// Whether runs are short.
    pub quick: bool,
}

/// The cost of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Bytes written.
    pub written_bytes: u64,
    /// Seconds at [`Estimate::RATE`], without the time of discards.
    pub seconds: f64,
}

impl Estimate {
    /// The rate of writing that an estimate assumes, in bytes per second.
    pub const RATE: f64 = 400e6;
}

impl Asked {
    /// Bytes of a cell's files with `quick`: few, but on a fast drive as many as show a stall, if
    /// these fit into `room`.
    fn quick_bytes(&self, room: u64) -> u64 {
        let telling = self.discards_per_s.map_or(0.0, |rate| TELLING_S * rate);
        let telling = (telling.min(MOST as f64) as u64).next_power_of_two();
        Some(telling)
            .filter(|bytes| *bytes <= room)
            .map_or(QUICK, |bytes| bytes.max(QUICK))
            .min(room)
    }
}

impl Plan {
    /// The plan for a device of so many bytes.
    ///
    /// # Errors
    /// When the files don't fit, or the device is too small for a run.
    pub fn new(asked: &Asked, device_bytes: u64) -> Result<Plan, Error> {
        let files = asked.files.unwrap_or(64);
        let room = (device_bytes / SHARE).min(MOST);
        let most = match asked.quick {
            true => asked.quick_bytes(room),
            false => room,
        };
        let size = asked.size_bytes.unwrap_or(most);
        let file_bytes = (size / u64::from(files) / MIB * MIB).max(MIB);
        let plan = Plan {
            cells: asked.cells.iter().map(Cell::to_string).collect(),
            steps: steps(&asked.steps),
            rounds: asked.repeats.unwrap_or(if asked.quick { 2 } else { 3 }),
            files,
            file_bytes,
            writers: asked.writers.unwrap_or(8).min(files),
            quick: asked.quick,
        };
        let own = plan.cell_bytes() + plan.foreground_bytes();
        let needed = needed_bytes(plan.cell_bytes(), device_bytes);
        if needed > device_bytes {
            return Err(Error::Usage(format!(
                "{} is too small: {} files of {} ({}), a file of {} for the readers, and {} that \
                 stay free or that the file system takes need {}; give a larger device, or a \
                 smaller size or fewer files",
                bytes(device_bytes),
                plan.files,
                bytes(plan.file_bytes),
                bytes(plan.cell_bytes()),
                bytes(plan.foreground_bytes()),
                bytes(needed - own),
                bytes(needed)
            )));
        }
        Ok(plan)
    }

    /// Returns why the runs may be inconclusive, and what to do: the `drive` may discard the files too
    /// fast for a stall to show. `discards_per_s`: its bytes per second, where known.
    pub fn too_fast(&self, drive: &Drive, discards_per_s: Option<f64>) -> Option<String> {
        let bytes = self.cell_bytes();
        let shown = record::units::bytes(bytes);
        if !self.runs() {
            return None;
        }
        let Some(rate) = discards_per_s else {
            let more = self.larger(drive.size_bytes());
            return self.quick.then(|| {
                format!(
                    "a drive that discards {shown} in less than {TELLING_S} s is too fast for the \
                     reads beside a deletion to tell a stall: then {more} may help"
                )
            });
        };
        let seconds = bytes as f64 / rate;
        (seconds < TELLING_S).then(|| {
            format!(
                "this drive discards {shown} in {}, too fast for the reads beside a deletion to \
                 tell a stall: {}",
                record::units::seconds(seconds),
                slow_enough(drive, TELLING_S * rate, TELLING_S / seconds)
            )
        })
    }

    /// Returns what shows more on a device of so many bytes: twice the data if they fit.
    pub(crate) fn larger(&self, device_bytes: u64) -> String {
        let bytes = 2 * self.cell_bytes();
        match needed_bytes(bytes, device_bytes) <= device_bytes {
            true => format!("more data (--set size={}M)", bytes / MIB),
            false => "a larger drive, since no more data fits this one,".to_owned(),
        }
    }

    /// The steps of a cell, in their order.
    pub fn steps_of(&self, cell: &Cell) -> Vec<Step> {
        let mut steps = Step::of(cell);
        steps.retain(|step| self.steps.contains(step));
        steps
    }

    /// Bytes of all files of a cell.
    pub fn cell_bytes(&self) -> u64 {
        u64::from(self.files) * self.file_bytes
    }

    /// Bytes that a run's reader reads.
    pub fn foreground_bytes(&self) -> u64 {
        read_bytes(self.cell_bytes())
    }

    /// The most bytes of data that are on the drive at once, about. Without discards, files that
    /// were removed stay there until a trim.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let lazy = self.cells().filter(|cell| !cell.mounting.discards());
        let removals = |cell: Cell| {
            self.steps_of(&cell)
                .iter()
                .filter(|step| step.is_rm())
                .count()
        };
        let sets = lazy.map(removals).fold(1, usize::max) as u64;
        sets * self.cell_bytes() + self.foreground_bytes() + 64 * MIB
    }

    /// Whether any cell has a step that is a run of `trimbench run`.
    pub(crate) fn runs(&self) -> bool {
        self.cells()
            .any(|cell| self.steps_of(&cell).into_iter().any(Step::is_run))
    }

    /// Its cells.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Cell> {
        self.cells.iter().filter_map(|name| Cell::named(name))
    }

    /// Round (from 1) and cell of each turn.
    pub fn turns(&self) -> Vec<(u32, Cell)> {
        let cells: Vec<Cell> = self.cells().collect();
        let of =
            |round: u32| crate::turns(&cells, round as usize - 1).map(move |cell| (round, *cell));
        (1..=self.rounds).flat_map(of).collect()
    }

    /// Its cost.
    pub fn estimate(&self) -> Estimate {
        let mut estimate = Estimate {
            written_bytes: 0,
            seconds: 0.0,
        };
        for (_, cell) in self.turns() {
            for step in self.steps_of(&cell) {
                estimate.written_bytes += self.written_bytes(&cell, step);
                // A run settles, measures a baseline, waits for discards and recovers.
                estimate.seconds += match step.is_run() {
                    true if self.quick => 14.0,
                    true => 30.0,
                    false => 2.0,
                };
            }
        }
        estimate.seconds += estimate.written_bytes as f64 / Estimate::RATE;
        estimate
    }

    /// Bytes that a step writes, beside what mkfs and the journal do.
    fn written_bytes(&self, cell: &Cell, step: Step) -> u64 {
        match step {
            Step::Mkfs => 0,
            // The files that were created are the ones removed first.
            Step::RmEach if self.steps.contains(&Step::Create) => 0,
            Step::Create | Step::RmEach | Step::Rm | Step::RmTrimbench => self.cell_bytes(),
            Step::Fstrim | Step::FstrimTrimbench if cell.mounting.discards() => 0,
            Step::Fstrim | Step::FstrimTrimbench => self.cell_bytes(),
            Step::Run | Step::RunRmTrimbench | Step::RunFstrim => {
                self.cell_bytes() + self.foreground_bytes()
            }
        }
    }

    /// Time limits of runs in seconds: settling, baseline, recovery, and waiting for discards.
    pub(crate) fn run_times(&self, cell: &Cell) -> [u32; 4] {
        match (self.quick, cell.mounting.is_late()) {
            (true, _) => [4, 3, 2, 10],
            (false, false) => [10, 5, 5, 60],
            // btrfs waits 120 s until the space is used once more.
            (false, true) => [10, 5, 5, 150],
        }
    }
}

/// Returns what makes discards slow enough: files of `telling` bytes, or a simulated drive that is
/// `times` as slow as it is now, as far as `drive` can have them.
fn slow_enough(drive: &Drive, telling: f64, times: f64) -> String {
    let most_bytes = drive.size_bytes();
    let cell_bytes = (telling as u64).min(1 << 60).next_multiple_of(GIB);
    let size = (needed_bytes(cell_bytes, most_bytes) <= most_bytes)
        .then(|| format!("--set size={}G", cell_bytes / GIB));
    let slower = (drive.slower() * times).ceil();
    let slower = (matches!(drive, Drive::Lab { .. }) && slower <= SLOWEST)
        .then(|| format!("--set lab-slower={slower}"));
    match (size, slower) {
        (Some(size), Some(slower)) => format!("give {size}, or {slower}"),
        (Some(one), None) | (None, Some(one)) => format!("give {one}"),
        (None, None) if times.is_infinite() => "its discards take no time".to_owned(),
        (None, None) => format!(
            "it takes files of {}, and so a larger drive",
            record::units::bytes(cell_bytes)
        ),
    }
}

/// Bytes of a run's reader beside files of so many bytes.
fn read_bytes(cell_bytes: u64) -> u64 {
    (cell_bytes / 4).clamp(16 * MIB, GIB)
}

/// Bytes of a device of `device_bytes` that files of so many bytes need, with what is beside them.
fn needed_bytes(cell_bytes: u64, device_bytes: u64) -> u64 {
    cell_bytes + read_bytes(cell_bytes) + beside(device_bytes)
}

/// Bytes beside the files: a run leaves a tenth free, or 1 GiB, and a file system takes some itself.
fn beside(device_bytes: u64) -> u64 {
    GIB.max(device_bytes / 10) + (256 * MIB).max(device_bytes / 16)
}

/// The chosen steps in their order, with mkfs, which nothing goes without.
fn steps(chosen: &[Step]) -> Vec<Step> {
    let wanted = |step: &Step| chosen.is_empty() || *step == Step::Mkfs || chosen.contains(step);
    Step::ALL.into_iter().filter(wanted).collect()
}

#[cfg(test)]
mod tests;
