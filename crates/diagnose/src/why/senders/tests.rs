//! Which file system and which deletion senders are blamed with.

use super::*;

const A: DeviceNumber = DeviceNumber { major: 8, minor: 1 };
const B: DeviceNumber = DeviceNumber { major: 8, minor: 2 };
const DRIVE: DeviceNumber = DeviceNumber { major: 8, minor: 0 };

fn on(at: &str, kind: &str, identity: Identity, exact: &[DeviceNumber]) -> Place {
    Place {
        at: at.to_owned(),
        file_system: Some(FileSystem::of(kind)),
        tops: vec![DRIVE],
        devices: vec![DRIVE],
        exact: exact.to_vec(),
        identity: Some(identity),
        discards_later: true,
    }
}

fn uuid(text: &str) -> Identity {
    Identity::Uuid(text.to_owned())
}

fn deleter(on: Identity, kind: &str, pid: u32, first_s: f64) -> Deleter {
    Deleter::of_test(Some(on), FileSystem::of(kind), pid, first_s)
}

fn named(trace: &Trace, mounted: &[Place]) -> Vec<SenderWork> {
    let disks = Disks::of([(DRIVE, "sda")]);
    senders(trace, &disks, mounted, &BTreeMap::new(), &[])
}

/// The deletion that is blamed for discards sent to `to` until second 100.
fn blamed(
    reason: Reason,
    to: DeviceNumber,
    deleters: Vec<Deleter>,
    mounted: &[Place],
) -> Option<u32> {
    let mut trace = Trace::default();
    let mut sender = Sender::of_test(DRIVE, reason, 10, 1.0);
    (sender.on, sender.last_s) = (to, 100.0);
    trace.senders.push(sender);
    trace.deleters = deleters;
    let found = named(&trace, mounted);
    found[0].deletion.as_ref().map(|one| one.pid)
}

#[test]
fn a_deletion_on_another_btrfs_is_not_blamed() {
    let mounted = [
        on("/a", "btrfs", uuid("a"), &[A]),
        on("/b", "btrfs", uuid("b"), &[B]),
    ];
    let at = |identity: &str, first_s| deleter(uuid(identity), "btrfs", 7, first_s);
    let blamed = |to, one| blamed(Reason::BtrfsAsync, to, vec![one], &mounted);
    assert_eq!(blamed(A, at("b", 50.0)), None);
    assert_eq!(blamed(B, at("b", 50.0)), Some(7));
    // btrfs waits longer before it discards in the background.
    assert_eq!(blamed(B, at("b", 95.0)), None);
}

#[test]
fn who_freed_a_small_part_is_not_blamed_and_the_cleaners_subvolumes_are_named() {
    let mounted = [on("/a", "btrfs", uuid("a"), &[A])];
    let mut deleted = Deleted::default();
    deleted.add(&[281, 283], 90.0);
    deleted.add(&[283], 91.0);
    let known = BTreeMap::from([("/a".to_owned(), deleted.clone())]);
    let mut trace = Trace::default();
    // The cleaner's 400 MiB, and the 11 MiB of a commit beside it.
    for (pid, comm, discards) in [(9, "btrfs-cleaner", 400), (8, "trimbench", 11)] {
        let mut sender = Sender::of_test(DRIVE, Reason::BtrfsCommit, discards, 1.0);
        (sender.on, sender.pid, sender.comm) = (A, pid, comm.to_owned());
        trace.senders.push(sender);
    }
    let found = |trace: &Trace, known: &BTreeMap<String, Deleted>| {
        let found = senders(trace, &Disks::of([(DRIVE, "sda")]), &mounted, known, &[]);
        assert_eq!(found.len(), 2);
        found
    };
    for bytes in [None, Some(2 << 20), Some(100 << 20)] {
        trace.deleters.clear();
        if let Some(bytes) = bytes {
            let mut one = deleter(uuid("a"), "btrfs", 7, 50.0);
            one.bytes = bytes;
            trace.deleters.push(one);
        }
        for one in found(&trace, &known) {
            // 100 MiB may be the 11, and no part of the 400 that matters.
            let is_its = bytes == Some(100 << 20) && one.pid == Some(8);
            let blamed = one.deletion.map(|one| one.pid);
            assert_eq!(blamed, is_its.then_some(7));
            assert_eq!(one.deleted, (!is_its).then(|| deleted.clone()));
        }
    }
    trace.deleters.clear();
    let nothing = BTreeMap::from([("/a".to_owned(), Deleted::default())]);
    for unknown in [BTreeMap::new(), nothing] {
        assert!(
            found(&trace, &unknown)
                .iter()
                .all(|one| one.deleted.is_none())
        );
    }
}

