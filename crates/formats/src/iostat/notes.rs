//! Reads the notes (`run.txt`) of a script that ran iostat beside fio and rm.
//!
//! iostat knows devices and nothing else. Such a protocol has the mounts, what
//! was removed when, and the line in which fio says what it does.

use record::{DiscardSetting, Target};

use super::stamp::{clock, days};
use crate::fio::Options as JobOptions;

/// A protocol, as far as it can be used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Notes {
    /// Where the file was that was removed: path, mount, source, type, options.
    pub target: Option<Target>,
    /// When it was removed, in seconds since 1970.
    pub removed_unix_s: Option<f64>,
    /// Its size, in bytes.
    pub removed_bytes: Option<u64>,
    /// The first job in fio's output, and its name.
    pub job: Option<(String, JobOptions)>,
    /// Operations that fio issued: reads, and writes.
    pub issued: Option<(u64, u64)>,
}

impl Notes {
    /// Whether a text looks like such a protocol.
    pub fn is_one(text: &str) -> bool {
        Notes::parse(text).removed_unix_s.is_some()
    }

    /// Reads a protocol; what isn't in it stays empty.
    pub fn parse(text: &str) -> Notes {
        let mut notes = Notes::default();
        let mut mounts: Vec<Target> = Vec::new();
        let mut removed: Option<&str> = None;
        let mut created: Option<&str> = None;
        let mut sizes: Vec<(&str, u64)> = Vec::new();
        for line in text.lines() {
            if let Some(mount) = mount(line) {
                mounts.push(mount);
            } else if let Some(rest) = line.strip_prefix("Remove ") {
                let (path, when) = rest.split_once(" at ").unwrap_or((rest, ""));
                removed = Some(path);
                notes.removed_unix_s = date_of(when);
            } else if let Some(rest) = line.strip_prefix("Create ") {
                created = rest.split(' ').next();
            } else if let (Some(path), Some(bytes)) = (created, copied(line)) {
                sizes.push((path, bytes));
            } else if let Some(job) = job(line) {
                notes.job.get_or_insert(job);
            } else if let Some(issued) = issued(line) {
                notes.issued.get_or_insert(issued);
            }
        }
        let Some(path) = removed else { return notes };
        notes.removed_bytes = sizes.iter().find(|s| s.0 == path).map(|s| s.1);
        let dir = |mount: &Target| mount.mount.clone().unwrap_or_default();
        let above = mounts.into_iter().filter(|mount| {
            let dir = dir(mount);
            let rest = path.strip_prefix(&dir);
            rest.is_some_and(|rest| dir.ends_with('/') || rest.starts_with('/'))
        });
        let deepest = above.max_by_key(|mount| dir(mount).len());
        notes.target = deepest.map(|mount| Target {
            path: path.to_owned(),
            ..mount
        });
        notes
    }
}

/// A line of `mount`: `SOURCE on DIR type FS (OPTIONS)`.
fn mount(line: &str) -> Option<Target> {
    let (source, rest) = line.split_once(" on ")?;
    let (dir, rest) = rest.split_once(" type ")?;
    let (fs, options) = rest.split_once(" (")?;
    let options: Vec<String> = (options.strip_suffix(')')?.split(','))
        .map(str::to_owned)
        .collect();
    let has = |name: &str| options.iter().any(|o| o == name);
    let discard = if has("discard=async") {
        DiscardSetting::Async
    } else if has("discard") || has("discard=sync") {
        DiscardSetting::On
    } else if matches!(fs, "ext4" | "xfs") || has("nodiscard") {
        // These print the option when it is on.
        DiscardSetting::Off
    } else {
        DiscardSetting::Unknown
    };
    Some(Target {
        mount: Some(dir.to_owned()),
        source: Some(source.to_owned()),
        fs: Some(fs.to_owned()),
        options,
        discard,
        ..Target::default()
    })
}

/// dd's `1099511627776 bytes (1.1 TB, 1.0 TiB) copied, …`.
fn copied(line: &str) -> Option<u64> {
    let (bytes, rest) = line.split_once(" bytes (")?;
    rest.contains("copied").then(|| bytes.parse().ok())?
}

