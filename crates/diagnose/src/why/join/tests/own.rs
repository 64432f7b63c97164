//! Discards that a program sends within its own calls, which are traced, and what a plain user sees.

use std::collections::BTreeMap;

use super::*;
use crate::why::Deleted;
use crate::why::report::Stretch;

/// Discards of `rm` (7) from second 4 to 6, within its calls; it computes at each look.
fn in_calls() -> Observation {
    let mut seen = observation(Place::Running, &[], None);
    let mut sender = Sender::of_test(DISK, Reason::ExtCall, 100, 1.9);
    (sender.pid, sender.comm) = (7, "rm".to_owned());
    seen.trace.senders = vec![sender];
    seen.trace.own.entry(7).or_default().add(104.0, 106.0);
    seen
}

#[test]
fn own_discards_that_no_look_met_are_waits() {
    let why = explain(&in_calls(), &Subject::Family(7), Some("rm -r d"));
    assert_eq!(why.verdict, Verdict::Trim);
    let text = "rm -r d (pid 7) waited 2.0 s of 10.0 s: ext4, which has no journal, sent 100";
    assert!(why.sentence.starts_with(text), "{}", why.sentence);
    assert!(why.sentence.ends_with("Without TRIM: 8.0 s."));
    let at = |index: usize| why.timeline[index].in_discards_s;
    assert!(at(3) == 0.0 && at(4) > 0.99 && at(5) > 0.99 && at(6) < 1e-6);
}

#[test]
fn short_own_discards_of_a_command_are_never_not_trim() {
    let mut seen = in_calls();
    // 5 ms of 100 ms, and three looks.
    seen.trace.own.clear();
    seen.trace.own.entry(7).or_default().add(100.01, 100.015);
    seen.to_s = 100.1;
    seen.sampled.samples.truncate(3);
    for (look, i) in seen.sampled.samples.iter_mut().zip([0.03, 0.06, 0.09]) {
        (look.at_s, look.stands_for_s) = (100.0 + i, 0.03);
    }
    let why = explain(&seen, &Subject::Family(7), Some("rm"));
    assert_eq!(why.verdict, Verdict::Trim);
    let text = "rm (pid 7) waited 5.0 ms of 90.0 ms: ext4";
    assert!(why.sentence.starts_with(text), "{}", why.sentence);
}

#[test]
fn looks_in_own_discards_count_no_longer_than_these_lasted() {
    let mut seen = in_calls();
    seen.sampled.samples.retain(|one| one.at_s > 104.0);
    for look in &mut seen.sampled.samples {
        look.place = Place::OwnDiscard;
    }
    let victim = &told(&seen).victims[0];
    // The events of those after second 6 are missing, and looks stand in for them.
    assert!((victim.discards_s - 6.0).abs() < 0.05, "{victim:?}");
    seen.sampled.samples.retain(|one| one.at_s < 106.001);
    seen.trace.own.clear();
    let spans = seen.trace.own.entry(7).or_default();
    (0..100).for_each(|i| spans.add(104.0 + f64::from(i) / 50.0, 104.01 + f64::from(i) / 50.0));
    let victim = &told(&seen).victims[0];
    assert!((victim.discards_s - 1.0).abs() < 0.02, "{victim:?}");
}

#[test]
fn a_program_that_nobody_looked_at_waited_in_its_discards() {
    let mut seen = in_calls();
    seen.sampled = Sampled::default();
    let why = explain(&seen, &Subject::All, None);
    let text = "rm (pid 7) waited 2.0 s of 2.0 s: ext4, which has no journal, sent 100 discards";
    assert!(why.sentence.starts_with(text), "{}", why.sentence);
    assert!(why.timeline[4].in_discards_s > 0.99);
    // A worker's discards keep no program waiting.
    seen.trace.senders[0].comm = "kworker/0:1".to_owned();
    let why = explain(&seen, &Subject::All, None);
    assert!(
        why.sentence.starts_with("Nothing waited"),
        "{}",
        why.sentence
    );
}

#[test]
fn short_own_discards_do_not_hide_who_waited_longer() {
    let mut seen = observation(Place::Io, &["io_schedule"], Some(OTHER));
    seen.trace = in_calls().trace;
    seen.trace.senders[0].pid = 9;
    let mut spans = Spans::default();
    spans.add(104.0, 104.001);
    seen.trace.own = [(9, spans)].into();
    let why = explain(&seen, &Subject::All, None);
    let pids: Vec<u32> = why.victims.iter().map(|one| one.pid).collect();
    assert_eq!(pids, [7, 9]);
}

#[test]
fn who_did_not_wait_for_its_own_discards_has_a_timeline() {
    let mut seen = in_calls();
    seen.trace.own.clear();
    let mut other = Sender::of_test(DISK, Reason::ExtCall, 100, 1.9);
    other.pid = 8;
    seen.trace.senders.push(other);
    let why = explain(&seen, &Subject::Family(7), Some("rm"));
    let in_discards = |one: &Stretch| one.in_discards_s + one.behind_discards_s;
    assert!(why.timeline.iter().all(|one| in_discards(one) == 0.0));
}

