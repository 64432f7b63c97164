//! Cells: a file system, how it is made, how it is mounted.

use std::collections::BTreeSet;
use std::fmt;

use record::units::typed;
use storage::making::{Kind, Mounting};

use crate::Error;

/// A file system, a way to make it and a way to mount it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The file system.
    pub kind: Kind,
    /// Whether mkfs discards the device first.
    pub mkfs_discards: bool,
    /// How it is mounted.
    pub mounting: &'static Mounting,
}

/// The cells that were asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The cells, in the order of [`Cell::all`].
    pub cells: Vec<Cell>,
    /// Sentences about file systems that are left out.
    pub notes: Vec<String>,
}

/// Names of the two ways to make a file system.
const MKFS: [&str; 2] = ["discard", "nodiscard"];

impl fmt::Display for Cell {
    /// `FILE SYSTEM/MKFS/MOUNT`, e.g. `ext4/nodiscard/discard`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}/{}",
            self.kind.name(),
            self.mkfs(),
            self.mounting.name
        )
    }
}

impl Cell {
    /// Every cell that there can be, the usual and the others.
    pub fn all() -> Vec<Cell> {
        let mut all = Vec::new();
        for kind in Kind::ALL {
            for mkfs_discards in [true, false] {
                if kind.mkfs(mkfs_discards).is_none() {
                    continue;
                }
                all.extend(kind.mountings().iter().map(|mounting| Cell {
                    kind,
                    mkfs_discards,
                    mounting,
                }));
            }
        }
        all
    }

    /// The cell of this name.
    pub fn named(name: &str) -> Option<Cell> {
        Cell::all()
            .into_iter()
            .find(|cell| cell.to_string() == name)
    }

    /// How it is made, as its name has it.
    pub fn mkfs(&self) -> &'static str {
        MKFS[usize::from(!self.mkfs_discards)]
    }

    /// Whether a short suite takes it: each way of making and of mounting once.
    fn is_quick(&self) -> bool {
        self.mkfs_discards == self.mounting.discards() && !self.mounting.is_late()
    }
}

/// The cells that a list of patterns names; without patterns all usual ones, or a few if the suite
/// is to be `quick`. `available` tells why a file system can't be made here.
///
/// A pattern is a cell's name, whose parts may be `*`; parts at the end may be left out.
///
/// # Errors
/// For a name that no cell has, with the nearest one, and for a file system that is named and
/// can't be made here.
pub fn select(
    patterns: &[String],
    quick: bool,
    available: impl Fn(Kind) -> Result<(), String>,
) -> Result<Selection, Error> {
    let mut cells = Cell::all();
    let named = patterns.iter().map(|pattern| parts(pattern, &cells));
    let named = named.collect::<Result<Vec<_>, _>>()?;
    cells.retain(|cell| match named.is_empty() {
        true => cell.mounting.usual && (!quick || cell.is_quick()),
        false => named.iter().any(|parts| matches(cell, parts)),
    });
    let mut notes = Vec::new();
    for kind in Kind::ALL {
        if cells.iter().any(|cell| cell.kind == kind)
            && let Err(why) = available(kind)
        {
            cells.retain(|cell| cell.kind != kind);
            notes.push(format!("{} is left out: {why}", kind.name()));
        }
    }
    if cells.is_empty() {
        let why = notes.join("; ");
        return Err(Error::Usage(format!("no cell is left: {why}")));
    }
    Ok(Selection { cells, notes })
}

/// The parts of a pattern that some cell has.
fn parts<'a>(pattern: &'a str, all: &[Cell]) -> Result<[Option<&'a str>; 3], Error> {
    let refused = |why: String| Err(Error::Usage(format!("--cells {pattern}: {why}")));
    let words: Vec<&str> = pattern.split('/').collect();
    if words.len() > 3 {
        return refused("a cell has three parts, as in ext4/nodiscard/discard".to_owned());
    }
    let mut parts = [None; 3];
    for (i, &word) in words.iter().enumerate().filter(|(_, word)| **word != "*") {
        let (what, names) = known(i, parts[0]);
        if !names.contains(&word) {
            let hint = typed::hint(&typed::nearest(word, names.iter().copied()));
            return refused(format!(
                "no {what} is called '{word}'{} There are {}.",
                typed::sentence_end(&hint),
                names.join(", ")
            ));
        }
        parts[i] = Some(word);
    }
    match all.iter().any(|cell| matches(cell, &parts)) {
        true => Ok(parts),
        false => {
            refused("there is no such cell; the mkfs of exfat, for one, can't discard".to_owned())
        }
    }
}

