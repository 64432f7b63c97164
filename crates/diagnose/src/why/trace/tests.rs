//! Lines of a trace, and what they become.

use super::*;

const LOOP0: DeviceNumber = DeviceNumber { major: 7, minor: 0 };

/// Two discards of the 2013 text's second `sync`, on Linux 6.18, with another thread's events
/// between an event and its stack.
const TEXT: &str = "\
            sync-2041    [001] .....  10.000000: block_bio_queue: 7,0 DS 43040 + 32 [sync]
              rm-2000    [000] .....  10.000100: ext4_free_blocks: dev 254,0 ino 5 mode 0100644 block 9 count 256 flags
            sync-2041    [001] .....  10.000200: <stack trace>
 => submit_bio_wait
 => blkdev_issue_discard
 => btrfs_issue_discard
 => btrfs_finish_extent_commit
    kworker/1:1H-44      [001] .....  10.000400: block_rq_issue: 7,0 DS 16384 () 43040 + 32 be,0,4 [kworker/1:1H]
     ksoftirqd/1-22      [001] ..s..  10.042400: block_rq_complete: 7,0 DS () 43040 + 32 be,0,4 [0]
            sync-2041    [001] .....  10.043000: block_bio_queue: 7,0 DS 59424 + 32 [sync]
    kworker/1:1H-44      [001] .....  10.043000: block_rq_issue: 7,0 DS 16384 () 59424 + 32 be,0,4 [kworker/1:1H]
    kworker/0:0H-10      [000] .....  10.044000: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [kworker/0:0H]
            swap-1       [001] ..s3.  10.045000: block_rq_complete: 7,0 FF () 18446744073709551615 + 0 none,0,0 [0]
CPU:1 [LOST 3 EVENTS]
";

#[test]
fn discards_are_joined_with_senders_stacks_and_times() {
    let disks = Disks::of([(LOOP0, "loop0")]);
    let mut trace = Trace::default();
    TEXT.lines().for_each(|line| trace.add_line(line, &disks));
    trace.name(&|tid| (tid == 2000).then(|| "trimbench".to_owned()));
    trace.finish(10.1);
    assert_eq!(trace.deleters[0].comm, "trimbench");
    assert_eq!(trace.lost, 3);
    let [sender] = trace.senders.as_slice() else {
        panic!("{:?}", trace.senders);
    };
    assert_eq!((sender.pid, sender.comm.as_str()), (2041, "sync"));
    assert_eq!(sender.reason, Reason::BtrfsCommit);
    assert_eq!(
        (sender.discards, sender.completed, sender.bytes),
        (2, 1, 32768)
    );
    assert!((sender.in_drive_s - 0.042).abs() < 1e-9);
    let spans = &trace.discards[&LOOP0];
    assert!(
        (spans.covered(10.0, 10.1) - 0.099).abs() < 1e-6,
        "{spans:?}"
    );
    assert_eq!(
        (trace.deleters[0].pid, trace.deleters[0].bytes),
        (2000, 1 << 20)
    );
}

#[test]
fn a_discard_is_in_flight_until_its_end_is_seen_or_lost() {
    let disks = Disks::of([(LOOP0, "loop0")]);
    let mut trace = Trace::default();
    let mut in_flight = |line: &str, now_s| {
        trace.add_line(line, &disks);
        trace.is_discarding(now_s)
    };
    let lines: Vec<&str> = TEXT
        .lines()
        .filter(|line| line.contains("block_"))
        .collect();
    assert!(!in_flight(lines[0], 10.0));
    assert!(in_flight(lines[1], 10.01));
    assert!(!in_flight(lines[2], 10.05));
    assert!(!in_flight(lines[3], 10.05));
    assert!(in_flight(lines[4], 10.06));
    assert!(!in_flight("CPU:1 [LOST 3 EVENTS]", 21.0));
}

#[test]
fn drained_pieces_add_up_to_the_whole() {
    let disks = Disks::of([(LOOP0, "loop0")]);
    let mut trace = Trace::default();
    let (mut discards, mut bytes, mut completed, mut covered_s) = (0, 0, 0, 0.0);
    let mut sum = Trace::default();
    let mut last_s = 10.0;
    for (line, now_s) in TEXT.lines().zip(1..) {
        trace.add_line(line, &disks);
        // Each line's own time, and a little more.
        let now_s = 10.0 + f64::from(now_s) / 200.0;
        let piece = trace.drain(now_s);
        discards += piece.senders.iter().map(|one| one.discards).sum::<u64>();
        bytes += piece.senders.iter().map(|one| one.bytes).sum::<u64>();
        completed += piece.senders.iter().map(|one| one.completed).sum::<u64>();
        let spans = piece.discards.get(&LOOP0).cloned().unwrap_or_default();
        covered_s += spans.covered(last_s, now_s);
        last_s = now_s;
        sum.add(&piece);
    }
    let [sender] = sum.senders.as_slice() else {
        panic!("{sum:?}");
    };
    assert_eq!((sender.discards, sender.reason), (2, Reason::BtrfsCommit));
    assert_eq!((sum.deleters[0].bytes, sum.lost), (1 << 20, 3));
    assert_eq!((discards, bytes, completed), (2, 32768, 1));
    // From the first request's issue on one is in flight nearly all the time.
    assert!(covered_s > 0.0 && covered_s <= last_s - 10.0, "{covered_s}");
    assert_eq!(trace.senders[0].reason, Reason::BtrfsCommit);
    // Idle senders go, and one with a discard in flight stays.
    for pid in 0..200 {
        let line = format!("x-{pid} [000] .....  11.0: block_bio_queue: 7,0 DS 8 + 8 [x]");
        trace.add_line(&line, &disks);
    }
    trace.drain(12.0);
    assert!(trace.senders.len() <= 2, "{}", trace.senders.len());
    assert!(trace.drain(900.0).deleters.is_empty());
}

