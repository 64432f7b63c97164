//! The stall that emerges from the queue: reads beside a deletion at several
//! depths, and the same under three file systems.

use record::RunRecord;
use serde_json::Value;

use crate::drive::{Drive, Fallible};
use crate::row;
use crate::table;

/// Slow enough for what this machine adds to each I/O not to matter.
const SLOWER: f64 = 20.0;
const DRIVE: &str = "--size 6G --slower 20 --set write.latency=0 --set write.per_mib=0ns/MiB";
const RUN: &str = "--size 4G --set foreground.size=256M --set canary=0 --settle 4s --baseline 3s \
                   --recovery 1s --interval 100ms --depth";

/// A profile, and what its drive did in the iostat log of 2024 (ext4, depth 8).
struct Known {
    profile: &'static str,
    base_per_s: f64,
    left_per_s: f64,
    discards_per_s: f64,
    gib_per_s: f64,
    discard_ms: f64,
    read_ms: f64,
    lost_ms_per_gib: f64,
}

const KNOWN: [Known; 2] = [
    Known {
        profile: "crucial-t500-2tb",
        base_per_s: 92_080.0,
        left_per_s: 3_920.0,
        discards_per_s: 490.0,
        gib_per_s: 61.1,
        discard_ms: 1.99,
        read_ms: 1.94,
        lost_ms_per_gib: 15.8,
    },
    Known {
        profile: "samsung-870-evo-2tb",
        base_per_s: 57_590.0,
        left_per_s: 4_832.0,
        discards_per_s: 606.0,
        gib_per_s: 71.5,
        discard_ms: 1.58,
        read_ms: 1.53,
        lost_ms_per_gib: 13.4,
    },
];

/// Reads at depths 1, 8 and 32 beside a deletion on ext4.
pub fn depths() -> Fallible<()> {
    for known in &KNOWN {
        let mut rows = vec![head("depth"), known.row()];
        for depth in [1, 8, 32] {
            rows.push(measured(known.profile, "ext4", depth, &depth.to_string())?);
        }
        table::print(&title(known.profile, "by depth, ext4"), &rows);
    }
    Ok(())
}

/// Reads at depth 8 beside a deletion on each file system.
pub fn file_systems() -> Fallible<()> {
    for known in &KNOWN {
        let mut rows = vec![head("file system")];
        for fs in ["ext4", "xfs", "btrfs"] {
            rows.push(measured(known.profile, fs, 8, fs)?);
        }
        table::print(&title(known.profile, "by file system, depth 8"), &rows);
    }
    Ok(())
}

fn title(profile: &str, what: &str) -> String {
    format!("{profile}, {what}; {SLOWER} times slower, told in the drive's own time")
}

fn head(first: &str) -> Vec<String> {
    row![
        first,
        "reads/s",
        "in stall",
        "left",
        "discards",
        "MiB each",
        "discards/s",
        "reads per discard",
        "d_await ms",
        "r_await ms",
        "TRIM GiB/s",
        "lost ms/GiB",
    ]
}

impl Known {
    fn row(&self) -> Vec<String> {
        row![
            "8, 2024",
            format!("{:.0}", self.base_per_s),
            format!("{:.0}", self.left_per_s),
            format!("{:.3}", self.left_per_s / self.base_per_s),
            "",
            "",
            format!("{:.0}", self.discards_per_s),
            format!("{:.2}", self.left_per_s / self.discards_per_s),
            format!("{:.2}", self.discard_ms),
            format!("{:.2}", self.read_ms),
            format!("{:.1}", self.gib_per_s),
            format!("{:.1}", self.lost_ms_per_gib),
        ]
    }
}

fn measured(profile: &str, fs: &str, depth: u32, first: &str) -> Fallible<Vec<String>> {
    let options = format!("--profile {profile} {DRIVE}");
    let drive = Drive::up(&options, Some((fs, "discard")))?;
    let (record, verdict) = drive.run(&format!("{RUN} {depth}"))?;
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let reader = &verdict["foreground"][0];
    let base = number(&reader["baseline"]["ops_per_s"]) * SLOWER;
    let bytes = number(&verdict["discard"]["bytes"]);
    let lost_ms = number(&reader["lost_s"]) / SLOWER * 1e3;
    let stall = Stall::of(&record);
    let rate = match verdict["discard"]["bytes_per_s_is_lower_bound"].as_bool() {
        Some(true) => "≥ ",
        _ => "",
    };
    Ok(row![
        first,
        format!("{base:.0}"),
        format!("{:.0}", stall.reads / stall.seconds * SLOWER),
        format!("{:.3}", number(&reader["stall"]["depth"])),
        number(&verdict["discard"]["commands"]),
        format!(
            "{:.0}",
            number(&verdict["discard"]["mean_bytes"]) / f64::from(1 << 20)
        ),
        format!("{:.0}", stall.discards / stall.seconds * SLOWER),
        format!("{:.2}", stall.reads / stall.discards),
        format!("{:.2}", stall.discard_ms / stall.discards / SLOWER),
        format!("{:.2}", stall.read_ms / stall.reads / SLOWER),
        format!(
            "{rate}{:.1}",
            number(&verdict["discard"]["bytes_per_s"]) * SLOWER / f64::from(1 << 30)
        ),
        format!("{:.1}", lost_ms / (bytes / f64::from(1 << 30))),
    ])
}

/// Sums over the intervals in the middle of the discards, as measured.
#[derive(Default)]
struct Stall {
    seconds: f64,
    reads: f64,
    read_ms: f64,
    discards: f64,
    discard_ms: f64,
}

impl Stall {
    fn of(record: &RunRecord) -> Stall {
        let mut sum = Stall::default();
        let rows = &record.intervals;
        let Some(device) = rows.devices.first() else {
            return sum;
        };
        // Lone small ones of the file system come at any time.
        let most = device.discard_bytes.iter().max().copied().unwrap_or(0);
        let busy = |i: &usize| device.discard_bytes[*i] > most / 10;
        let all: Vec<usize> = (0..rows.len()).filter(busy).collect();
        // The first and the last are low for a part of their length only.
        let (Some(first), Some(last)) = (all.first(), all.last()) else {
            return sum;
        };
        for i in first + 1..*last {
            sum.seconds += f64::from(rows.seconds[i]);
            sum.reads += f64::from(device.reads[i]);
            sum.read_ms += f64::from(device.read_ms[i]);
            sum.discards += f64::from(device.discards[i]);
            sum.discard_ms += f64::from(device.discard_ms[i]);
        }
        sum
    }
}
