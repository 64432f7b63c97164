//! How much memory a drive may promise.
//!
//! A drive in memory takes none when it is made, and its data can't be moved out later. If they
//! fill the machine's memory, together with dirty pages that are to be written to the drive, the
//! machine stands still. So each drive has a limit. All drives of a laboratory together may still
//! take at most the memory that is free.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use linux::space::Space;

use crate::error::LabError;
use crate::lab::Lab;
use crate::spec::Spec;
use crate::store;

impl Lab {
    /// The limit of a new drive's data: what was asked for, or half of the free
    /// memory that no other drive may still take; the whole drive at most.
    /// `None` for one in a file: its file system sets the limit.
    ///
    /// # Errors
    /// If that much memory isn't free.
    pub(crate) fn limit(&self, spec: &Spec) -> Result<Option<u64>, LabError> {
        if spec.store.is_some() {
            return Ok(spec.store_limit_bytes);
        }
        limit(spec, free_memory(), self.promised()).map(Some)
    }

    /// Returns the most data in bytes that a drive can keep; writes beyond it fail. `None`: it can
    /// keep as much as its size.
    pub fn room(&self, spec: &Spec) -> Option<u64> {
        let free = |file: &PathBuf| Some(Space::of(file).ok()?.available_bytes);
        let stored = |file: &PathBuf| Some(fs::metadata(file).ok()?.blocks() * 512);
        let file = spec.store.as_ref();
        let fits = file.and_then(|file| Some(free(file)? + stored(file)?));
        let most = [spec.store_limit_bytes, fits].into_iter().flatten().min()?;
        (most < spec.size_bytes).then_some(most)
    }

    /// Bytes of data that a drive can still store before writes to it fail. `None`: it has room
    /// for all of its size.
    pub fn left(&self, spec: &Spec) -> Option<u64> {
        let most = self.room(spec)?;
        Some(most.saturating_sub(self.stored(spec)))
    }

    /// Bytes of data that a drive stores now.
    fn stored(&self, spec: &Spec) -> u64 {
        if let Some(file) = &spec.store {
            return fs::metadata(file).map_or(0, |found| found.blocks() * 512);
        }
        let place = self.new_place(&spec.name).ok();
        let server = place.and_then(|place| place.server_pid());
        server.map_or(0, |pid| stored_bytes(pid.as_raw_nonzero().get()))
    }

    /// Returns the bytes of memory that the drives may still take.
    fn promised(&self) -> u64 {
        let names = self.names().unwrap_or_default();
        let places = names.iter().filter_map(|name| self.new_place(name).ok());
        places
            .filter_map(|place| {
                let spec = place.read_spec().ok()?;
                let most = spec.store_limit_bytes.filter(|_| spec.store.is_none());
                let server = place.server_pid().map(|pid| pid.as_raw_nonzero().get());
                let stored = server.map_or(0, stored_bytes);
                Some(most.unwrap_or(0).saturating_sub(stored))
            })
            .sum()
    }
}

fn limit(spec: &Spec, free: u64, promised: u64) -> Result<u64, LabError> {
    let room = free.saturating_sub(promised);
    match spec.store_limit_bytes.map(|most| most.min(spec.size_bytes)) {
        Some(most) if most > room => Err(LabError::BadSpec {
            why: format!(
                "{} of data in memory: {} are free, and {} of that other drives may still take; \
                 lower the limit, keep the data in a file, or take drives down",
                record::units::bytes(most),
                record::units::bytes(free),
                record::units::bytes(promised)
            ),
        }),
        Some(most) => Ok(most),
        None => Ok(spec.size_bytes.min(room / 2)),
    }
}

/// Bytes of memory that can be had without swapping.
fn free_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    available.map_or(1 << 30, |kib| kib * 1024)
}

/// Bytes of memory that a server's store takes.
fn stored_bytes(server: i32) -> u64 {
    let files = fs::read_dir(format!("/proc/{server}/fd"));
    let ours = format!("/memfd:{}", store::NAME);
    let stores = files.into_iter().flatten().flatten().filter(|file| {
        let name = fs::read_link(file.path()).unwrap_or_default();
        name.to_string_lossy().starts_with(&ours)
    });
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |m| m.blocks() * 512);
    stores.map(|file| bytes(&file.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn drive(size: u64, limit: Option<u64>) -> Spec {
        let mut spec = Spec::new("a", ssd::profiles::by_name("ideal").unwrap(), size);
        spec.store_limit_bytes = limit;
        spec
    }

    #[test]
    fn no_two_drives_are_promised_the_same_memory() {
        // Three drives of 12 GiB on a machine with 23 GiB free.
        let first = limit(&drive(12 * GIB, None), 23 * GIB, 0).unwrap();
        assert_eq!(first, 23 * GIB / 2);
        let second = limit(&drive(12 * GIB, None), 23 * GIB, first).unwrap();
        let third = limit(&drive(12 * GIB, None), 23 * GIB, first + second).unwrap();
        assert!(first + second + third < 23 * GIB);
        // Small ones get all they ask for.
        assert_eq!(limit(&drive(GIB, None), 23 * GIB, first).unwrap(), GIB);
        assert_eq!(limit(&drive(GIB, None), GIB, 2 * GIB).unwrap(), 0);
    }

    #[test]
    fn what_is_asked_for_is_had_or_refused() {
        let asked = |most, promised| limit(&drive(12 * GIB, Some(most)), 23 * GIB, promised);
        assert_eq!(asked(GIB, 0).unwrap(), GIB);
        assert_eq!(asked(100 * GIB, 0).unwrap(), 12 * GIB, "the whole drive");
        let error = asked(12 * GIB, 12 * GIB).unwrap_err().to_string();
        for part in ["12.0 GiB of data", "23.0 GiB are free"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn sees_what_a_store_takes() {
        let store = store::Store::new(None, 8 << 20, 8 << 20, false).unwrap();
        store.write(0, &vec![1; 4 << 20]).unwrap();
        // Other tests have stores, too.
        let all = stored_bytes(std::process::id().cast_signed());
        assert!(all >= 4 << 20, "{all}");
        assert_eq!(stored_bytes(1), 0, "init has none");
        assert!(free_memory() > 1 << 20);
    }
}
