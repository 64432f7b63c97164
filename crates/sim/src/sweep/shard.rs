//! A part of a sweep.

use std::fmt;
use std::str::FromStr;

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
