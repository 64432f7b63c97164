//! The record that a drive keeps of its life.
//!
//! | page | byte | field |
//! |---|---|---|
//! | 02h | 5 | percentage used |
//! | | 48 | data units written, of 1000 × 512 bytes |
//! | | 160 | media errors |
//! | | 192, 196 | minutes above the warning and the critical temperature |
//! | | 224, 228 | seconds throttled |
//! | C0h | 0 | physical media units written, in bytes |
//! | C3h | 0 | bit 0 enabled, bit 2 latencies measured |
//! | | 2, 4 | timer and its threshold, of 5 minutes |
//! | | 6 to 9 | thresholds A to D, of 5 ms; 0 is one step |
//! | | 32, 96, 192 | counters, time stamps, latencies in ms |
//! | | 216 | bits: a stamp is a time, and not hours of operation |
//! | | 240 to 425 | the same of the time before the timer began anew |
//! | C0h, C3h | 496 | GUID |
//! | 04h, page 1 | 24 | logical sectors written |
//! | 04h, page 4 | 8 | uncorrectable errors |
//! | 04h, page 5 | 80 | minutes too hot |
//! | 04h, page 7 | 8 | percentage used |
//!
//! | page | source |
//! |---|---|
//! | SMART / Health Information, 02h | NVM Express Base Specification 2.1, 5.1.12.1.3, figure 206 |
//! | SMART / Health Information Extended, C0h | OCP Datacenter NVMe SSD Specification 2.7, 4.8.6, page 29 |
//! | Latency Monitor, C3h | the same, 4.8.9, pages 48 to 57; 22.2, page 246 |
//! | Device Statistics, 04h | ATA ACS-4, 9.5; the highest of 8 bytes has flags |

use record::Written;
use serde::Serialize;

use super::{le16, le32, le64};

/// The record of a drive's life; `None` is what it doesn't say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Share of its life that is used, in percent; it may exceed 100.
    pub percentage_used: Option<u8>,
    /// Bytes written.
    #[serde(flatten)]
    pub written: Written,
    /// Errors of media and data.
    pub media_errors: Option<u64>,
    /// Minutes above the temperature of which it warns.
    pub hot_minutes: Option<u64>,
    /// Seconds in which it was slowed down because it was hot.
    pub throttled_s: Option<u64>,
    /// The TRIMs above each threshold of its latency monitor, the lowest first; empty without one.
    pub slow_trims: Vec<SlowTrims>,
    /// Seconds of operation in which it counted them.
    pub slow_trims_within_s: Option<u64>,
}

/// TRIMs above a threshold and below the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SlowTrims {
    /// The threshold, in milliseconds.
    pub above_ms: u32,
    /// Commands.
    pub commands: u64,
    /// Latency of the one that the drive recorded, in milliseconds.
    pub latency_ms: Option<u16>,
    /// When that one was, in Unix milliseconds; `None` where the drive knows no time.
    pub at_unix_ms: Option<u64>,
}

/// The GUIDs at the end of OCP's pages, as they lie there.
const HEALTH: [u8; 16] = [
    0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf,
];
const LATENCY: [u8; 16] = [
    0x92, 0x7a, 0xc0, 0x8c, 0xd0, 0x84, 0x6c, 0x9c, 0x70, 0x43, 0xe6, 0xd4, 0x58, 0x5e, 0xd4, 0x85,
];
/// A data unit of SMART, in bytes.
const UNIT: u64 = 512_000;
/// A step of the latency monitor's thresholds, in milliseconds.
const STEP_MS: u32 = 5;
/// A step of its timer, in seconds.
const TIMER_S: u64 = 300;
/// Bytes from what it counts now to the same of the time before.
const BEFORE: usize = 208;
/// Bytes of a page.
const PAGE: usize = 512;

impl Health {
    /// From NVMe's page 02h, and C0h and C3h of OCP's where the drive has them. `None` where the first
    /// is too short.
    pub fn of_nvme(
        smart: &[u8],
        extended: Option<&[u8]>,
        latency: Option<&[u8]>,
    ) -> Option<Health> {
        if smart.len() < PAGE {
            return None;
        }
        let [warm, hot, light, heavy] = [192, 196, 224, 228].map(|at| u64::from(le32(smart, at)));
        let flash = extended.filter(|page| is_page(page, HEALTH));
        let monitor = latency.filter(|page| is_page(page, LATENCY) && page[0] & 1 == 1);
        Some(Health {
            percentage_used: Some(smart[5]),
            written: Written {
                host_written_bytes: Some(wide(smart, 48).saturating_mul(UNIT)),
                flash_written_bytes: flash.map(|page| wide(page, 0)),
            },
            media_errors: Some(wide(smart, 160)),
            hot_minutes: Some(warm.saturating_add(hot)),
            throttled_s: Some(light.saturating_add(heavy)),
            slow_trims: monitor.map_or(Vec::new(), slow_trims),
            slow_trims_within_s: monitor.and_then(monitored_s),
        })
    }

