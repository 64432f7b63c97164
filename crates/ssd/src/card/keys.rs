//! Every key of a card, once: parser, overrides, printer and documentation
//! read this list.

use record::units::settings::{Key, SetError};
use record::units::typed::nearest;

/// Keys from a table with a row for each: its path, its default if it has one, and its meaning.
macro_rules! keys {
    ($($path:literal $(= $default:literal)?: $about:literal;)+) => {
        &[$(Key {
            name: $path,
            default: {
                let default: &[&str] = &[$($default)?];
                match default {
                    [] => None,
                    [text, ..] => Some(*text),
                }
            },
            about: $about,
            words: Vec::new,
        }),+]
    };
}

/// Every figure of a card, in the order in which a card is printed.
///
/// `discard.a`, `discard.b` and `discard.queue` may be missing where
/// `discard.supported` is false.
pub const KEYS: &[Key] = keys! {
    "discard.supported" = "true": "support of discards: true or false";
    "discard.a": "time of a discard command, whatever its size";
    "discard.b": "time for each MiB of mapped space, e.g. 8.44us/MiB";
    "discard.b_unmapped" = "b": "time for each MiB that holds nothing; `b`: the same";
    "discard.per_range" = "0": "time for each range of a command";
    "discard.max_ranges" = "256": "most ranges in a command (NVMe: 256; ATA: 64 per block)";
    "discard.max_bytes" = "4G": "most bytes in a command, all ranges together";
    "discard.queue": "exclusive, non-ncq-drain, or parallel K";
    "discard.phi" = "1": "share of its time in which reads and writes wait";
    "discard.jitter" = "0": "scatter of a discard's time: its standard deviation, as a share of it (at most 33%)";
    "discard.smallest" = "0": "shortest range that it discards; it ignores shorter ones";
    "discard.read_after_trim" = "undefined": "zeros, deterministic or undefined";
    "map.granule" = "4k": "unit of the drive's map, a power of 2 from 512: discards round inwards to it";
    "read.latency": "time of a 4-KiB read on an idle drive";
    "read.per_mib" = "0ns/MiB": "time on the interface that all reads share, for each MiB: 1 / bandwidth";
    "read.parallelism": "reads worked at at once";
    "read.jitter" = "0": "scatter of a read's time: its standard deviation, as a share of it (at most 33%)";
    "write.latency": "time of a 4-KiB write into the idle drive's cache";
    "write.per_mib" = "0ns/MiB": "time on the interface that all writes share, for each MiB: 1 / bandwidth";
    "write.parallelism": "writes worked at at once";
    "write.jitter" = "0": "scatter of a write's time: its standard deviation, as a share of it (at most 33%)";
    "fold.per_mib" = "0ns/MiB": "background work that a write leaves behind, e.g. moving it out of a fast cache";
    "fold.longest" = "0": "most background work that is put off";
    "fold.read_share" = "1": "share of its speed that a read keeps meanwhile, above 0";
    "flash.geometry" = "off": "flash whose cleaning writes wait for: off, or PAGE PAGES_IN_BLOCK SPARE% greedy|fifo";
    "flush.latency": "time of a flush, once the writes before it have completed";
};

/// The section and the name of a key, e.g. of `discard.a`.
pub(super) fn parts(key: &Key) -> (&'static str, &'static str) {
    key.name.split_once('.').unwrap_or(("", key.name))
}

/// The key that is typed with its section, or without it where one section alone has such a key.
pub(super) fn typed(typed: &str) -> Result<&'static Key, SetError> {
    let named = |key: &&Key| key.name == typed || parts(key).1 == typed;
    let candidates: Vec<&'static Key> = KEYS.iter().filter(named).collect();
    match candidates[..] {
        [key] => Ok(key),
        [] => {
            let names = KEYS.iter().flat_map(|key| [key.name, parts(key).1]);
            Err(SetError::Unknown(nearest(typed, names)))
        }
        _ => {
            let paths: Vec<&str> = candidates.iter().map(|key| key.name).collect();
            Err(SetError::Value(format!(
                "'{typed}' could be {}: give the section too",
                paths.join(" or ")
            )))
        }
    }
}
