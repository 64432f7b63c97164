//! Findings from the record that a drive keeps of its life.

use super::*;

/// Pages of an NVMe drive by NVMe's and OCP's tables (`storage::drive::Health` names them): 102.4 GB
/// written by the host, and slow TRIMs.
fn life(machine: &Machine, flash_bytes: u64) {
    let page = |name: &str, guid: &[u8], fields: &[(usize, u64)]| {
        let mut page = vec![0; 512];
        page[496..496 + guid.len()].copy_from_slice(guid);
        for (at, value) in fields {
            page[*at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let file = format!("identify/nvme0n1/{name}");
        machine.write(&file, "");
        std::fs::write(machine.root().join(file), page).unwrap();
    };
    page("nvme-health", &[], &[(48, 200_000)]);
    let guid = b"\xc5\xaf\x10\x28\xea\xbf\xf2\xa4\x9c\x4f\x6f\x7c\xc9\x14\xd5\xaf";
    page("ocp-health", guid, &[(0, flash_bytes)]);
    let guid = b"\x92\x7a\xc0\x8c\xd0\x84\x6c\x9c\x70\x43\xe6\xd4\x58\x5e\xd4\x85";
    // Enabled and measuring; the timer at 150 h; thresholds of 100, 155, 235 and 500 ms; 30 TRIMs
    // above the first and 1 above the last, of 2.4 s.
    let head = u64::from_le_bytes([0x7, 0, 0x08, 0x07, 0xe0, 0x07, 0x13, 0x1e]);
    let fields = [(0, head), (8, 0x632e), (36, 30), (84, 1), (192, 2400)];
    page("ocp-latency", guid, &fields);
}

#[test]
fn a_drive_that_recorded_slow_trims() {
    let machine = nvme("ext4", "rw,discard");
    life(&machine, 100_000_000_000);
    let found = finding(&machine, "trims-recorded-slow");
    let words = "31 TRIM commands above 100 ms in 150 h 00 min of operation; the slowest recorded \
                 took 2.4 s";
    assert!(found.what.contains(words), "{}", found.what);
    assert!(!ids(&nvme("ext4", "rw,discard")).contains(&"trims-recorded-slow"));
}

#[test]
fn a_drive_that_writes_much_more_than_its_host_where_nothing_trims() {
    let aged = |options: &str, flash_bytes| {
        let machine = nvme("ext4", options);
        life(&machine, flash_bytes);
        machine
    };
    let machine = aged("rw,nodiscard", 389_120_000_000);
    let found = finding(&machine, "amplified");
    assert!(found.what.contains("3.8 times"), "{}", found.what);
    timer(&machine, "/sbin/fstrim -a", true);
    assert!(!ids(&machine).contains(&"amplified"), "a timer trims it");
    for (options, flash_bytes) in [
        ("rw,discard", 389_120_000_000),
        ("rw,nodiscard", 300_000_000_000),
    ] {
        let found = ids(&aged(options, flash_bytes));
        assert!(!found.contains(&"amplified"), "{options}");
    }
}
