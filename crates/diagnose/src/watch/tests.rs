//! Recorded figures for the tests of the view, the screen and the lines.

use super::update::{Blocked, Debt, DeviceUpdate, Update, Waiting, Work};
use crate::why::frames::{Place, Reason};
use crate::why::{Cause, Deletion, SenderWork};

/// A device that reads and writes 4 KiB so many times in a second, and discards.
pub(super) fn device(name: &str, reads: u64, writes: u64, discarding: f64) -> DeviceUpdate {
    let discards = (discarding * 24.0) as u64;
    DeviceUpdate {
        device: name.to_owned(),
        reads: Work::of(reads, reads << 12, reads / 2, 1.0),
        writes: Work::of(writes, writes << 12, writes * 84, 1.0),
        discards: Work::of(discards, discards << 18, discards * 42, 1.0),
        flushes: Work::of(writes / 4, 0, writes * 21, 1.0),
        in_flight: 3,
        discarding,
        discards_took_s: Some(vec![0.042; discards as usize]),
        counts: true,
    }
}

/// A second in which ext4's discards on an Agility 2 keep dd waiting.
pub(super) fn stall(at_s: f64) -> Update {
    let mut update = Update::of(
        at_s,
        1.0,
        vec![device("loop8", 12, 11, 0.98), device("vda", 1234, 56, 0.0)],
    );
    update.unix_s = 1_795_521_787.0 + at_s;
    update.pressure = Some(Waiting {
        some: 0.43,
        full: 0.401,
    });
    update.senders = vec![SenderWork {
        device: "loop8".to_owned(),
        reason: Reason::ExtCommit,
        program: "kworker/u8:1".to_owned(),
        pid: Some(44),
        discards: 23,
        bytes: 23 << 18,
        mean_ms: Some(42.5),
        longest_ms: 90.0,
        in_drive_s: 0.98,
        deleted: None,
        deletion: Some(Deletion {
            program: "rm".to_owned(),
            pid: 14923,
            files: Some(120),
            bytes: Some(30 << 20),
        }),
    }];
    update.blocked = vec![Blocked {
        pid: 14925,
        program: "dd".to_owned(),
        seconds: 0.97,
        looks: 10.0,
        discards_s: 0.95,
        cause: Cause::BehindDiscards,
        place: Place::Writeback,
        causes: [(Cause::BehindDiscards, 0.95), (Cause::Commit, 0.02)]
            .map(|(cause, seconds)| (cause.name(), seconds))
            .into(),
        call: Some("write"),
        at: Some("/mnt/lab".to_owned()),
        suspects: Vec::new(),
        deleted: None,
        function: Some("folio_wait_bit_common".to_owned()),
    }];
    update.debts = vec![Debt {
        mount: "/mnt/lab".to_owned(),
        devices: vec!["loop8".to_owned()],
        bytes: Some(1 << 30),
        commands: None,
        per_s: Some(20),
        takes_s: Some(15.0),
    }];
    update
}