#[test]
fn few_looks_make_rough_figures() {
    let mut seen = observation(Place::Io, &["io_schedule"], Some(OTHER));
    seen.sampled.samples.truncate(9);
    seen.sampled.samples[8].place = Place::Running;
    let text = told(&seen).sentence;
    assert!(text.contains("about 0.16 s of 0.18 s"), "{text}");
    seen.sampled.samples[0].place = Place::Running;
    let text = told(&seen).sentence;
    assert!(text.contains("about 100 ms of 0.18 s"), "{text}");
    let mut seen = observation(Place::Io, &["io_schedule"], Some(OTHER));
    seen.sampled.samples.truncate(10);
    let text = told(&seen).sentence;
    assert!(text.contains(", 0.20 s of 0.20 s"), "{text}");
}

#[test]
fn a_plain_user_is_never_told_that_discards_in_flight_are_innocent() {
    let mut seen = observation(Place::Io, &[], Some(DISK));
    // What reads take beside them tells nothing of this wait.
    discard(&mut seen, 1, 1);
    seen.trace.senders.clear();
    seen.sampled.stacks = vec![Vec::new()];
    seen.sampled
        .samples
        .iter_mut()
        .for_each(|one| one.stack = 0);
    assert_eq!(told(&seen).verdict, Verdict::NotTrim);
    seen.trace.statistics_only = true;
    let why = told(&seen);
    assert_eq!(why.verdict, Verdict::Unclear);
    let text = "Unclear: vim (pid 7) waited 10.0 s of 10.0 s in fsync while discards were in \
                flight on sda for 6.0 s; stacks and senders need root.";
    assert_eq!(why.sentence, text);
    // Another device's.
    seen.sampled.places[0].devices = vec![OTHER];
    assert_eq!(told(&seen).verdict, Verdict::NotTrim);
    // Few looks at a short command may have missed it.
    seen.sampled.samples.truncate(3);
    for look in &mut seen.sampled.samples {
        (look.place, look.below) = (Place::Running, None);
    }
    assert!(told(&seen).sentence.contains("and had 3 looks at it while"));
    // A plain user sees one function of a stack.
    let mut seen = observation(Place::Io, &["submit_bio_wait"], Some(DISK));
    discard(&mut seen, 1, 1);
    seen.trace.statistics_only = true;
    seen.sampled.without_stacks = true;
    assert_eq!(told(&seen).verdict, Verdict::Unclear);
}

#[test]
fn the_work_of_btrfs_is_named_with_the_deleted_subvolumes_where_they_are_known() {
    let text = |seen: &Observation| told(seen).sentence;
    for place in [Place::Quotas, Place::Cleaner] {
        let mut seen = observation(place, &[], Some(OTHER));
        let unknown = format!("(in fsync). {} kept it waiting for 10.0 s.", place.words());
        assert!(text(&seen).contains(&unknown), "{}", text(&seen));
        assert_eq!(told(&seen).victims[0].waits[0].deleted, None);
        let mut deleted = Deleted::default();
        deleted.add(&[257, 258, 259, 260], 1.0);
        deleted.add(&[258, 259, 260], 2.0);
        let known = BTreeMap::from([("/data".to_owned(), deleted.clone())]);
        seen.sampled.deleted = known;
        let words = "kept it waiting for 10.0 s on /data: the cleaner freed subvolume 257 (3 more \
                     pending). There were no discards";
        assert!(text(&seen).contains(words), "{}", text(&seen));
        assert_eq!(told(&seen).victims[0].waits[0].deleted, Some(deleted));
        // Whatever else waits there doesn't wait for them.
        seen.sampled
            .samples
            .iter_mut()
            .for_each(|one| one.place = Place::Commit);
        assert_eq!(told(&seen).victims[0].waits[0].deleted, None);
        assert!(!text(&seen).contains("the cleaner"));
    }
}

#[test]
fn a_tenth_of_the_wait_for_btrfs_work_is_named_and_less_is_not() {
    for (looks, named) in [(40, false), (60, true)] {
        let mut seen = observation(Place::Commit, &[], Some(OTHER));
        for (number, one) in seen.sampled.samples.iter_mut().take(looks).enumerate() {
            one.place = [Place::Cleaner, Place::Quotas][number % 2];
        }
        let text = told(&seen).sentence;
        let words = "btrfs-cleaner and the accounting of quotas kept it waiting for 1.2 s.";
        assert_eq!(text.contains(words), named, "{text}");
    }
}

#[test]
fn of_a_machine_the_kernels_threads_are_left_out_and_a_thread_has_its_process_name() {
    let mut seen = in_calls();
    let sender = |tid, comm: &str, reason| {
        let mut sender = Sender::of_test(DISK, reason, 100, 1.9);
        (sender.pid, sender.comm) = (tid, comm.to_owned());
        sender
    };
    seen.trace.senders = vec![
        sender(9, "btrfs-cleaner", Reason::BtrfsCommit),
        sender(10, "btrfs-transacti", Reason::BtrfsCommit),
        sender(8, "reclaimer", Reason::ExtCall),
    ];
    for tid in [8, 9, 10] {
        seen.trace.own.entry(tid).or_default().add(104.0, 106.0);
    }
    // A thread of vim's.
    seen.sampled.threads.push(SampledThread {
        thread: Thread { pid: 7, tid: 8 },
        comm: "reclaimer".to_owned(),
        kernel: false,
    });
    let why = explain(&seen, &Subject::All, None);
    let names: Vec<&str> = why.victims.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["vim"]);
}