/// The kind of the i-th part of a name, and all such parts.
fn known(i: usize, kind: Option<&str>) -> (&'static str, Vec<&'static str>) {
    let mountings = |of: Kind| of.mountings().iter().map(|way| way.name);
    match i {
        0 => ("file system", Kind::ALL.map(Kind::name).to_vec()),
        1 => ("way of mkfs", MKFS.to_vec()),
        _ => {
            let of = |one: &Kind| kind.is_none_or(|name| name == one.name());
            let kinds = Kind::ALL.into_iter().filter(of);
            let names: BTreeSet<&str> = kinds.flat_map(mountings).collect();
            ("way of mounting", names.into_iter().collect())
        }
    }
}

fn matches(cell: &Cell, parts: &[Option<&str>; 3]) -> bool {
    let own = [cell.kind.name(), cell.mkfs(), cell.mounting.name];
    let same = |(part, own): (&Option<&str>, &str)| part.is_none_or(|part| part == own);
    // What few people use is taken only by its name.
    let usual = cell.mounting.usual || parts[2].is_some();
    usual && parts.iter().zip(own).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(patterns: &[&str]) -> Result<Vec<String>, String> {
        let patterns: Vec<String> = patterns.iter().map(|&p| p.to_owned()).collect();
        let selection = select(&patterns, false, |_| Ok(())).map_err(|error| error.to_string())?;
        Ok(selection.cells.iter().map(Cell::to_string).collect())
    }

    #[test]
    fn every_cell_is_found_by_its_name() {
        let all = Cell::all();
        for cell in &all {
            assert_eq!(Cell::named(&cell.to_string()), Some(*cell));
            assert_eq!(chosen(&[&cell.to_string()]).unwrap(), [cell.to_string()]);
        }
        assert_eq!(all.len(), 6 + 4 + 6 + 4 + 4 + 2);
    }

    #[test]
    fn patterns_leave_parts_open() {
        assert_eq!(chosen(&["ext4"]).unwrap().len(), 4);
        assert_eq!(chosen(&["ext4/*/writeback"]).unwrap().len(), 2);
        assert_eq!(
            chosen(&["btrfs/nodiscard", "xfs/nodiscard/discard"]).unwrap(),
            [
                "xfs/nodiscard/discard",
                "btrfs/nodiscard/sync",
                "btrfs/nodiscard/async",
                "btrfs/nodiscard/off"
            ]
        );
        assert!(
            !chosen(&[])
                .unwrap()
                .iter()
                .any(|name| name.contains("writeback"))
        );
    }

    #[test]
    fn a_wrong_name_gets_the_nearest_one() {
        let refused = |pattern: &str| chosen(&[pattern]).unwrap_err();
        assert!(
            refused("ext5").contains("did you mean 'ext4'?"),
            "{}",
            refused("ext5")
        );
        assert!(refused("ext4/nodiscrd").contains("did you mean 'nodiscard'?"));
        assert!(refused("btrfs/*/asink").contains("did you mean 'async'?"));
        assert!(refused("xfs/*/async").contains("way of mounting"));
        assert!(refused("btrfs/*/discard").contains("'discard'. There are"));
        assert!(refused("exfat/discard").contains("no such cell"));
        assert!(refused("a/b/c/d").contains("three parts"));
        assert!(refused("").contains("file system"));
    }

    #[test]
    fn what_cannot_be_made_is_left_out() {
        let only_ext4 = |kind: Kind| match kind {
            Kind::Ext4 => Ok(()),
            _ => Err("it is missing".to_owned()),
        };
        let selection = select(&[], true, only_ext4).unwrap();
        assert_eq!(selection.cells.len(), 2, "{selection:?}");
        assert_eq!(selection.notes.len(), Kind::ALL.len() - 1);
        let of = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|&p| p.to_owned()).collect();
            select(&patterns, false, only_ext4)
        };
        let named = of(&["ext4/discard/discard", "xfs"]).unwrap();
        assert_eq!(named.cells.len(), 1);
        assert_eq!(named.notes, ["xfs is left out: it is missing"]);
        let nothing = of(&["xfs"]).unwrap_err();
        let why = "no cell is left: xfs is left out: it is missing";
        assert_eq!(nothing.to_string(), why);
        assert!(nothing.is_usage());
    }
}
