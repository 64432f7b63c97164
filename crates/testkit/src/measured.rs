//! Drives measured in 2024 beside eight reads in flight: the figures that their models must reach.

use std::time::Duration;

const MIB: f64 = 1024.0 * 1024.0;

/// One drive under ext4, while a file of 1 TiB was removed. Rates and waits are medians over the
/// full seconds of the stall.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// The name of its card.
    pub profile: &'static str,
    /// The host's time for each read: with it, the rate without discards is the measured one.
    pub per_io: Duration,
    /// The host's time between two discards: 1/rate less the discards' wait.
    pub per_discard: Duration,
    /// Discards, and their MiB, in each second; or in all, where they are of one size.
    pub discards: &'static [(u32, f64)],
    /// Reads a second before the deletion.
    pub base: f64,
    /// Reads a second in the stall.
    pub reads_per_s: f64,
    /// Discards a second.
    pub discards_per_s: f64,
    /// GiB discarded a second.
    pub gib_per_s: f64,
    /// The mean wait of a discard, in milliseconds.
    pub d_await_ms: f64,
    /// The mean wait of a read, in milliseconds.
    pub r_await_ms: f64,
    /// The length of the stall in seconds.
    pub stall_s: f64,
    /// The foreground time lost in the stall, in seconds.
    pub lost_s: f64,
}

/// Crucial T500 of 2 TB.
pub const T500: Measured = Measured {
    profile: "crucial-t500-2tb",
    per_io: Duration::from_micros(10),
    per_discard: Duration::from_micros(50),
    discards: &[(8_222, 8_222.0 * 127.7)],
    base: 92_080.0,
    reads_per_s: 3_920.0,
    discards_per_s: 490.0,
    gib_per_s: 61.1,
    d_await_ms: 1.99,
    r_await_ms: 1.94,
    stall_s: 16.9,
    lost_s: 16.2,
};

/// Samsung 870 EVO of 2 TB. Its file was not laid out as a new one.
pub const EVO_870: Measured = Measured {
    profile: "samsung-870-evo-2tb",
    per_io: Duration::from_micros(15),
    per_discard: Duration::from_micros(70),
    discards: &[
        (510, 62304.0),
        (590, 73864.0),
        (584, 73368.0),
        (585, 72768.0),
        (585, 72920.0),
        (597, 73144.0),
        (601, 74756.0),
        (617, 76632.0),
        (607, 76512.0),
        (606, 77216.0),
        (643, 74280.0),
        (699, 66544.0),
        (694, 66016.0),
        (606, 73016.0),
        (1217, 33136.0),
        (55, 1352.0),
    ],
    base: 57_590.0,
    reads_per_s: 4_832.0,
    discards_per_s: 606.0,
    gib_per_s: 71.5,
    d_await_ms: 1.58,
    r_await_ms: 1.53,
    stall_s: 15.0,
    lost_s: 13.7,
};

impl Measured {
    /// The bytes of each discard, in whole blocks of 4 KiB.
    pub fn lengths(&self) -> impl Iterator<Item = u64> {
        self.discards.iter().flat_map(|&(count, mib)| {
            let blocks = (mib * MIB / f64::from(count) / 4096.0).round() as u64;
            std::iter::repeat_n(blocks * 4096, count as usize)
        })
    }
}

/// The median of some figures; of an even number the upper one of the middle two.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints a simulated figure beside the measured one.
///
/// # Panics
/// If they differ by more than a share, `tolerance`, of the measured one.
#[track_caller]
pub fn near(what: &str, got: f64, expected: f64, tolerance: f64) {
    let off = got / expected - 1.0;
    println!(
        "{what:<34}{got:>12.3}{expected:>12.3}{:>+9.1} %",
        off * 100.0
    );
    assert!(off.abs() <= tolerance, "{what}: {got}, expected {expected}");
}