#[test]
fn a_pause_is_a_time_without_a_discard_in_flight() {
    let disks = Disks::of([(LOOP0, "loop0")]);
    let mut trace = Trace::default();
    let mut discard = |from: &str, to: &str| {
        for (at, event) in [
            (from, "block_bio_queue: 7,0 DS 8 + 8 [x]"),
            (from, "block_rq_issue: 7,0 DS 4096 () 8 + 8 be,0,4 [x]"),
            (to, "block_rq_complete: 7,0 DS () 8 + 8 be,0,4 [0]"),
        ] {
            trace.add_line(&format!("x-9 [000] ..... {at}: {event}"), &disks);
        }
        trace.drain(20.0).senders[0].pause.began_s
    };
    assert_eq!(discard("10.0", "11.0"), None);
    // One follows at once.
    assert_eq!(discard("11.1", "11.5"), None);
    assert_eq!(discard("13.0", "13.1"), Some(11.5));
}

#[test]
fn a_discard_that_was_merged_ends_with_its_request() {
    let disks = Disks::of([(LOOP0, "loop0")]);
    let mut trace = Trace::default();
    for line in [
        "10.0: block_bio_queue: 7,0 DS 8 + 8 [x]",
        "10.1: block_bio_queue: 7,0 DS 16 + 8 [x]",
        "10.1: block_bio_queue: 7,0 DS 24 + 8 [x]",
        "10.2: block_rq_issue: 7,0 DS 8192 () 8 + 16 be,0,4 [x]",
        "10.3: block_rq_complete: 7,0 DS () 8 + 16 be,0,4 [0]",
    ] {
        trace.add_line(&format!("x-9 [000] ..... {line}"), &disks);
    }
    trace.finish(11.0);
    // The third is of no request yet.
    let left: Vec<_> = trace.in_flight.values().copied().collect();
    assert_eq!(left, [(1, 4096)]);
    assert_eq!(trace.senders[0].discards, 3);
}

#[test]
fn a_threads_own_discards_last_from_the_queue_to_their_end() {
    let disks = Disks::of([(LOOP0, "loop0")]);
    let mut trace = Trace::default();
    let (mut own, mut last_s) = (Spans::default(), 10.0);
    // Also where they are taken out while one is in flight.
    for (line, now_s) in TEXT.lines().zip(1..) {
        trace.add_line(line, &disks);
        last_s = 10.0 + f64::from(now_s) / 200.0;
        let piece = trace.drain(last_s);
        assert!(piece.own.keys().all(|thread| *thread == 2041), "{piece:?}");
        own = own.with(piece.own.get(&2041).unwrap_or(&Spans::default()));
    }
    // The second is still in flight.
    assert!(
        (own.covered(9.0, 11.0) - (last_s - 10.0 - 0.0006)).abs() < 1e-6,
        "{own:?}"
    );
    // An observation's end ends them as well.
    let mut trace = Trace::default();
    TEXT.lines().for_each(|line| trace.add_line(line, &disks));
    trace.finish(last_s);
    assert_eq!(trace.own[&2041], own);
}

const BTRFS: DeviceNumber = DeviceNumber { major: 7, minor: 1 };

/// One worker serves ext4 on loop0, then btrfs on loop1; the stack of the second comes late or not.
fn worker(stack: &[&str]) -> String {
    let queued = |at: &str, device: &str| {
        format!("kworker/u8:1-44 [001] ..... {at}: block_bio_queue: {device} DS 8 + 8 [kworker]\n")
    };
    let mut text = queued("10.0", "7,0");
    text += &queued("10.1", "7,1");
    text += "kworker/u8:1-44 [001] ..... 10.2: <stack trace>\n";
    for frame in stack {
        text += &format!(" => {frame}\n");
    }
    text + &queued("10.3", "7,0")
}

#[test]
fn a_workers_stack_explains_the_device_of_its_own_discard_alone() {
    let disks = Disks::of([(LOOP0, "loop0"), (BTRFS, "loop1")]);
    let mut trace = Trace::default();
    let text = worker(&["blkdev_issue_discard", "btrfs_discard_workfn"]);
    text.lines().for_each(|line| trace.add_line(line, &disks));
    trace.finish(10.5);
    let reasons = |on: DeviceNumber| -> Vec<(Reason, u64)> {
        let all = trace.senders.iter().filter(|one| one.on == on);
        all.map(|one| (one.reason, one.discards)).collect()
    };
    assert_eq!(reasons(BTRFS), [(Reason::BtrfsAsync, 1)]);
    assert_eq!(reasons(LOOP0), [(Reason::Unknown, 2)]);
}
