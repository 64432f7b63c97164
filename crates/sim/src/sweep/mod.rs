//! Many runs: every combination of a grid's values, one line of JSON for each.
//!
//! A grid is TOML: `profile`, `policy`, `workload`, any [setting](crate::Setup::KEYS) and any
//! parameter of a policy, each with a value or a list of values. The cells are all combinations, in
//! the order of the text; a parameter counts only for policies that have it. A sweep's output
//! depends on nothing but the grid, so the lines of several shards, put in order, are those of one
//! run.

mod merge;

use std::fmt;
use std::str::FromStr;

use record::units::document::Document;
use record::units::settings::SetError;
use record::units::typed::{Mistake, Place, nearest};
use serde::{Deserialize, Serialize};

pub use merge::{MergeError, Merger, Resumed, resume};

use crate::engine::{SimError, run};
use crate::outcome::Figures;
use crate::policy::{Parameters, PolicyKind};
use crate::setup::{Drives, Setup};
use crate::workload::WorkloadKind;

/// The schema named in every line.
pub const SWEEP_SCHEMA: &str = "trimbench.sweep/1";

/// Most cells of a grid.
const MOST_CELLS: usize = 10_000_000;

/// A grid of runs.
#[derive(Debug, Clone)]
pub struct Grid {
    axes: Vec<Axis>,
    cells: Vec<Vec<u32>>,
    fingerprint: String,
    drives: Vec<Drives>,
}

#[derive(Debug, Clone)]
struct Axis {
    key: String,
    values: Vec<String>,
}

/// A line of a sweep's output.
#[derive(Debug, Clone, Serialize)]
struct CellLine<'c> {
    schema: &'static str,
    grid: &'c str,
    cell: usize,
    of: usize,
    settings: serde_json::Map<String, serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    figures: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The settings that a line may have, in order; those of policies come last, and each policy has
/// only some of them.
pub fn settings() -> impl Iterator<Item = &'static str> {
    let keys = Setup::KEYS.iter().chain(Parameters::KEYS);
    NAMES.into_iter().chain(keys.map(|key| key.name))
}

/// The part of a line that names its cell.
#[derive(Debug, Deserialize)]
struct CellName {
    schema: String,
    grid: String,
    cell: usize,
    of: usize,
}

impl Grid {
    /// Reads a grid, and makes every cell's setup once, so that a mistake is found before the first
    /// run. `drives` finds a profile or a stack by its name.
    ///
    /// # Errors
    /// With line and column: if it isn't TOML, or has a wrong key or value.
    pub fn parse(
        text: &str,
        drives: impl Fn(&str) -> Result<Drives, String>,
    ) -> Result<Grid, Mistake> {
        let document = Document::parse(text)?;
        let mut grid = Grid {
            axes: Vec::new(),
            cells: Vec::new(),
            fingerprint: String::new(),
            drives: Vec::new(),
        };
        for item in document.items() {
            let mut values = Vec::new();
            for value in item.list() {
                values.push(value.text()?);
                match value.key {
                    "profile" => grid.drives.push(value.read(&drives)?),
                    "policy" => drop(value.read(PolicyKind::from_str)?),
                    "workload" => drop(value.read(WorkloadKind::from_str)?),
                    _ => value.set(check)?,
                }
            }
            if values.is_empty() {
                return Err(item.mistake("give at least one value"));
            }
            let key = item.key.to_owned();
            grid.axes.push(Axis { key, values });
        }
        if grid.drives.is_empty() {
            return Err(Mistake::Missing {
                key: "profile",
                about: "the drives, for example profile = \"crucial-t500-2tb\"",
            });
        }
        grid.fingerprint = fingerprint(&grid.axes);
        grid.fill()?;
        Ok(grid)
    }

    /// All combinations; of those that differ only in a parameter that their policy hasn't, the
    /// first.
    fn fill(&mut self) -> Result<(), Mistake> {
        let count = self.axes.iter().map(|axis| axis.values.len());
        let all = count.fold(1_usize, |all, n| all.saturating_mul(n));
        if all > MOST_CELLS {
            return Err(Mistake::Syntax {
                at: Place { line: 1, column: 1 },
                why: format!("the grid has {all} cells: give at most {MOST_CELLS}"),
            });
        }
        for index in 0..all {
            let mut rest = index;
            let mut cell = vec![0; self.axes.len()];
            for (at, axis) in self.axes.iter().enumerate().rev() {
                cell[at] = (rest % axis.values.len()) as u32;
                rest /= axis.values.len();
            }
            let kind = self.policy(&cell);
            let is_first = self.axes.iter().zip(&cell).all(|(axis, &value)| {
                value == 0
                    || is_setting(&axis.key)
                    || kind.parameters().contains(&axis.key.as_str())
            });
            if is_first {
                self.cells.push(cell);
            }
        }
        Ok(())
    }

