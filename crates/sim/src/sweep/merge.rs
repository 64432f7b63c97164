//! Going on with a sweep, and putting shards together.

use super::{CellName, Grid, SWEEP_SCHEMA, Shard};

/// The finished part of a sweep's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumed {
    /// Whole lines.
    pub lines: usize,
    /// Their bytes; what follows is a line that was cut off.
    pub bytes: usize,
}

/// Why lines don't belong together. Lines count from 1, cells from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// A line is none of a sweep.
    #[error("line {0}: not a line of a sweep")]
    NotALine(usize),
    /// A line is of another grid or another version; the one that it is of, and the expected one.
    #[error("line {0}: it is of another grid ({1}, not {2})")]
    OtherGrid(usize, String, String),
    /// A line has a cell of another shard.
    #[error("line {0}: cell {1} is not the next one of this shard: give another file")]
    OtherCell(usize, usize),
    /// No file has a line.
    #[error("no file has a line: run the shards first")]
    Nothing,
    /// A cell is there twice.
    #[error("cell {0} is there twice: a shard was given twice")]
    Twice(usize),
    /// No shard has a cell, of so many.
    #[error("cell {0} of {1} is missing: run its shard to the end")]
    Missing(usize, usize),
}

/// Finds the finished part of a shard's file.
///
/// # Errors
/// If it isn't a file of this shard of this grid.
pub fn resume(text: &str, grid: &Grid, shard: Shard) -> Result<Resumed, MergeError> {
    let cells = shard.cells(grid.len());
    let mut resumed = Resumed { lines: 0, bytes: 0 };
    for (at, line) in text.split_inclusive('\n').enumerate() {
        if !line.ends_with('\n') {
            break;
        }
        let name = name(line, at + 1)?;
        same_grid(&name, grid.fingerprint(), at + 1)?;
        if cells.get(at) != Some(&name.cell) {
            return Err(MergeError::OtherCell(at + 1, name.cell));
        }
        resumed.lines += 1;
        resumed.bytes += line.len();
    }
    Ok(resumed)
}

fn name(line: &str, at: usize) -> Result<CellName, MergeError> {
    let name: Option<CellName> = serde_json::from_str(line).ok();
    name.filter(|name| name.schema == SWEEP_SCHEMA)
        .ok_or(MergeError::NotALine(at))
}

fn same_grid(name: &CellName, expected: &str, line: usize) -> Result<(), MergeError> {
    match name.grid == expected {
        true => Ok(()),
        false => {
            let (found, expected) = (name.grid.clone(), expected.to_owned());
            Err(MergeError::OtherGrid(line, found, expected))
        }
    }
}

/// Puts the lines of shards in order.
#[derive(Debug, Default)]
pub struct Merger {
    grid: Option<String>,
    lines: Vec<Option<String>>,
}

impl Merger {
    /// Nothing yet.
    pub fn new() -> Merger {
        Merger::default()
    }

    /// Adds a shard's file.
    ///
    /// # Errors
    /// If it is none, or of another grid, or has a cell that is there already.
    pub fn add(&mut self, text: &str) -> Result<(), MergeError> {
        for (at, line) in text.split_inclusive('\n').enumerate() {
            let name = name(line, at + 1)?;
            if !line.ends_with('\n') {
                return Err(MergeError::NotALine(at + 1));
            }
            let grid = self.grid.get_or_insert_with(|| name.grid.clone()).clone();
            same_grid(&name, &grid, at + 1)?;
            if self.lines.is_empty() {
                self.lines.resize(name.of.min(super::MOST_CELLS), None);
            }
            let other = MergeError::OtherCell(at + 1, name.cell);
            let slot = self.lines.get_mut(name.cell).ok_or(other)?;
            if slot.is_some() {
                return Err(MergeError::Twice(name.cell));
            }
            *slot = Some(line.to_owned());
        }
        Ok(())
    }

    /// All lines, in order.
    ///
    /// # Errors
    /// If one is missing, or all are: no grid is empty.
    pub fn finish(self) -> Result<String, MergeError> {
        let of = self.lines.len();
        if of == 0 {
            return Err(MergeError::Nothing);
        }
        let mut text = String::new();
        for (cell, line) in self.lines.into_iter().enumerate() {
            text += &line.ok_or(MergeError::Missing(cell, of))?;
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Drives;

    const GRID: &str = "profile = [\"ideal\", \"ocz-vertex-2\"]\nworkload = \"drop-file\"\n\
        policy = [\"coalesce\", \"queued\"]\nranges = [1, 64]\nsize = \"64M\"\nreaders = 0\n\
        baseline = \"10ms\"\nrecovery = \"10ms\"\n";

    fn grid() -> Grid {
        let card = |name: &str| ssd::profiles::by_name(name).cloned();
        Grid::parse(GRID, |name| Ok(Drives::single(card(name).unwrap()))).unwrap()
    }

    fn lines(grid: &Grid, shard: Shard) -> String {
        let cells = shard.cells(grid.len());
        cells.into_iter().map(|cell| grid.line(cell)).collect()
    }

    #[test]
    fn a_parameter_counts_only_where_it_does_something() {
        // Two profiles: coalesce once, queued with 1 and with 64 ranges.
        assert_eq!(grid().len(), 6);
    }

    #[test]
    fn shards_merge_to_the_same_bytes_as_one_run() {
        let grid = grid();
        let whole = lines(&grid, Shard::WHOLE);
        let parts: Vec<String> = (1..=4)
            .map(|index| lines(&grid, Shard::new(index, 4).unwrap()))
            .collect();
        let mut merger = Merger::new();
        for part in parts.iter().rev() {
            merger.add(part).unwrap();
        }
        let twice = merger.add(&parts[1]).unwrap_err();
        assert!(matches!(twice, MergeError::Twice(_)), "{twice}");
        assert_eq!(merger.finish().unwrap(), whole);
        let mut merger = Merger::new();
        merger.add(&parts[0]).unwrap();
        assert_eq!(merger.finish(), Err(MergeError::Missing(1, 6)));
        let mut merger = Merger::new();
        merger.add("").unwrap();
        assert_eq!(merger.finish(), Err(MergeError::Nothing));
    }

    #[test]
    fn a_file_that_was_cut_off_goes_on_behind_its_last_whole_line() {
        let grid = grid();
        let shard = Shard::new(2, 2).unwrap();
        let text = lines(&grid, shard);
        let first = text.find('\n').unwrap() + 1;
        for cut in [first, first + 10, text.len() - 1] {
            let resumed = resume(&text[..cut], &grid, shard).unwrap();
            let whole = text[..cut].matches('\n').count();
            assert_eq!(resumed.lines, whole);
            assert!(text[..resumed.bytes].ends_with('\n'));
        }
        let other = resume(&text, &grid, Shard::WHOLE).unwrap_err();
        assert!(matches!(other, MergeError::OtherCell(..)), "{other}");
        assert!(resume("{}\n", &grid, shard).is_err());
    }
}