#[test]
fn what_was_gone_beside_the_discards_of_a_commit_is_of_the_next() {
    let mounted = [on("/a", "btrfs", uuid("a"), &[A])];
    let mut deleted = Deleted::default();
    for (at_s, pending) in [(9.0, &[281, 283][..]), (10.1, &[283]), (12.0, &[])] {
        deleted.add(pending, at_s);
    }
    let known = BTreeMap::from([("/a".to_owned(), deleted)]);
    let named = |began_s, before_s| {
        let mut sender = Sender::of_test(DRIVE, Reason::BtrfsCommit, 9, 1.0);
        (sender.on, sender.pause.ended_s, sender.pause.last_ended_s) = (A, began_s, before_s);
        // The discards of the commit before took until then.
        sender.pause.began_s = before_s.map(|at_s| at_s + 0.5);
        let mut trace = Trace::default();
        trace.senders.push(sender);
        let found = senders(&trace, &Disks::of([(DRIVE, "sda")]), &mounted, &known, &[]);
        found[0].deleted.clone().map(|one| one.freed)
    };
    assert_eq!(named(10.0, Some(5.0)), None);
    assert_eq!(named(11.0, Some(10.0)), Some(vec![281]));
    assert_eq!(named(13.0, Some(11.0)), Some(vec![283]));
    assert_eq!(named(14.0, Some(13.0)), None);
}

#[test]
fn a_deletion_on_another_partition_of_the_drive_is_not_blamed() {
    let mounted = [
        on("/a", "xfs", Identity::Device(A), &[A]),
        on("/b", "xfs", Identity::Device(B), &[B]),
    ];
    let at = |number| vec![deleter(Identity::Device(number), "xfs", 7, 50.0)];
    assert_eq!(blamed(Reason::XfsLog, A, at(B), &mounted), None);
    assert_eq!(blamed(Reason::XfsLog, A, at(A), &mounted), Some(7));
    // A deletion that began after the last discard.
    let later = vec![deleter(Identity::Device(A), "xfs", 7, 100.5)];
    assert_eq!(blamed(Reason::XfsLog, A, later, &mounted), None);
    // The kernel forgot the mounts: an event of ext4 or XFS names the device itself.
    assert_eq!(blamed(Reason::XfsLog, A, at(A), &[]), Some(7));
}

#[test]
fn a_deletion_that_was_discarded_before_a_pause_is_not_blamed() {
    let mounted = [on("/a", "ext4", Identity::Device(A), &[A])];
    let one = |pid, last_s, bytes| {
        let mut one = deleter(Identity::Device(A), "ext4", pid, 50.0);
        (one.last_s, one.bytes) = (last_s, bytes);
        one
    };
    let blamed = |paused_s: Option<f64>, reason| {
        let mut trace = Trace::default();
        let mut sender = Sender::of_test(DRIVE, reason, 10, 1.0);
        (sender.on, sender.last_s, sender.pause.began_s) = (A, 100.0, paused_s);
        trace.senders.push(sender);
        // A large deletion, a later one, and one that frees next to nothing.
        trace.deleters = vec![
            one(7, 60.0, 1 << 30),
            one(8, 99.0, 8 << 20),
            one(9, 99.5, 4096),
        ];
        let found = named(&trace, &mounted);
        found[0].deletion.as_ref().map(|one| one.pid)
    };
    assert_eq!(blamed(Some(70.0), Reason::ExtCommit), Some(8));
    // Its own discards go on, or it went on after the pause.
    assert_eq!(blamed(None, Reason::ExtCommit), Some(7));
    assert_eq!(blamed(Some(55.0), Reason::ExtCommit), Some(7));
    // Only the tiny one deleted since: the space that is discarded is not its own.
    assert_eq!(blamed(Some(99.2), Reason::ExtCommit), Some(8));
}

/// A program that syncs has btrfs discard its log's old blocks, long after another has deleted.
#[test]
fn a_commit_that_frees_a_log_is_no_earlier_deletion() {
    let mounted = [on("/a", "btrfs", uuid("a"), &[A])];
    let blamed = |paused_s: Option<f64>, freed_mib: u64| {
        let mut trace = Trace::default();
        let mut sender = Sender::of_test(DRIVE, Reason::BtrfsCommit, 90, 1.0);
        (sender.on, sender.last_s, sender.pause.began_s) = (A, 100.0, paused_s);
        trace.senders.push(sender);
        let mut one = deleter(uuid("a"), "btrfs", 7, 80.0);
        (one.last_s, one.bytes) = (90.0, freed_mib << 20);
        trace.deleters = vec![one];
        let found = named(&trace, &mounted);
        found[0].deletion.as_ref().map(|one| one.pid)
    };
    assert_eq!(blamed(Some(95.0), 200), None);
    // It went on after the pause; or far more was discarded than it freed.
    assert_eq!(blamed(Some(85.0), 200), Some(7));
    assert_eq!(blamed(None, 40), None);
}