    /// From the pages of ATA's Device Statistics, one after the other, of a drive with logical sectors
    /// of so many bytes. `None` where they hold none of this.
    pub fn of_ata(pages: &[u8], sector_bytes: u64) -> Option<Health> {
        let statistic = |number: u8, at: usize| {
            let page = pages.chunks_exact(PAGE).find(|page| page[2] == number)?;
            let value = le64(page, at);
            // Supported, and valid.
            (value >> 62 == 0b11).then_some(value & ((1 << 56) - 1))
        };
        let health = Health {
            percentage_used: statistic(7, 8).map(|share| (share & 0xff) as u8),
            written: Written {
                host_written_bytes: statistic(1, 24).map(|all| all.saturating_mul(sector_bytes)),
                flash_written_bytes: None,
            },
            media_errors: statistic(4, 8),
            hot_minutes: statistic(5, 80),
            throttled_s: None,
            slow_trims: Vec::new(),
            slow_trims_within_s: None,
        };
        let is_empty = health.percentage_used.is_none()
            && health.written == Written::default()
            && health.media_errors.is_none()
            && health.hot_minutes.is_none();
        (!is_empty).then_some(health)
    }
}

/// Rows of counters have reserved, TRIM, write and read; those of stamps lack the first, and begin
/// with the highest threshold. Bits of units go read, write, TRIM from the lowest threshold.
fn slow_trims(page: &[u8]) -> Vec<SlowTrims> {
    let is_measured = page[0] >> 2 & 1 == 1;
    let counted = |bucket: usize, base: usize| {
        let latency = le16(page, base + 192 + (3 - bucket) * 6);
        let stamp = le64(page, base + 96 + (3 - bucket) * 24);
        let is_time = le16(page, base + 216) >> (bucket * 3 + 2) & 1 == 1;
        SlowTrims {
            above_ms: (u32::from(page[6 + bucket]) + 1) * STEP_MS,
            commands: le32(page, base + 32 + bucket * 16 + 4).into(),
            latency_ms: Some(latency).filter(|&ms| is_measured && ms > 0),
            at_unix_ms: Some(stamp).filter(|&stamp| is_time && stamp != u64::MAX && stamp > 0),
        }
    };
    let bucket = |bucket: usize| {
        let (now, before) = (counted(bucket, 0), counted(bucket, BEFORE));
        let slower = match now.latency_ms < before.latency_ms {
            true => before,
            false => now,
        };
        SlowTrims {
            commands: now.commands + before.commands,
            ..slower
        }
    };
    (0..4).map(bucket).collect()
}

/// The timer stands still while the drive is off; `None` where it is at its end.
fn monitored_s(page: &[u8]) -> Option<u64> {
    let (timer, threshold) = (le16(page, 2), le16(page, 4));
    let counters = page.get(BEFORE + 32..BEFORE + 96)?;
    // Without a count there may have been no time before.
    let before = match counters.iter().any(|&byte| byte > 0) {
        true => threshold,
        false => 0,
    };
    (timer != u16::MAX).then(|| (u64::from(timer) + u64::from(before)) * TIMER_S)
}

fn is_page(page: &[u8], guid: [u8; 16]) -> bool {
    page.get(496..512).is_some_and(|found| found == guid)
}

