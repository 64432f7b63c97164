//! The options of a job, as far as they say what its I/O is.
//!
//! They come from a job file or from `job options` in fio's JSON, which repeats
//! what was given. Defaults are those of fio 3 on Linux.

use std::collections::BTreeMap;

use record::{ActorInfo, LoopKind};

use super::logs::Direction;

/// Other names of an option, and the one used here.
const ALIASES: &[(&str, &str)] = &[
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("blocksize_range", "bsrange"),
    ("log_max_value", "log_window_value"),
    ("log_alternate_epoch", "log_unix_epoch"),
];

/// Engines that have one operation in flight, whatever `iodepth` says.
const ONE_AT_A_TIME: &str = "sync psync vsync pvsync pvsync2 mmap splice falloc ftruncate";

/// The options that were set for a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options(BTreeMap<String, String>);

impl Options {
    /// Sets an option; an earlier value is replaced.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.insert(canonical(name).to_owned(), value.to_owned());
    }

    /// The value of an option, by any of its names.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(canonical(name)).map(String::as_str)
    }

    /// Whether a switch is on: given without a value, or as anything but 0.
    pub fn is_on(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value != "0")
    }

    /// A count, e.g. `iodepth`; fio's suffixes count in 1024.
    pub fn number(&self, name: &str) -> Option<u64> {
        number(self.get(name)?)
    }

    /// How many threads or processes run the job.
    pub fn threads(&self) -> u32 {
        let threads = self.number("numjobs").unwrap_or(1).clamp(1, 1 << 20);
        threads as u32
    }

    /// The directions of `rw`; reads when it isn't given.
    pub fn directions(&self) -> Vec<Direction> {
        use Direction::{Read, Trim, Write};
        match self.rw() {
            "write" | "randwrite" => vec![Write],
            "trim" | "randtrim" => vec![Trim],
            "rw" | "readwrite" | "randrw" => vec![Read, Write],
            "trimwrite" | "randtrimwrite" => vec![Write, Trim],
            _ => vec![Read],
        }
    }

    fn rw(&self) -> &str {
        let value = self.get("rw").unwrap_or("read");
        value.split(':').next().unwrap_or(value)
    }

    /// Bytes per operation in a direction; `None` where they vary.
    pub fn block_bytes(&self, direction: Direction) -> Option<u64> {
        if self.get("bsrange").is_some() || self.get("bssplit").is_some() {
            return None;
        }
        let value = self.get("bs").unwrap_or("4k");
        let given = of_direction(value, direction).filter(|bs| !bs.is_empty());
        number(given.unwrap_or("4k"))
    }

    /// Whether anything asks for syncs, which fio has no log of.
    pub fn syncs(&self) -> bool {
        let mut names = "fsync fdatasync sync_file_range end_fsync fsync_on_close sync".split(' ');
        names.any(|name| self.is_on(name) == Some(true))
    }

    /// Operations per second that a thread is held to in a direction, if it is.
    pub fn rate_per_s(&self, direction: Direction) -> Option<f64> {
        let rate = |name: &str| {
            let value = number(of_direction(self.get(name)?, direction)?)?;
            (value > 0).then_some(value as f64)
        };
        rate("rate_iops").or_else(|| {
            let block = self.block_bytes(direction).filter(|&bytes| bytes > 0)?;
            Some(rate("rate")? / block as f64)
        })
    }

    /// The actor that so many threads of this job are in one direction, if these are all of the
    /// job's options. Other options have fio's defaults.
    pub fn actor(&self, job: &str, direction: Direction, threads: u32) -> ActorInfo {
        let engine = self.get("ioengine").unwrap_or("psync");
        let engine = engine.split(':').next().unwrap_or(engine);
        let per_thread = match ONE_AT_A_TIME.split(' ').any(|one| one == engine) {
            true => 1,
            false => self.number("iodepth").unwrap_or(1).clamp(1, 1 << 20),
        };
        let depth = u32::try_from(per_thread * u64::from(threads)).unwrap_or(u32::MAX);
        let loop_kind = match self.rate_per_s(direction) {
            Some(rate) => LoopKind::Open {
                rate_per_s: rate * f64::from(threads),
                poisson: self.get("rate_process") == Some("poisson"),
                depth,
            },
            None => LoopKind::Closed { depth },
        };
        let pattern = match self.rw().starts_with("rand") {
            true => "random",
            false => "sequential",
        };
        let direct = self.is_on("direct") == Some(true) || self.is_on("buffered") == Some(false);
        ActorInfo {
            name: format!("fio-{}-{}", plain(job), direction.name()),
            op: direction.name().to_owned(),
            loop_kind,
            block_bytes: self.block_bytes(direction).unwrap_or(0),
            pattern: Some(pattern.to_owned()),
            direct: Some(direct),
            engine: engine.to_owned(),
        }
    }
}

