//! Many runs: every combination of a grid's values, one line of JSON for each.
//!
//! A grid is TOML: `profile`, `policy`, `workload`, any [setting](crate::SETTINGS) and any
//! parameter of a policy, each with a value or a list of values. The cells are all combinations, in
//! the order of the text; a parameter counts only for policies that have it. A sweep's output
//! depends on nothing but the grid, so the lines of several shards, put in order, are those of one
//! run.

use serde::{Deserialize, Serialize};
use ssd::Card;
use units::typed::{Mistake, Place, hint};

use crate::engine::{SimError, run};
use crate::outcome::Figures;
use crate::policy::{PARAMETERS, PolicyKind};
use crate::setup::{Document, Drives, Named, SETTINGS, Setup};
use crate::workload::WorkloadKind;

mod merge;
mod shard;

pub use merge::{MergeError, Merger, Resumed, resume};
pub use shard::Shard;

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
    values: Vec<(Place, String)>,
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
    let known = SETTINGS.iter().map(|key| key.name);
    let own = PARAMETERS.iter().map(|key| key.name);
    ["profile", "policy", "workload"]
        .into_iter()
        .chain(known)
        .chain(own)
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
        document.only_sections(&[])?;
        let mut axes = Vec::new();
        for cells in document.top()? {
            if !settings().any(|name| name == cells.key) {
                return Err(cells.unknown(settings()));
            }
            if cells.values.is_empty() {
                return Err(cells.bad("give at least one value".to_owned()));
            }
            axes.push(Axis {
                key: cells.key,
                values: cells.values,
            });
        }
        let at = |key: &str| axes.iter().position(|axis| axis.key == key);
        let Some(profiles) = at("profile") else {
            return Err(missing("profile", "profile = \"crucial-t500-2tb\""));
        };
        let mut found = Vec::new();
        for (at, name) in &axes[profiles].values {
            found.push(drives(name).map_err(|why| value(*at, "profile", why))?);
        }
        let mut grid = Grid {
            fingerprint: fingerprint(&axes),
            cells: Vec::new(),
            drives: found,
            axes,
        };
        grid.check_values()?;
        grid.fill()?;
        Ok(grid)
    }

    /// Each value once by itself.
    fn check_values(&self) -> Result<(), Mistake> {
        let card: Option<&Drives> = self.drives.first();
        let Some(drives) = card else { return Ok(()) };
        for axis in &self.axes {
            for (at, text) in &axis.values {
                let bad = |why| value(*at, &axis.key, why);
                match axis.key.as_str() {
                    "profile" => {}
                    "policy" => drop(crate::setup::named(text).map_err(bad)?),
                    "workload" => drop(workload(text).map_err(bad)?),
                    key => {
                        let kind = PolicyKind::ALL
                            .into_iter()
                            .find(|kind| kind.parameters().contains(&key));
                        let kind = kind.unwrap_or(PolicyKind::None);
                        let mut setup = Setup::new(drives.clone(), kind, WorkloadKind::DropFile);
                        setup.set(key, text).map_err(bad)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// All combinations; of those that differ only in a parameter that their policy hasn't, the
    /// first.
    fn fill(&mut self) -> Result<(), Mistake> {
        let count = self.axes.iter().map(|axis| axis.values.len());
        let all = count.fold(1_usize, |all, n| all.saturating_mul(n));
        if all > MOST_CELLS {
            return Err(Mistake::Value {
                at: Place::of("", 0),
                key: "profile".to_owned(),
                why: format!("the grid has {all} cells: at most {MOST_CELLS} are taken"),
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
        let (_, text) = self.axes[at].values.get(cell[at] as usize)?;
        Some(text)
    }

    fn policy(&self, cell: &[u32]) -> PolicyKind {
        let name = self.text(cell, "policy").unwrap_or("ext4-online");
        PolicyKind::named(name).unwrap_or(PolicyKind::Ext4Online)
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
        let named = workload(self.text(cell, "workload").unwrap_or("drop-file"))?;
        let kind = self.policy(cell);
        let mut setup = Setup::new(drives.clone(), kind, named);
        setup.set_policy(&Named::from(kind));
        for (axis, &value) in self.axes.iter().zip(cell) {
            let key = axis.key.as_str();
            let own = is_setting(key) && !["profile", "policy", "workload"].contains(&key);
            if own || kind.parameters().contains(&key) {
                setup.set(key, &axis.values[value as usize].1)?;
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
            Ok(setup) => match setup.describe() {
                serde_json::Value::Object(mut all) => match all.remove("simulated") {
                    Some(serde_json::Value::Object(settings)) => settings,
                    _ => serde_json::Map::new(),
                },
                _ => serde_json::Map::new(),
            },
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

fn is_setting(key: &str) -> bool {
    ["profile", "policy", "workload"].contains(&key) || SETTINGS.iter().any(|own| own.name == key)
}

fn value(at: Place, key: &str, why: String) -> Mistake {
    Mistake::Value {
        at,
        key: key.to_owned(),
        why,
    }
}

fn missing(key: &str, example: &str) -> Mistake {
    value(
        Place::of("", 0),
        key,
        format!("a grid needs it: add, for example, {example}"),
    )
}

/// The workload of this name; the error names the one that may have been meant.
pub fn workload(name: &str) -> Result<WorkloadKind, String> {
    WorkloadKind::named(name).ok_or_else(|| {
        let near = crate::keys::nearest(name, WorkloadKind::ALL.iter().map(|kind| kind.name()));
        format!("there is no workload '{name}'{}", hint(&near))
    })
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
        axis.values.iter().for_each(|(_, value)| add(value));
        add("");
    }
    format!("{hash:016x}")
}

/// The cards that are shipped, by their whole names.
pub fn shipped(name: &str) -> Result<Card, String> {
    ssd::profiles::by_name(name).cloned().ok_or_else(|| {
        let names = ssd::profiles::all().iter().map(Card::name);
        format!(
            "there is no profile '{name}'{}",
            hint(&crate::keys::nearest(name, names))
        )
    })
}