/// A number of 128 bits, at most that of 64.
fn wide(page: &[u8], at: usize) -> u64 {
    match le64(page, at + 8) {
        0 => le64(page, at),
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of fields: offset, length in bytes, value.
    fn page(fields: &[(usize, usize, u64)]) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        for &(at, length, value) in fields {
            page[at..at + length.min(8)].copy_from_slice(&value.to_le_bytes()[..length.min(8)]);
        }
        page
    }

    fn ocp(guid: [u8; 16], fields: &[(usize, usize, u64)]) -> Vec<u8> {
        let mut page = page(fields);
        page[496..].copy_from_slice(&guid);
        page
    }

    #[test]
    fn smart_alone_knows_the_host_and_not_the_flash() {
        // Figures of <https://github.com/Linuxfabrik/monitoring-plugins/issues/222>, with times of
        // heat, which that drive lacks.
        let smart = page(&[
            (5, 1, 3),
            (32, 16, 5_716_382),
            (48, 16, 28_604_965),
            (64, 16, 77_254_184),
            (80, 16, 239_905_015),
            (112, 16, 201),
            (128, 16, 9025),
            (144, 16, 81),
            (192, 4, 10),
            (196, 4, 1),
            (224, 4, 60),
            (228, 4, 5),
        ]);
        let health = Health::of_nvme(&smart, None, None).unwrap();
        assert_eq!(health.percentage_used, Some(3));
        assert_eq!(health.media_errors, Some(0));
        // It prints 14.6 TB.
        let host = Some(14_645_742_080_000);
        assert_eq!(health.written.host_written_bytes, host);
        assert_eq!(
            (health.hot_minutes, health.throttled_s),
            (Some(11), Some(65))
        );
        assert_eq!(health.written.amplification(), None);
        assert_eq!(
            (health.slow_trims, health.slow_trims_within_s),
            (vec![], None)
        );
        assert_eq!(Health::of_nvme(&smart[1..], None, None), None);
    }

    /// A Samsung PM9A3 (MZQL2960HCJR-00A07) before and after 10 GiB of sequential writes:
    /// the notes on write amplification of
    /// <https://github.com/samueldlightfoot/cassandra>.
    #[test]
    fn flash_of_a_pm9a3_before_and_after_writing() {
        // The host's 41.77 TB are rounded there; they grew by 20,972 units.
        let counted = |units: u64, flash: u64| {
            let smart = page(&[(5, 1, 3), (48, 16, units)]);
            let extended = ocp(HEALTH, &[(0, 16, flash), (494, 2, 2)]);
            let health = Health::of_nvme(&smart, Some(&extended), None).unwrap();
            health.written
        };
        let before = counted(81_582_031, 48_196_878_213_120);
        let after = counted(81_582_031 + 20_972, 48_207_615_631_360);
        assert_eq!(
            format!("{:.3}", before.amplification().unwrap()),
            "1.154",
            "over its life"
        );
        let written = after.since(&before);
        assert_eq!(written.host_written_bytes, Some(10_737_664_000));
        assert_eq!(written.flash_written_bytes, Some(10 << 30));
        let times = written.amplification().unwrap();
        assert!((times - 1.0).abs() < 3e-5, "{times}");
        // A count that goes back is of a drive that was swapped.
        assert_eq!(before.since(&after), Written::default());
    }

    /// The fields of C3h by OCP's table: thresholds as a factory sets them (30, 100, 155 and 235 ms),
    /// the timer at 100 minutes of a week.
    fn monitor(more: &[(usize, usize, u64)]) -> Vec<u8> {
        let fields = [
            (0, 1, 0x7),
            (2, 2, 20),
            (4, 2, 0x07e0),
            (6, 1, 0x05),
            (7, 1, 0x13),
            (8, 1, 0x1e),
            (9, 1, 0x2e),
            (10, 2, 0x0fff),
            (12, 1, 0x0a),
            // Stamps of nothing are all ones, of TRIM from the highest threshold down.
            (96, 8, u64::MAX),
            (120, 8, u64::MAX),
            (144, 8, u64::MAX),
            (168, 8, u64::MAX),
        ];
        ocp(LATENCY, &[&fields, more].concat())
    }

    #[test]
    fn slow_trims_by_the_latency_monitor() {
        let smart = page(&[]);
        let health = |page: &[u8]| Health::of_nvme(&smart, None, Some(page)).unwrap();
        let quiet = health(&monitor(&[]));
        let thresholds = |health: &Health| -> Vec<(u32, u64)> {
            let all = health.slow_trims.iter();
            all.map(|slow| (slow.above_ms, slow.commands)).collect()
        };
        assert_eq!(thresholds(&quiet), [(30, 0), (100, 0), (155, 0), (235, 0)]);
        assert_eq!(quiet.slow_trims_within_s, Some(6000));
        let at = 1_772_000_000_000;
        let busy = monitor(&[
            // 31 TRIMs from 100 ms on beside 9 writes and 7 reads, and one from 235 ms on.
            (52, 4, 31),
            (56, 4, 9),
            (60, 4, 7),
            (84, 4, 1),
            // The one was at 2.4 s, and the drive knew the time; one of the 31 was at 120 ms after
            // as many hours of operation.
            (96, 8, at),
            (192, 2, 2400),
            (144, 8, 3_600_000),
            (204, 2, 120),
            (216, 2, 1 << 11),
        ]);
        let found = health(&busy);
        assert_eq!(thresholds(&found), [(30, 0), (100, 31), (155, 0), (235, 1)]);
        let recorded = |slow: SlowTrims| (slow.latency_ms, slow.at_unix_ms);
        assert_eq!(recorded(found.slow_trims[0]), (None, None));
        assert_eq!(recorded(found.slow_trims[1]), (Some(120), None));
        assert_eq!(recorded(found.slow_trims[3]), (Some(2400), Some(at)));
        // Of the week before there are 2 more, of which one was slower.
        let mut week = busy.clone();
        (week[BEFORE + 52], week[BEFORE + 204]) = (2, 140);
        let found = health(&week);
        assert_eq!(thresholds(&found)[1], (100, 33));
        assert_eq!(found.slow_trims[1].latency_ms, Some(140));
        assert_eq!(found.slow_trims_within_s, Some(6000 + 7 * 86_400));
        // Switched off, without latencies, and with a timer at its end.
        let with = |at: usize, value: u8| {
            let mut page = busy.clone();
            page[at] = value;
            page
        };
        assert_eq!(health(&with(0, 0b110)).slow_trims, []);
        let unmeasured = health(&with(0, 0b001));
        assert_eq!(unmeasured.slow_trims[3].latency_ms, None);
        let mut ended = with(2, 0xff);
        ended[3] = 0xff;
        assert_eq!(health(&ended).slow_trims_within_s, None);
    }

    #[test]
    fn pages_of_a_vendor_are_none_of_ocp() {
        let (flash, slow) = (ocp(HEALTH, &[(0, 16, 9)]), monitor(&[(52, 4, 31)]));
        let health = Health::of_nvme(&page(&[]), Some(&slow), Some(&flash)).unwrap();
        assert_eq!(health.written.flash_written_bytes, None);
        assert_eq!(health.slow_trims, []);
    }

    #[test]
    fn counts_beyond_64_bits_stay_at_the_most() {
        let smart = page(&[(48, 16, 7), (56, 8, 1)]);
        let health = Health::of_nvme(&smart, None, None).unwrap();
        assert_eq!(health.written.host_written_bytes, Some(u64::MAX));
    }

    /// Page 04h of ATA with its header, each statistic with its flags in the highest byte.
    fn statistics(number: u64, values: &[(usize, u64, u64)]) -> Vec<u8> {
        let mut fields = vec![(0, 2, 1), (2, 1, number)];
        let values = values
            .iter()
            .map(|&(at, flags, value)| (at, 8, flags << 56 | value));
        fields.extend(values);
        page(&fields)
    }

    #[test]
    fn statistics_of_ata_are_known_where_the_drive_says_so() {
        // An Intel D3-S4510: <https://github.com/smartmontools/smartmontools/pull/619>. It prints
        // 14.9 TB; its timestamp lies beside.
        let intel = [
            statistics(
                1,
                &[
                    (8, 0xc0, 167),
                    (24, 0xc0, 29_165_644_238),
                    (32, 0xc0, 256_185_753),
                    (40, 0xc0, 183_260_735_283),
                    (56, 0xc0, 2_112_490_820),
                ],
            ),
            statistics(4, &[(8, 0xc0, 0)]),
        ];
        let health = Health::of_ata(&intel.concat(), 512).unwrap();
        let host = Some(29_165_644_238 * 512);
        assert_eq!(health.written.host_written_bytes, host);
        assert_eq!(
            (health.media_errors, health.percentage_used),
            (Some(0), None)
        );
        // A Toshiba HK4R, whose share is normalized (flag N):
        // <https://github.com/smartmontools/smartmontools/issues/312>; the errors are supported and
        // have no value, and page 6 has none of this.
        let toshiba = [
            statistics(4, &[(8, 0x80, 5)]),
            statistics(6, &[(8, 0xc0, 7), (80, 0xc0, 9)]),
            statistics(7, &[(8, 0xe0, 1)]),
        ];
        let health = Health::of_ata(&toshiba.concat(), 512).unwrap();
        assert_eq!(health.percentage_used, Some(1));
        assert_eq!(health.written, Written::default());
        assert_eq!((health.media_errors, health.hot_minutes), (None, None));
        assert_eq!(Health::of_ata(&toshiba[1], 512), None);
        assert_eq!(Health::of_ata(&[1; PAGE - 1], 512), None);
    }
}