fn canonical(name: &str) -> &str {
    let alias = ALIASES.iter().find(|(other, _)| *other == name);
    alias.map_or(name, |&(_, name)| name)
}

/// The part of `a,b,c` that is for a direction. One value is for all, the
/// second of two for writes and trims.
fn of_direction(value: &str, direction: Direction) -> Option<&str> {
    let parts: Vec<&str> = value.split(',').map(str::trim).collect();
    let at = direction as usize;
    parts.get(at).or(parts.last()).copied()
}

/// A number as fio takes it: decimal or 0x, with a suffix that counts in 1024.
pub(super) fn number(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let value: u64 = text[..digits].parse().ok()?;
    let shift = match text[digits..].trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    value.checked_mul(1 << shift)
}

/// A job's name without what would make a column's name awkward.
fn plain(job: &str) -> String {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    job.chars().map(|c| if fits(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(given: &[(&str, &str)]) -> Options {
        let mut options = Options::default();
        for (name, value) in given {
            options.set(name, value);
        }
        options
    }

    #[test]
    fn a_closed_loop_of_several_threads() {
        let info = options(&[
            ("readwrite", "randread"),
            ("iodepth", "4"),
            ("ioengine", "libaio"),
            ("direct", "1"),
            ("blocksize", "16k"),
        ])
        .actor("my readers", Direction::Read, 3);
        assert_eq!(info.name, "fio-my-readers-read");
        assert_eq!(info.loop_kind, LoopKind::Closed { depth: 12 });
        assert_eq!(info.block_bytes, 16384);
        assert_eq!(info.pattern.as_deref(), Some("random"));
        assert_eq!(info.direct, Some(true));
    }

    #[test]
    fn an_engine_that_waits_has_one_in_flight() {
        let info = options(&[("iodepth", "32")]).actor("j", Direction::Read, 1);
        assert_eq!(info.loop_kind.depth(), 1);
        assert_eq!(info.engine, "psync");
    }

    #[test]
    fn rates_make_open_loops() {
        let paced = options(&[("rate_iops", "1k,200"), ("rate_process", "poisson")]);
        assert_eq!(paced.rate_per_s(Direction::Read), Some(1024.0));
        assert_eq!(paced.rate_per_s(Direction::Write), Some(200.0));
        let kind = paced.actor("j", Direction::Write, 2).loop_kind;
        assert_eq!(
            kind,
            LoopKind::Open {
                rate_per_s: 400.0,
                poisson: true,
                depth: 2
            }
        );
        let bytes = options(&[("rate", "4m"), ("bs", "64k")]);
        assert_eq!(bytes.rate_per_s(Direction::Read), Some(64.0));
        assert_eq!(options(&[]).rate_per_s(Direction::Read), None);
    }

    #[test]
    fn block_sizes() {
        let two = options(&[("bs", "4k,64k")]);
        assert_eq!(two.block_bytes(Direction::Read), Some(4096));
        assert_eq!(two.block_bytes(Direction::Write), Some(65536));
        assert_eq!(two.block_bytes(Direction::Trim), Some(65536));
        let second = options(&[("bs", ",8ki")]);
        assert_eq!(second.block_bytes(Direction::Read), Some(4096));
        assert_eq!(second.block_bytes(Direction::Write), Some(8192));
        let range = options(&[("bsrange", "4k-64k")]);
        assert_eq!(range.block_bytes(Direction::Read), None);
    }

    #[test]
    fn numbers() {
        for (text, value) in [
            ("4096", 4096),
            ("4K", 4096),
            ("1mib", 1 << 20),
            ("0x10", 16),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in ["", "k", "4x", "99999999999999999999", "99999999t"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