    fn text(&self, cell: &[u32], key: &str) -> Option<&str> {
        let at = self.axes.iter().position(|axis| axis.key == key)?;
        Some(self.axes[at].values.get(cell[at] as usize)?)
    }

    fn policy(&self, cell: &[u32]) -> PolicyKind {
        let name = self.text(cell, "policy").unwrap_or("ext4-online");
        name.parse().unwrap_or(PolicyKind::Ext4Online)
    }

    /// How many cells there are.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Tells this grid from others: a hash of its keys and values.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The setup of a cell.
    fn setup(&self, cell: &[u32]) -> Result<Setup, String> {
        let profile = self.axes.iter().position(|axis| axis.key == "profile");
        let drives = profile.and_then(|at| self.drives.get(cell[at] as usize));
        let drives = drives.ok_or("the grid has no profile")?;
        let workload = self.text(cell, "workload").unwrap_or("drop-file").parse()?;
        let kind = self.policy(cell);
        let mut setup = Setup::new(drives.clone(), kind, workload);
        for (axis, &value) in self.axes.iter().zip(cell) {
            let key = axis.key.as_str();
            let own = is_setting(key) && !NAMES.contains(&key);
            if own || kind.parameters().contains(&key) {
                let set = setup.set(key, &axis.values[value as usize]);
                set.map_err(|why| format!("{key}: {why}"))?;
            }
        }
        Ok(setup)
    }

    /// Runs a cell; returns its line, with its end. A run that could not be made is a line as well.
    pub fn line(&self, index: usize) -> String {
        let empty = Vec::new();
        let cell = self.cells.get(index).unwrap_or(&empty);
        let setup = self.setup(cell);
        let settings = match &setup {
            Ok(setup) => setup.describe(),
            Err(_) => serde_json::Map::new(),
        };
        let result = setup.and_then(|setup| run(&setup).map_err(|e: SimError| e.to_string()));
        let (figures, error) = match result {
            Ok(outcome) => (Some(outcome.figures), None),
            Err(why) => (None, Some(why)),
        };
        let line = CellLine {
            schema: SWEEP_SCHEMA,
            grid: &self.fingerprint,
            cell: index,
            of: self.len(),
            settings,
            figures,
            error,
        };
        // It holds only texts and numbers, so it can't fail.
        serde_json::to_string(&line).unwrap_or_default() + "\n"
    }
}

/// The keys of a grid that aren't settings.
const NAMES: [&str; 3] = ["profile", "policy", "workload"];

fn is_setting(key: &str) -> bool {
    NAMES.contains(&key) || Setup::KEYS.iter().any(|own| own.name == key)
}

/// Checks a value of a setting, or of a parameter of whichever policy has it.
fn check(key: &str, text: &str) -> Result<(), SetError> {
    let drives = Drives {
        name: String::new(),
        cards: Vec::new(),
        chunk: 0,
    };
    let mut kinds = PolicyKind::ALL.iter();
    let kind = kinds.find(|kind| kind.parameters().contains(&key));
    let kind = *kind.unwrap_or(&PolicyKind::None);
    let set = Setup::new(drives, kind, WorkloadKind::DropFile).set(key, text);
    set.map_err(|error| error.or(nearest(key, settings())))
}

/// FNV-1a (64 bits) over keys, values and this program's version, in hexadecimal digits.
fn fingerprint(axes: &[Axis]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(env!("CARGO_PKG_VERSION"));
    for axis in axes {
        add(&axis.key);
        axis.values.iter().for_each(|value| add(value));
        add("");
    }
    format!("{hash:016x}")
}

// A part of a sweep.

/// The shard I of N: every N-th cell. I counts from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Shard = Shard { index: 1, count: 1 };

    /// The shard `index` of `count`; `None` unless 1 ≤ index ≤ count.
    pub fn new(index: usize, count: usize) -> Option<Shard> {
        (1..=count)
            .contains(&index)
            .then_some(Shard { index, count })
    }

    /// Its cells, of so many.
    pub fn cells(self, all: usize) -> Vec<usize> {
        (self.index - 1..all).step_by(self.count).collect()
    }

    /// Whether it is all of it.
    pub fn is_whole(self) -> bool {
        self.count == 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let both = text
            .split_once('/')
            .and_then(|(index, count)| Shard::new(index.parse().ok()?, count.parse().ok()?));
        both.ok_or_else(|| format!("'{text}' is no shard: give, for example, 2/8"))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_in_one_shard() {
        for count in 1..7 {
            let mut all: Vec<usize> = (1..=count)
                .flat_map(|index| Shard::new(index, count).unwrap().cells(20))
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..20).collect::<Vec<_>>());
        }
        assert_eq!("2/8".parse(), Ok(Shard::new(2, 8).unwrap()));
        for bad in ["", "0/8", "9/8", "2", "a/b"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