#[test]
fn each_burst_of_a_thread_has_its_own_deleter() {
    let mounted = [on("/a", "btrfs", uuid("a"), &[A])];
    let mut trace = Trace::default();
    for (pid, deleted_s) in [(7, 80.0), (8, 90.0), (8, 95.0)] {
        let mut sender = Sender::of_test(DRIVE, Reason::BtrfsCommit, 90, 1.0);
        (sender.on, sender.last_s) = (A, deleted_s + 1.0);
        sender.pause.began_s = Some(deleted_s - 1.0);
        trace.senders.push(sender);
        let mut one = deleter(uuid("a"), "btrfs", pid, deleted_s);
        (one.last_s, one.bytes) = (deleted_s, 90 << 20);
        trace.deleters.retain(|known| known.pid != pid);
        trace.deleters.push(one);
    }
    trace.deleters[1].first_s = 90.0;
    let found = named(&trace, &mounted);
    let found = found
        .iter()
        .map(|one| (one.deletion.as_ref().map(|one| one.pid), one.discards));
    assert_eq!(found.collect::<Vec<_>>(), [(Some(8), 180), (Some(7), 90)]);
}

#[test]
fn volumes_of_one_drive_are_told_apart_by_the_thread_or_not_at_all() {
    let volume = |minor| DeviceNumber { major: 253, minor };
    let place = |at, minor| {
        on(
            at,
            "ext4",
            Identity::Device(volume(minor)),
            &[volume(minor), A],
        )
    };
    let mounted = [place("/a", 0), place("/b", 1)];
    let both = || {
        let one = |minor, pid| deleter(Identity::Device(volume(minor)), "ext4", pid, 50.0);
        vec![one(0, 7), one(1, 8)]
    };
    assert_eq!(blamed(Reason::ExtCommit, A, both(), &mounted), None);
    let mut trace = Trace::default();
    let mut above = Sender::of_test(volume(1), Reason::ExtCommit, 10, 0.0);
    above.first_s = 60.0;
    let mut below = Sender::of_test(DRIVE, Reason::ExtCommit, 10, 1.0);
    below.on = A;
    trace.senders = vec![above, below];
    trace.deleters = both();
    let found = named(&trace, &mounted);
    assert!(
        found
            .iter()
            .all(|one| one.deletion.as_ref().unwrap().pid == 8),
        "{found:?}"
    );
}

#[test]
fn a_reason_is_not_inferred_for_a_device_with_another_file_system() {
    let mounted = |kind| [on("/a", kind, Identity::Device(A), &[A])];
    let reason = |kind| {
        let mut sender = Sender::of_test(DRIVE, Reason::ExtCommit, 10, 1.0);
        (sender.on, sender.inferred) = (A, true);
        super::reason(&sender, &mounted(kind))
    };
    assert_eq!(reason("btrfs"), Reason::Unknown);
    assert_eq!(reason("ext4"), Reason::ExtCommit);
    assert_eq!(reason("ext3"), Reason::ExtCommit);
}

#[test]
fn a_loop_devices_discards_are_inferred_where_no_file_system_has_workers() {
    let reason = |later| {
        let mut sender = Sender::of_test(DRIVE, Reason::Loop, 10, 1.0);
        sender.inferred = true;
        let mut below = on("/", "ext4", Identity::Device(DRIVE), &[DRIVE]);
        below.discards_later = later;
        let above = Place {
            tops: vec![B],
            ..on("/m", "btrfs", uuid("a"), &[B, DRIVE])
        };
        super::reason(&sender, &[below, above])
    };
    // ext4 without a journal discards within the call.
    assert_eq!(reason(false), Reason::Loop);
    assert_eq!(reason(true), Reason::Unknown);
}

#[test]
fn a_process_is_named_for_its_threads() {
    let mounted = [on("/a", "btrfs", uuid("a"), &[A])];
    let mut trace = Trace::default();
    for tid in [8, 9] {
        let mut sender = Sender::of_test(DRIVE, Reason::BtrfsCommit, 10, 1.0);
        (sender.on, sender.pid, sender.last_s) = (A, tid, 100.0);
        trace.senders.push(sender);
    }
    let mut deleter = deleter(uuid("a"), "btrfs", 9, 50.0);
    deleter.bytes = 100 << 20;
    trace.deleters.push(deleter);
    let threads = [8, 9].map(|tid| SampledThread {
        thread: linux::tasks::Thread { pid: 7, tid },
        comm: "trimbench".to_owned(),
        kernel: false,
    });
    let disks = Disks::of([(DRIVE, "sda")]);
    let found = senders(&trace, &disks, &mounted, &BTreeMap::new(), &threads);
    assert_eq!(found.len(), 1, "{found:?}");
    let deleter = found[0].deletion.as_ref().map(|one| one.pid);
    assert_eq!(
        (found[0].pid, found[0].discards, deleter),
        (Some(7), 20, Some(7))
    );
}
