//! Clients that wait for a server, and commands whose discards outlast them.

use super::*;
use crate::why::follow::Server;
use crate::why::trace::Deleter;
use storage::deletions::Identity;

const HELPER: u32 = 9;

/// `psql` (7) sleeps for ten seconds while its server (8) waits in the journal's commit, beside
/// discards on `sda`; its server's helper (9) waits as well if `helps`.
fn served(server_waits: bool, helps: bool) -> Observation {
    let mut seen = observation(Place::Journal, &["jbd2_log_wait_commit"], Some(DISK));
    discard(&mut seen, 40, 1);
    let process = |pid, comm: &str| SampledThread {
        thread: Thread { pid, tid: pid },
        comm: comm.to_owned(),
        kernel: false,
    };
    seen.sampled.threads = vec![
        process(7, "psql"),
        process(8, "postgres"),
        process(HELPER, "postgres"),
    ];
    let waiting = std::mem::take(&mut seen.sampled.samples);
    for sample in waiting {
        for (thread, waits) in [(0, false), (1, server_waits), (2, helps)] {
            let place = if waits { Place::Journal } else { Place::Sleep };
            let below = sample.below.filter(|_| waits);
            seen.sampled.samples.push(Sample {
                thread,
                place,
                below,
                stack: usize::from(waits),
                ..sample.clone()
            });
        }
    }
    seen.servers = vec![
        Server {
            pid: 8,
            helper: false,
        },
        Server {
            pid: HELPER,
            helper: true,
        },
    ];
    seen
}

#[test]
fn a_client_that_sleeps_waits_for_its_server() {
    let seen = served(true, false);
    let why = explain(&seen, &Subject::Family(7), Some("psql -c drop"));
    let start = "psql -c drop (pid 7) waited for postgres (pid 8), which waited 6.0 s of 10.0 s";
    assert!(why.sentence.starts_with(start), "{}", why.sentence);
    assert_eq!(why.verdict, Verdict::Trim);
    assert_eq!(why.client.as_ref().map(|one| one.pid), Some(7));
    assert!((why.without_trim_s.unwrap() - 4.0).abs() < 0.1);
    // One process is watched by its number.
    let why = explain(&seen, &Subject::Process(7), None);
    assert!(
        why.sentence
            .starts_with("psql (pid 7) waited for postgres (pid 8)"),
        "{}",
        why.sentence
    );
}

#[test]
fn a_servers_helper_counts_where_the_server_itself_sleeps() {
    let why = explain(&served(false, true), &Subject::Family(7), Some("psql"));
    assert!(
        why.sentence.contains("waited for postgres (pid 9)"),
        "{}",
        why.sentence
    );
    let why = explain(&served(true, true), &Subject::Family(7), Some("psql"));
    assert!(
        why.sentence.contains("waited for postgres (pid 8)"),
        "{}",
        why.sentence
    );
    // It computes, for most of the time that the client sleeps, or for some of it.
    let computing = |one_in: usize| {
        let mut seen = served(false, false);
        let of_server = seen
            .sampled
            .samples
            .iter_mut()
            .filter(|one| one.thread == 1);
        let some = of_server.enumerate().filter(|(i, _)| i % 3 < one_in);
        some.for_each(|(_, sample)| sample.place = Place::Running);
        explain(&seen, &Subject::Family(7), Some("psql -c count"))
    };
    let why = computing(2);
    let start = "Not TRIM: psql -c count (pid 7) waited for postgres (pid 8), which computed";
    assert!(why.sentence.starts_with(start), "{}", why.sentence);
    assert_eq!(why.client.as_ref().map(|one| one.pid), Some(7));
    assert_eq!(computing(1).client, None);
    // Nobody waits: the client is the one to speak of.
    let why = explain(&served(false, false), &Subject::Family(7), Some("psql"));
    assert_eq!((why.verdict, why.client), (Verdict::Nothing, None));
    assert!(
        why.sentence
            .starts_with("psql (pid 7) did not wait for storage"),
        "{}",
        why.sentence
    );
}

/// An XFS at `/data` on `sda`, where this process has deleted.
fn deleted_by(seen: &mut Observation, pid: u32) {
    seen.mounted = vec![Below {
        at: "/data".to_owned(),
        file_system: Some(FileSystem::Xfs),
        tops: vec![DISK],
        devices: vec![DISK],
        exact: vec![DISK],
        identity: Some(Identity::Device(DISK)),
        discards_later: true,
    }];
    let on = Some(Identity::Device(DISK));
    seen.trace.deleters = vec![Deleter::of_test(on, FileSystem::Xfs, pid, 105.0)];
}

