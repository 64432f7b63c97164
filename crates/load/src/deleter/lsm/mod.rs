//! An LSM tree's flushes and compactions, as RocksDB and LevelDB make them.
//!
//! Memtables are flushed as files of level 0. A level that holds more than its share is compacted:
//! its files and the overlapping ones of the next level are merged into new files there. Each new
//! file is written through the page cache and synced to the device (`fdatasync`). Then the inputs
//! are unlinked together. The inputs aren't read: it is the foreground that is measured. Flushes
//! and compactions take turns in one thread under one rate. So a stall delays the deleter's whole
//! work, as it does where the rate is limited.
//!
//! `tree` says what comes next, and `shape` how large levels may be: both pure.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use record::units::MIB;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use serde::Serialize;

use super::progress::Progress;
use super::spec::{Files, How, Way, seconds};
use super::workshop::{self, Workshop};
use super::{refuse, spawn};
use crate::clock::Clock;
use crate::error::LoadError;

mod bucket;
mod shape;
mod tree;

use bucket::Bucket;
use shape::Shape;
use tree::{Step, Table, Tree};

pub(super) static HOW: How = How {
    name: "lsm",
    about: "write and drop files as an LSM tree's compactions do, for a time",
    keys: &[
        "size",
        "no-sync",
        "levels",
        "file-size",
        "write-rate",
        "for",
    ],
    of: |asked, size_bytes| {
        let levels = asked.levels();
        let file_bytes = asked.file_bytes;
        Ok(Lsm {
            levels,
            file_bytes: file_bytes.unwrap_or_else(|| file_for(size_bytes, levels)),
            rate_bytes_per_s: asked.write_rate_bytes_per_s(),
            run_for: asked.run_for(),
        }
        .into())
    },
    has_folder: true,
    has_files: false,
    ..How::FILES
};

/// An LSM tree's flushes and compactions: files, named `NUMBER.sst`, are written and dropped at a
/// rate, over several levels. They never take more than the deletion's size, the outputs of a
/// compaction that is under way included.
///
/// After `run_for` its live files stay, as a database's would: dropping
/// the whole tree at once is no part of compaction. When it is stopped
/// before, it removes them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lsm {
    /// Levels of the tree, 2 to 7. The one with the new files, level 0, is among them.
    pub levels: u32,
    /// Bytes of each file; a multiple of 4096.
    pub file_bytes: u64,
    /// Bytes written per second, flushes and compactions together.
    pub rate_bytes_per_s: u64,
    /// For how long.
    #[serde(serialize_with = "seconds", rename = "run_for_s")]
    pub run_for: Duration,
}

/// The size of RocksDB's tables by default, or less where the tree has little room.
fn file_for(size_bytes: u64, levels: u32) -> u64 {
    let room_for = 3 * u64::from(8 + levels);
    (size_bytes / room_for / MIB * MIB).clamp(MIB, 64 * MIB)
}

/// Space is counted in whole blocks, so files are made of them.
const BLOCK: u64 = 4096;

impl Way for Lsm {
    fn run_for(&self) -> Option<Duration> {
        Some(self.run_for)
    }

    fn file_bytes(&self, _: u64) -> Option<u64> {
        Some(self.file_bytes)
    }

    fn check(&self, files: &Files) -> Result<(), LoadError> {
        workshop::check(self.file_bytes, self.run_for)?;
        if self.rate_bytes_per_s == 0 {
            return Err(refuse(
                "at 0 bytes per second nothing is written: give a rate",
            ));
        }
        shape_of(self.levels, self.file_bytes, files.size_bytes).map(drop)
    }

