//! Every key of a card, once: parser, overrides, printer and documentation
//! read this list.

/// One figure that a card can give.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its section and name, e.g. `discard.a`.
    pub path: &'static str,
    /// Its value where a card doesn't give it; `None`: a card must.
    pub default: Option<&'static str>,
    /// The figure's meaning, in a line.
    pub about: &'static str,
}

impl Key {
    /// The name without the section.
    pub fn name(&self) -> &'static str {
        self.path
            .split_once('.')
            .map_or(self.path, |(_, name)| name)
    }

    /// The section.
    pub fn section(&self) -> &'static str {
        self.path.split_once('.').map_or("", |(section, _)| section)
    }
}

const fn key(path: &'static str, default: Option<&'static str>, about: &'static str) -> Key {
    Key {
        path,
        default,
        about,
    }
}

/// Every figure of a card, in the order in which a card is printed.
///
/// `discard.a`, `discard.b` and `discard.queue` may be missing where
/// `discard.supported` is false.
pub const KEYS: &[Key] = &[
    key(
        "discard.supported",
        Some("true"),
        "whether it takes discards at all: true or false",
    ),
    key(
        "discard.a",
        None,
        "time of a discard command, whatever its size",
    ),
    key(
        "discard.b",
        None,
        "time for each MiB of mapped space, e.g. 8.44us/MiB",
    ),
    key(
        "discard.b_unmapped",
        Some("b"),
        "time for each MiB that holds nothing; `b`: the same",
    ),
    key(
        "discard.per_range",
        Some("0"),
        "time for each range of a command",
    ),
    key(
        "discard.max_ranges",
        Some("256"),
        "most ranges in a command (NVMe: 256; ATA: 64 per block)",
    ),
    key(
        "discard.max_bytes",
        Some("4G"),
        "most bytes in a command, all ranges together",
    ),
    key(
        "discard.queue",
        None,
        "exclusive, non-ncq-drain, or parallel K",
    ),
    key(
        "discard.phi",
        Some("1"),
        "share of its time in which reads and writes wait",
    ),
    key(
        "discard.jitter",
        Some("0"),
        "standard deviation of its time, as a share of it (at most 33%)",
    ),
    key("discard.smallest", Some("0"), "a shorter range is ignored"),
    key(
        "discard.read_after_trim",
        Some("undefined"),
        "zeros, deterministic or undefined",
    ),
    key(
        "map.granule",
        Some("4k"),
        "unit of the drive's map, a power of 2 from 512: discards round inwards to it",
    ),
    key(
        "read.latency",
        None,
        "time of a 4-KiB read on an idle drive",
    ),
    key(
        "read.per_mib",
        Some("0ns/MiB"),
        "time on the interface that all reads share, for each MiB: 1 / bandwidth",
    ),
    key("read.parallelism", None, "reads worked at at once"),
    key(
        "read.jitter",
        Some("0"),
        "standard deviation of a read's time, as a share of it (at most 33%)",
    ),
    key(
        "write.latency",
        None,
        "time of a 4-KiB write into the idle drive's cache",
    ),
    key(
        "write.per_mib",
        Some("0ns/MiB"),
        "time on the interface that all writes share, for each MiB: 1 / bandwidth",
    ),
    key("write.parallelism", None, "writes worked at at once"),
    key(
        "write.jitter",
        Some("0"),
        "standard deviation of a write's time, as a share of it (at most 33%)",
    ),
    key(
        "fold.per_mib",
        Some("0ns/MiB"),
        "background work that a write leaves behind, e.g. moving it out of a fast cache",
    ),
    key(
        "fold.longest",
        Some("0"),
        "most background work that is put off",
    ),
    key(
        "fold.read_share",
        Some("1"),
        "share of its speed that a read keeps meanwhile, above 0",
    ),
    key(
        "flush.latency",
        None,
        "time of a flush, once the writes before it have completed",
    ),
];

/// The key with this path.
pub(crate) fn by_path(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|k| k.path == path)
}
