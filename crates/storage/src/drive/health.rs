//! The record that a drive keeps of its life.
//!
//! | page | fields | source |
//! |---|---|---|
//! | SMART / Health Information, 02h | 5 percentage used, 48 data units written (of 1000 × 512 bytes), 160 media errors, 192 and 196 minutes above the warning and the critical temperature, 224 and 228 seconds throttled | NVM Express Base Specification 2.1 |
//! | SMART / Health Information Extended, C0h | 0 physical media units written, in bytes; 496 GUID | OCP Datacenter NVMe SSD Specification 2.0; nvme-cli, plugins/ocp/ocp-smart-extended-log.c |
//! | ATA Device Statistics, 04h | 1: 24 logical sectors written; 4: 8 uncorrectable errors; 5: 80 minutes too hot; 7: 8 percentage used. The highest of 8 bytes has flags | ACS-4, 9.5; smartmontools, ataprint.cpp |
//! | Latency Monitor, C3h | 6 thresholds A to D (steps of 5 ms, one step at 0), 32 counters, 96 time stamps, 192 latencies; 496 GUID | the same specification; nvme-cli, plugins/ocp/ocp-print-stdout.c |

use serde::Serialize;

use super::{le16, le32, le64};

/// The record of a drive's life; `None` is what it doesn't say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Share of its life that is used, in percent; it may exceed 100.
    pub percentage_used: Option<u8>,
    /// Bytes that the host wrote; NVMe rounds up to units of 512,000.
    pub host_written_bytes: Option<u64>,
    /// Bytes that were written to flash, those of cleaning and of the drive's own among them.
    pub flash_written_bytes: Option<u64>,
    /// Errors of media and data.
    pub media_errors: Option<u64>,
    /// Minutes above the temperature of which it warns.
    pub hot_minutes: Option<u64>,
    /// Seconds in which it was slowed down because it was hot.
    pub throttled_s: Option<u64>,
    /// The TRIMs above each threshold of its latency monitor, the lowest first; empty without one.
    pub slow_trims: Vec<SlowTrims>,
}

/// TRIMs above a threshold and below the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SlowTrims {
    /// The threshold, in milliseconds.
    pub above_ms: u32,
    /// Commands.
    pub commands: u32,
    /// Latency of the one that the drive recorded, in milliseconds.
    pub latency_ms: u16,
    /// When that one was, in Unix milliseconds; `None` where the drive doesn't know.
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
        Some(Health {
            percentage_used: Some(smart[5]),
            host_written_bytes: Some(wide(smart, 48).saturating_mul(UNIT)),
            flash_written_bytes: flash.map(|page| wide(page, 0)),
            media_errors: Some(wide(smart, 160)),
            hot_minutes: Some(warm.saturating_add(hot)),
            throttled_s: Some(light.saturating_add(heavy)),
            slow_trims: latency
                .filter(|page| is_page(page, LATENCY))
                .map_or(Vec::new(), slow_trims),
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
            host_written_bytes: statistic(1, 24).map(|all| all.saturating_mul(sector_bytes)),
            flash_written_bytes: None,
            media_errors: statistic(4, 8),
            hot_minutes: statistic(5, 80),
            throttled_s: None,
            slow_trims: Vec::new(),
        };
        let is_empty = health.percentage_used.is_none()
            && health.host_written_bytes.is_none()
            && health.media_errors.is_none()
            && health.hot_minutes.is_none();
        (!is_empty).then_some(health)
    }

    /// Bytes written to flash for each byte of the host; `None` where one isn't known or is 0.
    pub fn write_amplification(&self) -> Option<f64> {
        let some = |bytes: Option<u64>| bytes.filter(|&bytes| bytes > 0);
        let (flash, host) = (
            some(self.flash_written_bytes)?,
            some(self.host_written_bytes)?,
        );
        Some(flash as f64 / host as f64)
    }
}