    fn start(self, files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError> {
        let shape = shape_of(self.levels, self.file_bytes, files.size_bytes)?;
        let progress = Progress::new(clock, 1, 0, 0);
        spawn(progress, move |progress, call| {
            let shop = Workshop::new(progress, call, self.run_for, files.seed);
            Database::new(&self, &files.folder, shape.clone(), shop).live();
        })
    }
}

/// How many files each level may hold.
fn shape_of(levels: u32, file_bytes: u64, space_bytes: u64) -> Result<Shape, LoadError> {
    if file_bytes == 0 || !file_bytes.is_multiple_of(BLOCK) {
        return Err(refuse(format!(
            "files of {file_bytes} bytes don't fill their blocks: give a multiple of {BLOCK}"
        )));
    }
    if !shape::LEVELS.contains(&levels) {
        return Err(refuse(format!(
            "an LSM tree of {levels} levels: give {} to {}",
            shape::LEVELS.start(),
            shape::LEVELS.end()
        )));
    }
    Shape::of(levels, space_bytes / file_bytes).ok_or_else(|| {
        let least = shape::least_files(levels).saturating_mul(file_bytes);
        refuse(format!(
            "an LSM tree of {levels} levels with files of {file_bytes} bytes takes at least \
             {least} bytes, and may take {space_bytes}: give more space, smaller files or \
             fewer levels"
        ))
    })
}

struct Database<'a> {
    way: &'a Lsm,
    dir: &'a Path,
    shop: Workshop<'a>,
    tree: Tree,
    bucket: Bucket,
    /// The zero of the bucket's time.
    began: Instant,
    /// The next file's.
    number: u64,
}

impl<'a> Database<'a> {
    fn new(way: &'a Lsm, dir: &'a Path, shape: Shape, shop: Workshop<'a>) -> Database<'a> {
        Database {
            way,
            dir,
            shop,
            tree: Tree::new(shape),
            bucket: Bucket::new(way.rate_bytes_per_s),
            began: Instant::now(),
            number: 1,
        }
    }

    fn live(&mut self) {
        while self.shop.is_open() {
            match self.tree.next() {
                Step::Flush => {
                    if let Some(table) = self.make() {
                        self.tree.flushed(table);
                    }
                }
                Step::Move(moved) => self.tree.moved(&moved),
                Step::Merge(merge) => {
                    if let Some(outputs) = self.make_all(merge.outputs()) {
                        for input in self.tree.merged(&merge, outputs) {
                            self.remove(&input);
                        }
                    }
                }
            }
        }
        if self.shop.is_stopped() {
            for table in self.tree.take_all() {
                self.remove(&table);
            }
        }
    }

    /// All of a merge's outputs, with their names on the device; or none of them.
    fn make_all(&mut self, count: usize) -> Option<Vec<Table>> {
        let mut outputs = Vec::with_capacity(count);
        for _ in 0..count {
            let Some(table) = self.make() else {
                for table in outputs {
                    self.remove(&table);
                }
                return None;
            };
            outputs.push(table);
        }
        let dir = self.dir;
        let synced = self.shop.call(|| File::open(dir)?.sync_all());
        if let Err(error) = synced {
            self.shop.failed(dir, "sync it", &error);
        }
        Some(outputs)
    }

    fn make(&mut self) -> Option<Table> {
        let number = self.number;
        self.number += 1;
        let path = path_of(self.dir, number);
        let len = self.way.file_bytes;
        let (bucket, began) = (&mut self.bucket, self.began);
        let bytes = self.shop.make(&path, |shop, file| {
            shop.call(|| reserve(file, len))?;
            let mut written = 0;
            while written < len && shop.is_open() {
                let next = workshop::WRITE.min(len - written);
                shop.pause(bucket.take(next, began.elapsed()));
                written = shop.write(file, written, len)?;
            }
            if shop.is_open() {
                shop.call(|| file.sync_data())?;
            }
            Ok(())
        })?;
        Some(Table { number, bytes })
    }

    fn remove(&self, table: &Table) {
        let path = path_of(self.dir, table.number);
        self.shop.remove(&path, table.bytes);
    }
}

fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:06}.sst"))
}

/// As RocksDB does: the file in one piece where that is possible, and a full
/// disk known before the work.
fn reserve(file: &File, len: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, len) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
