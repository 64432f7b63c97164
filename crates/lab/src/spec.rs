//! The specification of a drive.

use std::path::PathBuf;

use record::units::MIB;
use serde::{Deserialize, Serialize};
use ssd::Card;

use crate::error::LabError;

/// A drive to be made. It is stored in the drive's directory, for the process that takes the drive
/// down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Its name: letters, digits, `-`, `_` and `.`, at most 64 of them.
    pub name: String,
    /// Its device card, as TOML; figures set by hand are part of it. See
    /// [`Spec::card`].
    pub card_toml: String,
    /// Its size in bytes, a multiple of 1 MiB.
    pub size_bytes: u64,
    /// Whether all of it counts as mapped from the start, as on a drive that was
    /// filled once. Such space reads as a pattern and takes no memory.
    pub premapped: bool,
    /// The share of it that was filled, overwritten at random and never discarded before it was
    /// made; its card describes its flash. See [`ssd::Drive::age`].
    #[serde(default)]
    pub aged: f64,
    /// Where its data are kept; `None`: in memory.
    pub store: Option<PathBuf>,
    /// Most bytes of data it keeps; what is written beyond fails with `EIO`.
    /// `None`: in a file what fits; in memory half of what is free when it is
    /// made and no other drive may still take, which [`Lab::up`](crate::Lab::up)
    /// fills in.
    pub store_limit_bytes: Option<u64>,
    /// Whether its write cache, of 256 MiB, is volatile: a power cut takes back what
    /// wasn't flushed. Each first write to a block after a flush costs a copy, in
    /// memory beside the store's.
    pub volatile_cache: bool,
    /// Its sectors' size in bytes, 512 or 4096.
    pub sector_bytes: u32,
    /// Whether the kernel looks for partitions on it, as `losetup --partscan`.
    pub partscan: bool,
    /// Opens the data that `store` holds, of a drive that was there before, instead of emptying it.
    pub keep: bool,
    /// Also takes a file as `store` that holds something else.
    pub force: bool,
    /// How many times slower than the card the drive is, 0.001 to 1000: a fast
    /// drive is represented faithfully only as fast as this machine is.
    pub slower: f64,
    /// A file system to make on it.
    pub fs: Option<Fs>,
    /// Where to mount it; only with `fs`. Made if missing, and then removed
    /// with the drive.
    pub mount: Option<PathBuf>,
    /// Mount options as of `mount -o`, e.g. `discard`.
    pub options: String,
    /// Seed of the drive's jitter.
    pub seed: u64,
}

record::kinds! {
    /// A file system that can be made.
    pub enum Fs["file system"] {
        /// ext4, without lazy initialization, which would write beside a test.
        Ext4 = "ext4",
        /// XFS.
        Xfs = "xfs",
        /// btrfs.
        Btrfs = "btrfs",
    }
}

const LONGEST_NAME: usize = 64;

impl Spec {
    /// Makes the specification of a drive with this card: in memory, empty, in real time, without a
    /// file system.
    pub fn new(name: &str, card: &Card, size_bytes: u64) -> Spec {
        Spec {
            name: name.to_owned(),
            card_toml: card.to_string(),
            size_bytes,
            premapped: false,
            aged: 0.0,
            store: None,
            store_limit_bytes: None,
            volatile_cache: false,
            sector_bytes: 512,
            partscan: false,
            keep: false,
            force: false,
            slower: 1.0,
            fs: None,
            mount: None,
            options: String::new(),
            seed: 1,
        }
    }

    /// The device card.
    ///
    /// # Errors
    /// If its text isn't one.
    pub fn card(&self) -> Result<Card, LabError> {
        Ok(self.card_toml.parse()?)
    }

    /// Checks whether such a drive can be made, before anything is made.
    ///
    /// # Errors
    /// [`LabError`] with the part that is wrong, e.g. [`LabError::BadSpec`].
    pub fn check(&self) -> Result<(), LabError> {
        check_name(&self.name)?;
        let card = self.card()?;
        let bad = |why: String| Err(LabError::BadSpec { why });
        if self.size_bytes < MIB || !self.size_bytes.is_multiple_of(MIB) {
            return bad(format!(
                "a size of {} bytes: it is whole MiB",
                self.size_bytes
            ));
        }
        if self.size_bytes > i64::MAX.cast_unsigned() {
            return bad("a size of 8 EiB or more: files end there".to_owned());
        }
        if !(0.001..=1000.0).contains(&self.slower) {
            return bad(format!("{} times slower: it is 0.001 to 1000", self.slower));
        }
        if u32::try_from(card.figures().granule).is_err() {
            return bad("a map granule of 4 GiB or more: a loop device can't say so".to_owned());
        }
        if self.aged > 0.0 && card.figures().flash.is_none() {
            return bad("wear and no flash: set flash.geometry, too".to_owned());
        }
        if self.mount.is_some() && self.fs.is_none() {
            return bad("a place to mount it, but no file system".to_owned());
        }
        if !matches!(self.sector_bytes, 512 | 4096) {
            return bad(format!(
                "sectors of {} bytes: they have 512 or 4096",
                self.sector_bytes
            ));
        }
        if self.keep && (self.store.is_none() || self.premapped || self.fs.is_some()) {
            return bad(
                "data that are kept without a file that has them, or with others over them: give \
                 --store, and neither premapped nor --fs"
                    .to_owned(),
            );
        }
        if self.mount.as_ref().is_some_and(|dir| dir.is_relative())
            || self.store.as_ref().is_some_and(|file| file.is_relative())
        {
            return bad("a relative path: its server has another directory".to_owned());
        }
        Ok(())
    }
}

/// Whether a drive can be called so.
pub(crate) fn check_name(name: &str) -> Result<(), LabError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty()
        || name.len() > LONGEST_NAME
        || name.starts_with('.')
        || !name.chars().all(fits)
    {
        return Err(LabError::BadName {
            name: name.to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Spec {
        Spec::new("a", ssd::profiles::by_name("ideal").unwrap(), 1 << 30)
    }

    #[test]
    fn takes_only_what_can_be_made() {
        good().check().unwrap();
        assert_eq!(good().card().unwrap().name(), "ideal");
        let bad: [fn(&mut Spec); 7] = [
            |s| s.size_bytes += 1,
            |s| s.size_bytes = 0,
            |s| s.slower = f64::NAN,
            |s| s.slower = 0.0,
            |s| s.mount = Some("/mnt".into()),
            |s| s.store = Some("file".into()),
            |s| s.card_toml.clear(),
        ];
        for spoil in bad {
            let mut spec = good();
            spoil(&mut spec);
            spec.check().unwrap_err();
        }
    }

    #[test]
    fn names_lead_nowhere_else() {
        for bad in ["", ".", "..", "a/b", "a b", ".a", &"x".repeat(65)] {
            check_name(bad).unwrap_err();
        }
        check_name("t500_2.tb-x").unwrap();
    }
}