#[test]
fn discards_that_outlast_a_command_are_named() {
    let mut seen = observation(Place::Running, &[], None);
    discard(&mut seen, 1, 1);
    deleted_by(&mut seen, 7);
    seen.trace.in_flight.insert(DISK, (12, 3 << 30));
    // Somebody else's drive.
    seen.trace.in_flight.insert(OTHER, (40, 8 << 30));
    seen.devices.insert(OTHER, seen.devices[&DISK].clone());
    let end = |seen: &Observation, subject: Subject| {
        let sentence = explain(seen, &subject, Some("rm big")).sentence;
        let from = sentence.find(" At the end");
        from.map(|at| sentence[at..].to_owned()).unwrap_or_default()
    };
    let expected =
        " At the end 12 discards of 3.0 GiB were still in flight on sda, so they slow down";
    let text = end(&seen, Subject::Family(7));
    assert!(text.starts_with(expected), "{text}");
    let text = end(&seen, Subject::All);
    assert!(text.contains("on sdb"), "{text}");
    // A child that was not seen deleted there.
    deleted_by(&mut seen, 8);
    seen.trace.in_flight.insert(DISK, (1, 1 << 20));
    let expected = " At the end 1 discard of 1.0 MiB was still in flight on sda, so it slows down";
    let text = end(&seen, Subject::Family(7));
    assert!(text.starts_with(expected), "{text}");
    deleted_by(&mut seen, 6);
    assert_eq!(end(&seen, Subject::Family(7)), "");
}

#[test]
fn discards_that_xfs_sends_after_the_command_are_named() {
    let mut seen = observation(Place::Running, &[], None);
    deleted_by(&mut seen, 7);
    let sentence = |seen: &Observation| explain(seen, &Subject::Family(7), Some("rm")).sentence;
    let late = "The discards of what was deleted on /data are still to come: XFS sends them";
    assert!(sentence(&seen).contains(late), "{}", sentence(&seen));
    // They came; another process deleted; the mount sends none.
    let mut sent = Sender::of_test(DISK, Reason::XfsLog, 3, 0.1);
    sent.last_s = 106.0;
    seen.trace.senders = vec![sent];
    assert!(!sentence(&seen).contains(late));
    // As much as was freed.
    (seen.trace.senders[0].last_s, seen.trace.senders[0].bytes) = (104.0, 1 << 30);
    assert!(!sentence(&seen).contains(late));
    seen.trace.senders[0].bytes -= 1;
    assert!(sentence(&seen).contains(late));
    seen.trace.senders.clear();
    // A child that no look met, and a process that was there before the command.
    seen.trace.deleters[0].pid = 99;
    assert!(sentence(&seen).contains(late));
    seen.trace.deleters[0].pid = 6;
    assert!(!sentence(&seen).contains(late));
    // Where the command's own processes delete elsewhere, a stranger is none of them.
    let mut own = seen.trace.deleters[0].clone();
    (own.pid, own.on) = (7, None);
    seen.trace.deleters[0].pid = 99;
    seen.trace.deleters.push(own);
    assert!(!sentence(&seen).contains(late));
    seen.trace.deleters.truncate(1);
    seen.trace.deleters[0].pid = 7;
    seen.mounted[0].discards_later = false;
    assert!(!sentence(&seen).contains(late));
}

#[test]
fn ext4_that_discards_within_the_call_sends_none_later() {
    let mut seen = observation(Place::Running, &[], None);
    deleted_by(&mut seen, 7);
    seen.mounted[0].file_system = Some(FileSystem::Ext);
    seen.trace.deleters[0].system = FileSystem::Ext;
    let sentence = |seen: &Observation| explain(seen, &Subject::Family(7), Some("rm")).sentence;
    let late = "still to come: ext4 sends them after its journal's next commit";
    assert!(sentence(&seen).contains(late), "{}", sentence(&seen));
    // The event of the deletion follows that of its last discard.
    let mut sent = Sender::of_test(DISK, Reason::ExtCall, 3, 0.1);
    sent.last_s = 104.9;
    seen.trace.senders = vec![sent];
    assert!(!sentence(&seen).contains(late), "{}", sentence(&seen));
}
