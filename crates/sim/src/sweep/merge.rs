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

/// Why lines don't belong together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// It isn't a line of a sweep.
    #[error("line {line}: not a line of a sweep")]
    NotALine {
        /// From 1.
        line: usize,
    },
    /// It is of another grid or another version.
    #[error("line {line}: it is of another grid ({found}, not {expected})")]
    OtherGrid {
        /// From 1.
        line: usize,
        /// The grid it is of.
        found: String,
        /// The one expected.
        expected: String,
    },
    /// A cell of another shard.
    #[error("line {line}: cell {cell} is not the next one of this shard: give another file")]
    OtherCell {
        /// From 1.
        line: usize,
        /// The cell.
        cell: usize,
    },
    /// No file has a line.
    #[error("no file has a line: run the shards first")]
    Nothing,
    /// The same cell twice.
    #[error("cell {cell} is there twice: a shard was given twice")]
    Twice {
        /// The cell.
        cell: usize,
    },
    /// A cell that no shard has.
    #[error("cell {cell} of {of} is missing: run its shard to the end")]
    Missing {
        /// The cell.
        cell: usize,
        /// How many there are.
        of: usize,
    },
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
            return Err(MergeError::OtherCell {
                line: at + 1,
                cell: name.cell,
            });
        }
        resumed.lines += 1;
        resumed.bytes += line.len();
    }
    Ok(resumed)
}

fn name(line: &str, at: usize) -> Result<CellName, MergeError> {
    let name: Option<CellName> = serde_json::from_str(line).ok();
    name.filter(|name| name.schema == SWEEP_SCHEMA)
        .ok_or(MergeError::NotALine { line: at })
}

fn same_grid(name: &CellName, expected: &str, line: usize) -> Result<(), MergeError> {
    match name.grid == expected {
        true => Ok(()),
        false => Err(MergeError::OtherGrid {
            line,
            found: name.grid.clone(),
            expected: expected.to_owned(),
        }),
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
                return Err(MergeError::NotALine { line: at + 1 });
            }
            let grid = self.grid.get_or_insert_with(|| name.grid.clone()).clone();
            same_grid(&name, &grid, at + 1)?;
            if self.lines.is_empty() {
                self.lines.resize(name.of.min(super::MOST_CELLS), None);
            }
            let of = self.lines.len();
            let slot = self.lines.get_mut(name.cell).ok_or(MergeError::OtherCell {
                line: at + 1,
                cell: name.cell.max(of),
            })?;
            if slot.is_some() {
                return Err(MergeError::Twice { cell: name.cell });
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
            text += &line.ok_or(MergeError::Missing { cell, of })?;
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
        Grid::parse(GRID, |name| super::super::shipped(name).map(Drives::single)).unwrap()
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
        assert!(matches!(twice, MergeError::Twice { .. }), "{twice}");
        assert_eq!(merger.finish().unwrap(), whole);
        let mut merger = Merger::new();
        merger.add(&parts[0]).unwrap();
        assert_eq!(merger.finish(), Err(MergeError::Missing { cell: 1, of: 6 }));
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
        assert!(matches!(other, MergeError::OtherCell { .. }), "{other}");
        assert!(resume("{}\n", &grid, shard).is_err());
    }
}
