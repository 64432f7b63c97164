//! Everything that decides a run: drive, volume, policy, workload, foreground.

use std::str::FromStr;
use std::time::Duration;

use record::units::document::Document;
use record::units::settings::SetError;
use record::units::typed::{Mistake, nearest};
use ssd::Card;
use ssd::flash::Geometry;

use crate::keys::{BLOCKS, DURATION, Pair, RATE, SIZE, SPAN, blocks, settings};
use crate::policy::{Parameters, PolicyKind};
use crate::volume::AllocatorKind;
use crate::workload::WorkloadKind;

/// One or several drives of a kind, in stripes.
#[derive(Debug, Clone, PartialEq)]
pub struct Drives {
    /// The profile's or the stack's name.
    pub name: String,
    /// One card for each drive.
    pub cards: Vec<Card>,
    /// Bytes on one drive before the next one's turn.
    pub chunk: u64,
}

impl Drives {
    /// A single drive.
    pub fn single(card: Card) -> Drives {
        Drives {
            name: card.name().to_owned(),
            cards: vec![card],
            chunk: 512 << 10,
        }
    }
}

settings! {
    /// A run's settings.
    pub struct Setup[
        /// The drives below the volume.
        drives: Drives,
        /// The policy.
        policy: PolicyKind,
        /// Its parameters, and those of other policies.
        parameters: Parameters,
        /// The workload.
        workload: WorkloadKind,
        /// Lengths of the extents of the file to drop, in place of the allocator's.
        extents: Vec<u64>,
    ] {
        /// Bytes that the workload has.
        "size" size: u64 = BLOCKS, "16G; spill, log-purge: 2G; churn: 1G";
        /// Files that the workload has.
        "files" files: u64 = 1..=10_000_000, "1000; churn: 16384";
        /// Bytes of the volume; 0: twice `size`, at least 16G.
        "volume" volume: u64 = SIZE, "0";
        /// Share of the volume that other files use.
        "fill" fill: f64 = FILL, "0%";
        /// Whose way of allocating: auto, ffs, ext4, xfs or btrfs.
        "allocator" allocator: Option<AllocatorKind> = ALLOCATOR, "auto";
        /// Reads of 4 KiB in flight (closed loop).
        "readers" readers: u32 = 0..=4096, "8";
        /// Reads a second at random times (open loop); 0: none.
        "reads-per-s" reads_per_s: f64 = RATE, "0";
        /// Writes of 4 KiB in flight.
        "writers" writers: u32 = 0..=4096, "0";
        /// Programs that write 4 KiB and sync.
        "syncers" syncers: u32 = 0..=4096, "0";
        /// Time before the deletion.
        "baseline" baseline: Duration = DURATION, "2s";
        /// Time after the last discard.
        "recovery" recovery: Duration = DURATION, "2s";
        /// Longest wait for the last discard.
        "limit" limit: Duration = SPAN, "5m";
        /// Time of a workload that goes on and on.
        "length" length: Duration = SPAN, "1m";
        /// Pause of such a workload.
        "pause" pause: Duration = DURATION, "100ms";
        /// A row of the record.
        "interval" interval: Duration = SPAN, "100ms";
        /// The host's time for each foreground I/O.
        "per-io" per_io: Duration = DURATION, "10us";
        /// The kernel's time between two discards.
        "per-discard" per_discard: Duration = DURATION, "50us";
        /// The deleter's time for each file.
        "per-file" per_file: Duration = DURATION, "50us";
        /// Time of a commit beside its flush.
        "commit-time" commit_time: Duration = DURATION, "1ms";
        /// Longest time from a deletion to its commit.
        "commit-every" commit_every: Duration = SPAN, "5s";
        /// Decides all that is random.
        "seed" seed: u64 = 0..=u64::MAX, "1";
        /// Flash behind the drive: off, or PAGE PAGES_IN_BLOCK SPARE% greedy|fifo.
        "flash" flash: Option<Geometry> = FLASH, "off";
    }
}

const FILL: Pair<f64> = Pair(
    |text| match record::units::parse_share(text)? {
        share if share <= 0.95 => Ok(share),
        _ => Err(format!("'{text}': give at most 95%")),
    },
    |&share| record::units::percent_exact(share),
);

const ALLOCATOR: Pair<Option<AllocatorKind>> = Pair(
    |text| match text {
        "auto" => Ok(None),
        _ => Ok(Some(AllocatorKind::from_str(text)?)),
    },
    |kind| kind.map_or("auto", AllocatorKind::name).to_owned(),
);

const FLASH: Pair<Option<Geometry>> = Pair(
    |text| match text {
        "off" => Ok(None),
        _ => Geometry::from_str(text)
            .map(Some)
            .map_err(|e| e.to_string()),
    },
    |flash| flash.map_or("off".to_owned(), |flash| flash.to_string()),
);

impl Setup {
    /// The usual settings for a drive, beside 8 reads in flight.
    pub fn new(drives: Drives, policy: PolicyKind, workload: WorkloadKind) -> Setup {
        let parameters = policy.usual();
        Setup::usual(
            workload.name(),
            drives,
            policy,
            parameters,
            workload,
            Vec::new(),
        )
    }

