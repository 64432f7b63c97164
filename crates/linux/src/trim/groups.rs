//! How much is free in each block group of an ext4: `/proc/fs/ext4/X/mb_groups`.
//!
//! The kernel writes it as it is read, group by group, so that reading it along
//! the way costs what trimming costs anyhow: looking at each group's bitmap.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use crate::SysRoot;

/// The content of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// The group.
    pub group: u64,
    /// Free blocks.
    pub blocks: u64,
    /// In so many extents.
    pub extents: u64,
}

/// Reads group after group.
#[derive(Debug)]
pub struct Groups {
    lines: BufReader<File>,
    next: Option<Ahead>,
}

impl Groups {
    /// Of the ext4 on a device, by its kernel name. `None` where the kernel doesn't
    /// tell.
    pub fn open(sys: &SysRoot, device: &str) -> Option<Groups> {
        let device = device.replace('/', "!");
        let file = File::open(sys.path(format!("/proc/fs/ext4/{device}/mb_groups"))).ok()?;
        Some(Groups {
            lines: BufReader::with_capacity(4096, file),
            next: None,
        })
    }

    /// Of a group; those before it can't be asked for any more.
    pub fn ahead(&mut self, group: u64) -> Option<Ahead> {
        loop {
            match self.next {
                Some(ahead) if ahead.group == group => return Some(ahead),
                Some(ahead) if ahead.group > group => return None,
                _ => self.read()?,
            }
        }
    }

    /// Reads on to a group, for at most so long or a line: the kernel may read each group's bitmap
    /// from the disk. Whether it is there, or no more come.
    pub fn skip_to(&mut self, group: u64, at_most: Duration) -> bool {
        let began = Instant::now();
        while self.next.is_none_or(|ahead| ahead.group < group) {
            if self.read().is_none() {
                return true;
            }
            if began.elapsed() >= at_most {
                return false;
            }
        }
        true
    }

    /// Reads a line; `None` behind the last.
    fn read(&mut self) -> Option<()> {
        let mut line = String::new();
        if self.lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        // The title and groups that can't be read aren't groups.
        if let Some(ahead) = parse(&line) {
            self.next = Some(ahead);
        }
        Some(())
    }
}

/// `#12   : 1234  5     100   [ 3     4 … ]`
fn parse(line: &str) -> Option<Ahead> {
    let (group, rest) = line.strip_prefix('#')?.split_once(':')?;
    let mut fields = rest.split_whitespace();
    Some(Ahead {
        group: group.trim().parse().ok()?,
        blocks: fields.next()?.parse().ok()?,
        extents: fields.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_in_turn() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("proc/fs/ext4/sda1");
        std::fs::create_dir_all(&directory).unwrap();
        let text = "#group: free  frags first [ 2^0   2^1   ]\n\
                    #0    : 59    5     1788  [ 3     4     ]\n\
                    #1    : I/O error\n\
                    #2    : 32768 1     0     [ 0     0     ]\n";
        std::fs::write(directory.join("mb_groups"), text).unwrap();
        let sys = SysRoot::at(root.path());
        let mut groups = Groups::open(&sys, "sda1").unwrap();
        let first = groups.ahead(0).unwrap();
        assert_eq!((first.blocks, first.extents), (59, 5));
        assert_eq!(groups.ahead(0), Some(first), "asked again");
        assert_eq!(groups.ahead(1), None);
        assert_eq!(groups.ahead(2).unwrap().blocks, 32768);
        assert_eq!(groups.ahead(3), None);
        assert!(Groups::open(&sys, "sdb").is_none());
    }

    #[test]
    fn a_group_far_away_is_reached_in_steps() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("proc/fs/ext4/sda1");
        std::fs::create_dir_all(&directory).unwrap();
        let line = |group: u64| format!("#{group:<5}: {group} 1 0 [ 0 0 ]\n");
        let text: String = (0..100).map(line).collect();
        std::fs::write(directory.join("mb_groups"), text).unwrap();
        let mut groups = Groups::open(&SysRoot::at(root.path()), "sda1").unwrap();
        let mut steps = 1;
        while !groups.skip_to(40, Duration::ZERO) {
            steps += 1;
        }
        assert!(steps > 40, "a line each");
        assert!(groups.skip_to(39, Duration::ZERO), "it was passed");
        assert_eq!(groups.ahead(40).unwrap().blocks, 40);
        assert!(groups.skip_to(90, Duration::MAX));
        assert_eq!(groups.ahead(90).unwrap().blocks, 90);
        assert!(groups.skip_to(1000, Duration::MAX), "there is no more");
    }
}