/// Rows of counters have reserved, TRIM, write and read; those of stamps lack the first, and begin
/// with the highest threshold.
fn slow_trims(page: &[u8]) -> Vec<SlowTrims> {
    let bucket = |bucket: usize| {
        let stamp = le64(page, 96 + (3 - bucket) * 24);
        SlowTrims {
            above_ms: (u32::from(page[6 + bucket]) + 1) * STEP_MS,
            commands: le32(page, 32 + bucket * 16 + 4),
            latency_ms: le16(page, 192 + (3 - bucket) * 6),
            at_unix_ms: Some(stamp).filter(|&stamp| stamp != u64::MAX && stamp > 0),
        }
    };
    (0..4).map(bucket).collect()
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

    fn smart() -> Vec<u8> {
        let mut page = vec![0; 512];
        page[5] = 7;
        page[48..52].copy_from_slice(&2_000_000u32.to_le_bytes());
        (page[160], page[192], page[196], page[224], page[228]) = (3, 10, 1, 60, 5);
        page
    }

    fn ocp(guid: [u8; 16], edit: impl Fn(&mut [u8])) -> Vec<u8> {
        let mut page = vec![0; 512];
        page[496..].copy_from_slice(&guid);
        edit(&mut page);
        page
    }

    #[test]
    fn smart_alone() {
        let health = Health::of_nvme(&smart(), None, None).unwrap();
        assert_eq!(health.percentage_used, Some(7));
        assert_eq!(health.media_errors, Some(3));
        assert_eq!(health.host_written_bytes, Some(1_024_000_000_000));
        assert_eq!(
            (health.hot_minutes, health.throttled_s),
            (Some(11), Some(65))
        );
        assert_eq!(health.write_amplification(), None);
        assert_eq!(Health::of_nvme(&[0; 511], None, None), None);
    }

    #[test]
    fn flash_writes_and_slow_trims_need_their_guid() {
        let flash = ocp(HEALTH, |page| {
            page[..8].copy_from_slice(&4_096_000_000_000u64.to_le_bytes());
        });
        let slow = ocp(LATENCY, |page| {
            (page[6], page[7], page[8], page[9]) = (19, 99, 199, 255);
            // Bucket 0: 31 TRIMs, beside 9 writes; one of 120 ms.
            (page[36], page[40]) = (31, 9);
            page[96 + 72..96 + 80].copy_from_slice(&1_700_000_000_000u64.to_le_bytes());
            page[192 + 18] = 120;
            page[96..104].fill(0xff);
        });
        let health = Health::of_nvme(&smart(), Some(&flash), Some(&slow)).unwrap();
        assert_eq!(health.write_amplification(), Some(4.0));
        let first = health.slow_trims[0];
        assert_eq!(
            (first.above_ms, first.commands, first.latency_ms),
            (100, 31, 120)
        );
        assert_eq!(first.at_unix_ms, Some(1_700_000_000_000));
        let last = health.slow_trims[3];
        assert_eq!(
            (last.above_ms, last.commands, last.at_unix_ms),
            (1280, 0, None)
        );
        // A vendor's own page of that number.
        let other = Health::of_nvme(&smart(), Some(&slow), Some(&flash)).unwrap();
        assert_eq!(
            (other.flash_written_bytes, other.slow_trims),
            (None, vec![])
        );
    }

    #[test]
    fn counts_beyond_64_bits_stay_at_the_most() {
        let mut page = smart();
        page[56] = 1;
        let health = Health::of_nvme(&page, None, None).unwrap();
        assert_eq!(health.host_written_bytes, Some(u64::MAX));
    }

    #[test]
    fn statistics_of_ata_are_known_where_the_drive_says_so() {
        let page = |number: u8, values: &[(usize, u64)]| {
            let mut page = vec![0; PAGE];
            (page[0], page[2]) = (1, number);
            for (at, value) in values {
                page[*at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
            page
        };
        let valid = 0b1100_0000 << 56;
        let pages = [
            // Of a Micron 5100: 6,338,402,530,321 sectors, 1 % used (normalized).
            page(1, &[(24, valid | 6_338_402_530_321)]),
            page(7, &[(8, valid | 0x20 << 56 | 1)]),
            // Supported without a value; a page that is none of these.
            page(4, &[(8, 0x80 << 56 | 5)]),
            page(6, &[(8, valid | 7), (80, valid | 9)]),
        ];
        let health = Health::of_ata(&pages.concat(), 512).unwrap();
        assert_eq!(health.host_written_bytes, Some(6_338_402_530_321 * 512));
        assert_eq!(health.percentage_used, Some(1));
        assert_eq!((health.media_errors, health.hot_minutes), (None, None));
        assert_eq!(Health::of_ata(&page(6, &[(8, valid | 7)]), 512), None);
        assert_eq!(Health::of_ata(&[1; PAGE - 1], 512), None);
    }
}