    /// Sets a setting, or a parameter of the policy, from text.
    ///
    /// # Errors
    /// If there is none of this name (with the nearest), or it doesn't take the value.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        let known = || Setup::KEYS.iter().map(|key| key.name);
        if known().any(|own| own == name) {
            return self.set_own(name, text);
        }
        let own = self.policy.parameters();
        if own.contains(&name) {
            return self.parameters.set_own(name, text);
        }
        Err(match Parameters::KEYS.iter().any(|key| key.name == name) {
            true => format!("the policy {} has no '{name}'", self.policy.name()).into(),
            false => SetError::Unknown(nearest(name, known().chain(own.iter().copied()))),
        })
    }

    /// All settings by their names, as `--set` takes them.
    pub fn describe(&self) -> serde_json::Map<String, serde_json::Value> {
        let own = [
            ("profile", self.drives.name.clone()),
            ("policy", self.policy.name().to_owned()),
            ("workload", self.workload.name().to_owned()),
        ];
        let keys = self.shown().chain(self.policy.shown(&self.parameters));
        let all = own
            .into_iter()
            .chain(keys.map(|(key, text)| (key.name, text)));
        all.map(|(name, text)| (name.to_owned(), text.into()))
            .collect()
    }

    /// The way of allocating.
    pub fn allocator(&self) -> AllocatorKind {
        // Given extents are laid out as they are: btrfs has no tables between them.
        let usual = match self.extents.is_empty() {
            true => self.policy.allocator(),
            false => AllocatorKind::Btrfs,
        };
        self.allocator.unwrap_or(usual)
    }

    /// The volume's size in bytes, whole stripes.
    pub fn volume_bytes(&self) -> u64 {
        let extents: u64 = self.extents.iter().map(|&bytes| bytes + 8192).sum();
        let wanted = match self.volume {
            0 => (self.size.max(extents).saturating_mul(2)).max(16 << 30),
            bytes => bytes,
        };
        let stripe = self.drives.chunk.max(4096) * self.drives.cards.len().max(1) as u64;
        wanted.div_ceil(stripe).saturating_mul(stripe)
    }
}

// Several drives as one volume: `stacks/*.toml`.

/// Every shipped stack: its name and its text.
pub const STACKS: &[(&str, &str)] = &[(
    "crucial-t500-2tb-raid0",
    include_str!("../stacks/crucial-t500-2tb-raid0.toml"),
)];

/// The keys of a stack.
const KEYS: [&str; 6] = ["name", "about", "profile", "drives", "chunk", "set"];

/// The drives of a stack.
///
/// A stack is TOML with `name`, `about`, `profile` (the card of each drive) and `drives` (their
/// number). `chunk` is the bytes on one drive before the next one's turn. `set` lists figures of
/// the card that differ, as `lab up --set` takes them. `card` finds a card by its name.
///
/// # Errors
/// With line and column: if it isn't TOML, or has a wrong key or value.
pub fn stack(text: &str, card: impl Fn(&str) -> Result<Card, String>) -> Result<Drives, Mistake> {
    let document = Document::parse(text)?;
    let mut drives = Drives {
        name: "stack".to_owned(),
        cards: Vec::new(),
        chunk: 512 << 10,
    };
    let (mut count, mut one, mut changes) = (2, None, Vec::new());
    for item in document.items() {
        match item.key {
            "name" => drives.name = item.text()?,
            "about" => drop(item.text()?),
            "profile" => one = Some(item.read(&card)?),
            "drives" => count = item.read(|text| record::units::parse_whole(text, 1..=64))?,
            "chunk" => drives.chunk = item.read(blocks)?,
            "set" => changes = item.list(),
            _ => return Err(item.unknown(KEYS)),
        }
    }
    let mut one = one.ok_or(Mistake::Missing {
        key: "profile",
        about: "the card of its drives, for example profile = \"ideal\"",
    })?;
    for change in changes {
        one = change.read(|text| one.with(text))?;
    }
    drives.cards = vec![one; count];
    Ok(drives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_takes_what_it_shows() {
        let card = ssd::profiles::by_name("ideal").unwrap().clone();
        let drives = Drives::single(card);
        let mut setup = Setup::new(drives, PolicyKind::None, WorkloadKind::DropFile);
        setup.reads_per_s = 100.0;
        setup.fill = 0.25;
        setup.flash = Some("16k 256 7% greedy".parse().unwrap());
        let mut again = setup.clone();
        for (key, text) in setup.shown() {
            assert_eq!(again.set(key.name, &text), Ok(()), "{key:?} {text}");
        }
        assert_eq!(again, setup);
        assert!(again.set("size", "5").is_err());
        let error = again.set("raeders", "5").unwrap_err();
        assert!(error.to_string().contains("did you mean 'readers'?"));
    }

    fn shipped(name: &str) -> Result<Card, String> {
        ssd::profiles::by_name(name)
            .cloned()
            .ok_or_else(|| "unknown".to_owned())
    }

    #[test]
    fn every_shipped_stack_is_good() {
        for (name, text) in STACKS {
            let drives = stack(text, shipped).unwrap();
            assert_eq!(drives.name, *name);
            assert!(drives.cards.len() > 1);
        }
    }

    #[test]
    fn a_mistake_is_reported_with_its_place() {
        let wrong = |text: &str| stack(text, shipped).unwrap_err().to_string();
        assert_eq!(
            wrong("profile = \"ideal\"\ndrivse = 2\n"),
            "line 2, column 1: unknown key 'drivse'; did you mean 'drives'?"
        );
        let said = wrong("profile = \"ideal\"\nset = [\"read.latncy=1us\"]\n");
        assert!(said.starts_with("line 2, column 8: 'set'"), "{said}");
        assert!(wrong("drives = 2").contains("there is no 'profile': add it"));
    }
}