/// fio's `NAME: (g=0): rw=randread, bs=(R) 4096B-4096B, …, ioengine=libaio, iodepth=8`.
fn job(line: &str) -> Option<(String, JobOptions)> {
    let (name, rest) = line.split_once(": (g=")?;
    let (_, rest) = rest.split_once("): ")?;
    let mut options = JobOptions::default();
    for part in rest.split(", ") {
        match part.split_once('=') {
            Some(("bs", sizes)) => {
                let size = sizes.trim_start_matches("(R) ").split('-').next();
                options.set("bs", size.unwrap_or_default());
            }
            Some((name, value)) => options.set(name, value),
            None => {}
        }
    }
    options
        .get("rw")
        .is_some()
        .then(|| (name.to_owned(), options))
}

/// fio's `issued rwts: total=6825375,0,0,0 short=…`.
fn issued(line: &str) -> Option<(u64, u64)> {
    let (_, rest) = line.split_once("issued rwt")?;
    let (_, rest) = rest.split_once("total=")?;
    let mut counts = rest.split([',', ' ']).map(|n| n.parse().ok());
    Some((counts.next()??, counts.next()??))
}

/// `Wed Jun 19 05:02:34 AM UTC 2024`, as `date` prints it, in any order; only in UTC.
fn date_of(text: &str) -> Option<f64> {
    const MONTHS: &str = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";
    let tokens: Vec<&str> = text.split_whitespace().collect();
    let month = (tokens.iter()).find_map(|t| MONTHS.split(' ').position(|m| m == *t))?;
    let numbers = || tokens.iter().filter_map(|t| t.parse::<i64>().ok());
    let day = numbers().find(|n| (1..=31).contains(n))?;
    let year = numbers().find(|n| (1970..2200).contains(n))?;
    let (seconds, _) = clock(text)?;
    let days = days(year, month as i64 + 1, day);
    tokens
        .contains(&"UTC")
        .then_some(days as f64 * 86_400.0 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::Direction;

    const TEXT: &str = "\
Create /data/m/f.1 at Wed Jun 19 04:00:21 AM UTC 2024
1099511627776 bytes (1.1 TB, 1.0 TiB) copied, 3699.75 s, 297 MB/s
/dev/sda2 on / type ext4 (rw,relatime)
/dev/md0 on /data type xfs (rw,noatime,discard)
Remove /data/m/f.1 at Wed Jun 19 05:02:34 PM UTC 2024
iops-test-job: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, ioengine=libaio, iodepth=8
     issued rwts: total=6825375,0,0,0 short=0,0,0,0 dropped=0,0,0,0
";

    #[test]
    fn what_a_protocol_says() {
        let notes = Notes::parse(TEXT);
        let target = notes.target.unwrap();
        assert_eq!(target.source.as_deref(), Some("/dev/md0"));
        assert_eq!(target.discard, DiscardSetting::On);
        assert_eq!(notes.removed_bytes, Some(1 << 40));
        assert_eq!(notes.removed_unix_s, Some(1_718_816_554.0));
        assert_eq!(notes.issued, Some((6_825_375, 0)));
        let (name, options) = notes.job.unwrap();
        let actor = options.actor(&name, Direction::Read, 1);
        assert_eq!((actor.block_bytes, actor.loop_kind.depth()), (4096, 8));
        assert!(Notes::is_one(TEXT) && !Notes::is_one("hello"));
        assert_eq!(Notes::parse(""), Notes::default());
    }

    #[test]
    fn no_option_is_no_discard_where_it_would_be_printed() {
        let off = Notes::parse(&TEXT.replace(",discard", ""));
        assert_eq!(off.target.unwrap().discard, DiscardSetting::Off);
        let btrfs = TEXT.replace(",discard", "").replace("xfs", "btrfs");
        let unknown = Notes::parse(&btrfs).target.unwrap();
        assert_eq!(unknown.discard, DiscardSetting::Unknown);
    }
}
