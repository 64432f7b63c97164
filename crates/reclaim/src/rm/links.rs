//! Counts the names of files with several names, so that a forecast counts their bytes once.

use std::collections::HashMap;

use rustix::fs::Stat;

use super::places::allocated;

/// The files with several names that a forecast has met so far.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// By device and inode.
    files: HashMap<(u64, u64), Link>,
    /// The number of the present argument.
    argument: u32,
    stays: Stays,
}

/// A file with several names.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// Its names that were not met yet.
    left: u64,
    /// The argument that met it last.
    argument: u32,
}

/// The files that stay because they also have other names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stays {
    /// Files.
    pub files: u64,
    /// The bytes that they hold.
    pub bytes: u64,
}

impl Links {
    /// Counts a name of a file, and returns the bytes that come free with it: all with the last
    /// name, none before.
    pub(super) fn frees(&mut self, file: &Stat) -> u64 {
        let bytes = allocated(file);
        #[allow(clippy::useless_conversion, reason = "its width is the processor's")]
        let names = u64::from(file.st_nlink);
        if names <= 1 || bytes == 0 {
            return bytes;
        }
        let argument = self.argument;
        let link = self.files.entry((file.st_dev, file.st_ino));
        let link = link.or_insert(Link {
            left: names,
            argument: argument.wrapping_sub(1),
        });
        let is_new = link.argument != argument;
        link.argument = argument;
        link.left = link.left.saturating_sub(1);
        match (link.left, is_new) {
            (0, true) => {}
            (0, false) => self.stays.remove(bytes),
            (_, true) => self.stays.add(bytes),
            (_, false) => {}
        }
        if link.left == 0 { bytes } else { 0 }
    }

    /// Ends an argument. Returns what stays although it was in it.
    pub(super) fn end_argument(&mut self) -> Stays {
        self.argument = self.argument.wrapping_add(1);
        std::mem::take(&mut self.stays)
    }
}

impl Stays {
    fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }

    fn remove(&mut self, bytes: u64) {
        self.files -= 1;
        self.bytes -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_free_with_its_last_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut stat = rustix::fs::stat(file.path()).unwrap();
        (stat.st_nlink, stat.st_blocks) = (3, 8);
        let mut links = Links::default();
        assert_eq!([links.frees(&stat), links.frees(&stat)], [0, 0]);
        let one = Stays {
            files: 1,
            bytes: 4096,
        };
        assert_eq!(links.end_argument(), one);
        assert_eq!(links.frees(&stat), 4096);
        assert_eq!(links.end_argument(), Stays::default());
        // All its names in one argument, and a file with one name.
        stat.st_ino += 1;
        let all: u64 = (0..3).map(|_| links.frees(&stat)).sum();
        stat.st_nlink = 1;
        assert_eq!((all, links.frees(&stat)), (4096, 4096));
        assert_eq!(links.end_argument(), Stays::default());
    }
}
