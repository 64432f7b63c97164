//! Conclusions from made-up observations.

use super::*;
use crate::why::frames::Reason;
use crate::why::observe::Did;
use crate::why::sampler::{Sampled, SampledThread};
use crate::why::trace::{Sender, Trace};
use linux::tasks::{Call, Thread};
use record::DeviceInterval;
use storage::FileSystem;
use storage::disks::Disks;

mod clients;
mod own;

const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 0 };
const OTHER: DeviceNumber = DeviceNumber {
    major: 8,
    minor: 16,
};

/// A process `vim` for ten seconds, 50 looks a second, each in this place.
fn observation(place: Place, stack: &[&str], on: Option<DeviceNumber>) -> Observation {
    let below = on.map(|number| Below {
        at: "/data".to_owned(),
        file_system: Some(FileSystem::of("ext4")),
        tops: vec![number],
        devices: vec![number],
        exact: vec![number],
        identity: None,
        discards_later: false,
    });
    let samples = (1..=500).map(|i| Sample {
        at_s: 100.0 + f64::from(i) / 50.0,
        stands_for_s: 0.02,
        thread: 0,
        place,
        stack: 1,
        call: Some(Call {
            number: 74,
            first: 3,
            second: 0,
        }),
        below: below.as_ref().map(|_| 0),
        nowhere: false,
    });
    Observation {
        from_s: 100.0,
        to_s: 110.0,
        sampled: Sampled {
            samples: samples.collect(),
            threads: vec![SampledThread {
                thread: Thread { pid: 7, tid: 7 },
                comm: "vim".to_owned(),
                kernel: false,
            }],
            stacks: vec![
                Vec::new(),
                stack.iter().map(|one| (*one).to_owned()).collect(),
            ],
            places: below.into_iter().collect(),
            ..Sampled::default()
        },
        disks: Disks::of([(DISK, "sda"), (OTHER, "sdb")]),
        ..Observation::default()
    }
}

/// Discards of 40 ms back to back on `sda`, from second 2 to 8, and how long reads wait beside
/// them and without them, in ms.
fn discard(observation: &mut Observation, beside_ms: u64, without_ms: u64) {
    let mut trace = Trace::default();
    let spans = trace.discards.entry(DISK).or_default();
    spans.add(102.0, 108.0);
    spans.join();
    trace
        .senders
        .push(Sender::of_test(DISK, Reason::ExtCommit, 150, 6.0));
    observation.trace = trace;
    let did = |i: u32| {
        let discards = if (20..80).contains(&i) { 3 } else { 0 };
        let ms = if discards > 0 { beside_ms } else { without_ms };
        Did {
            at_s: 100.0 + f64::from(i + 1) / 10.0,
            seconds: 0.1,
            work: DeviceInterval {
                reads: 10,
                read_ms: 10 * ms,
                discards,
                discard_ms: discards * 40,
                ..DeviceInterval::default()
            },
            flushes: (0, 0),
        }
    };
    observation
        .devices
        .insert(DISK, (0..100).map(did).collect());
}

fn told(observation: &Observation) -> Why {
    let why = explain(observation, &Subject::Process(7), None);
    println!("{}", why.sentence);
    why
}

#[test]
fn of_a_machine_who_waits_for_a_deletion_comes_before_the_deleter() {
    let mut seen = observation(Place::Journal, &["jbd2_log_wait_commit"], Some(DISK));
    discard(&mut seen, 40, 1);
    let deleter = SampledThread {
        thread: Thread { pid: 8, tid: 9 },
        comm: "rm".to_owned(),
        kernel: false,
    };
    seen.sampled.threads.push(deleter);
    let sender = &mut seen.trace.senders[0];
    (sender.pid, sender.comm, sender.reason) = (9, "rm".to_owned(), Reason::ExtCall);
    let own = seen.sampled.samples.iter().map(|one| Sample {
        thread: 1,
        place: Place::OwnDiscard,
        ..one.clone()
    });
    let own: Vec<Sample> = own.collect();
    seen.sampled.samples.truncate(200);
    seen.sampled.samples.extend(own);
    let why = explain(&seen, &Subject::All, None);
    let pids: Vec<u32> = why.victims.iter().map(|one| one.pid).collect();
    assert_eq!(pids, [7, 8], "{}", why.sentence);
    assert!(why.victims[1].discards_s > why.victims[0].discards_s);
    // The process is named, not its thread. A machine has no time without TRIM.
    assert_eq!((why.senders[0].pid, why.without_trim_s), (Some(8), None));
}

#[test]
fn a_short_stall_between_long_sleeps_is_one() {
    let mut seen = observation(Place::Journal, &["jbd2_log_wait_commit"], Some(DISK));
    discard(&mut seen, 40, 1);
    // For 0.4 s beside discards and for 0.6 s without; else it slept.
    let mut at_s = 103.0;
    seen.sampled.samples.truncate(80);
    for (i, sample) in seen.sampled.samples.iter_mut().enumerate() {
        sample.stands_for_s = if i < 50 { 0.02 } else { 1.0 };
        if i == 20 {
            at_s = 108.5;
        }
        at_s += sample.stands_for_s;
        sample.at_s = at_s;
        if i >= 50 {
            (sample.place, sample.call, sample.stack) = (Place::Sleep, None, 0);
        }
    }
    seen.to_s = at_s;
    assert_eq!(told(&seen).verdict, Verdict::PartlyTrim);
}

#[test]
fn a_commit_on_a_drive_that_discards_is_behind_discards() {
    let mut seen = observation(Place::Journal, &["jbd2_log_wait_commit"], Some(DISK));
    discard(&mut seen, 40, 1);
    let why = told(&seen);
    assert_eq!(why.verdict, Verdict::Trim);
    assert_eq!(why.main_cause, Some(Cause::BehindDiscards));
    let victim = &why.victims[0];
    assert!((victim.seconds - 10.0).abs() < 0.1 && (victim.discards_s - 6.0).abs() < 0.1);
    assert!((why.without_trim_s.unwrap() - 4.0).abs() < 0.1);
    for part in [
        "vim (pid 7) waited 6.0 s of 10.0 s",
        "behind discards",
        "ext4 sent 150 discards of 40.0 ms each to sda after its journal's commit",
        "Without TRIM: 4.0 s.",
    ] {
        assert!(why.sentence.contains(part), "{part:?} in {}", why.sentence);
    }
    assert_eq!(why.timeline.len(), 10);
    assert!(why.timeline[1].behind_discards_s < 0.1);
    assert!(why.timeline[4].behind_discards_s > 0.9);
}

#[test]
fn a_short_observation_has_short_stretches() {
    let mut seen = observation(Place::Journal, &["jbd2_log_wait_commit"], Some(DISK));
    discard(&mut seen, 40, 1);
    seen.period_s = 0.02;
    seen.to_s = 102.55;
    seen.sampled.samples.retain(|one| one.at_s <= seen.to_s);
    let why = told(&seen);
    assert_eq!(why.timeline.len(), 13, "{:?}", why.timeline);
    let [before, last] = [9, 12].map(|index| &why.timeline[index]);
    assert!((before.behind_discards_s, before.length_s) == (0.0, 0.2));
    assert!((before.blocked_s - 0.2).abs() < 1e-6, "{before:?}");
    assert!((last.length_s - 0.15).abs() < 1e-6, "{last:?}");
    assert!((last.behind_discards_s - 0.14).abs() < 1e-6, "{last:?}");
    let page = page(&why);
    for part in ["Each 0.20 s:", "  2.4 s │"] {
        assert!(page.contains(part), "{part:?} in {page}");
    }
    // A recorder's looks are too far apart for that.
    seen.period_s = 0.25;
    assert_eq!(told(&seen).timeline.len(), 3);
}

#[test]
fn a_drive_that_serves_reads_beside_discards_is_not_blamed() {
    let mut seen = observation(Place::Io, &["io_schedule"], Some(DISK));
    discard(&mut seen, 1, 1);
    let why = told(&seen);
    assert_eq!(
        (why.verdict, why.main_cause),
        (Verdict::NotTrim, Some(Cause::Io))
    );
    assert!(
        why.sentence.contains("slowed nothing down"),
        "{}",
        why.sentence
    );
}

#[test]
fn discards_of_another_drive_are_not_blamed() {
    let mut seen = observation(Place::Io, &["io_schedule"], Some(OTHER));
    discard(&mut seen, 40, 1);
    let why = told(&seen);
    assert_eq!(
        (why.verdict, why.main_cause),
        (Verdict::NotTrim, Some(Cause::Io))
    );
    let text = "There were no discards on sdb.";
    assert!(why.sentence.ends_with(text), "{}", why.sentence);
    assert!(why.timeline.iter().all(|one| one.discarding_s == 0.0));
}

#[test]
fn other_waits_are_named_even_beside_discards() {
    for (place, stack, cause) in [
        (Place::Frozen, "percpu_rwsem_wait", Cause::Frozen),
        (Place::Running, "", Cause::Cpu),
    ] {
        let mut seen = observation(place, &[stack], Some(DISK));
        discard(&mut seen, 40, 1);
        let why = told(&seen);
        assert_eq!(
            (why.verdict, why.main_cause),
            (Verdict::NotTrim, Some(cause))
        );
    }
    let why = told(&observation(
        Place::Writeback,
        &["folio_wait_writeback"],
        Some(DISK),
    ));
    assert_eq!(why.main_cause, Some(Cause::Writeback));
    assert!(
        why.sentence.starts_with("Not TRIM: vim"),
        "{}",
        why.sentence
    );
    let why = told(&observation(Place::Sleep, &[], None));
    assert_eq!(why.verdict, Verdict::Nothing);
}

#[test]
fn a_device_that_completes_nothing_hangs() {
    let mut seen = observation(Place::Io, &["io_schedule"], Some(DISK));
    let did = |i: u32| Did {
        at_s: 100.0 + f64::from(i + 1) / 10.0,
        seconds: 0.1,
        work: DeviceInterval {
            in_flight: 1,
            ..DeviceInterval::default()
        },
        flushes: (0, 0),
    };
    seen.devices.insert(DISK, (0..100).map(did).collect());
    assert_eq!(told(&seen).main_cause, Some(Cause::Hung));
}

/// The report as a terminal shows it.
fn page(why: &Why) -> String {
    let look = crate::Look {
        width: 100,
        unicode: true,
        colour: false,
    };
    crate::why::text::page(why, look)
}

#[test]
fn nothing_seen_is_nothing_said() {
    let why = told(&Observation::default());
    assert_eq!(why.verdict, Verdict::Nothing);
    assert!(why.sentence.starts_with("Nothing waited"));
    let text = crate::why::text::page(
        &why,
        crate::Look {
            width: 80,
            unicode: false,
            colour: false,
        },
    );
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn a_report_conforms_to_its_schema() {
    let mut seen = observation(Place::Journal, &["jbd2_log_wait_commit"], Some(DISK));
    discard(&mut seen, 40, 1);
    let validator = testkit::schema::open(crate::why::JSON_SCHEMA);
    let value = serde_json::to_value(told(&seen)).unwrap();
    let faults: Vec<String> = validator
        .iter_errors(&value)
        .map(|f| f.to_string())
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
    let folded = crate::why::folded(&seen, &Subject::Process(7));
    assert_eq!(folded, "vim;fsync;jbd2_log_wait_commit 10000000\n");
}

#[test]
fn a_commands_own_discards_explain_its_wait_beside_longer_ones_of_others() {
    let stack = ["submit_bio_wait", "btrfs_discard_extent"];
    let mut seen = observation(Place::OwnDiscard, &stack, None);
    let second = Thread { pid: 44, tid: 44 };
    seen.sampled.threads[0].thread = second;
    seen.trace.senders = vec![
        Sender::of_test(DISK, Reason::ExtCommit, 160, 9.0),
        Sender::of_test(OTHER, Reason::BtrfsCommit, 40, 8.0),
    ];
    seen.trace.senders[0].pid = 9;
    let why = explain(&seen, &Subject::Family(7), Some("sh -c sync"));
    let expected = "its btrfs commit sent 40 discards of 200 ms each to sdb";
    assert!(why.sentence.contains(expected), "{}", why.sentence);
}

#[test]
fn discards_of_another_deleter_are_not_the_commands_own() {
    let mut seen = observation(Place::OwnDiscard, &["submit_bio_wait"], Some(DISK));
    let sender = |pid, seconds| {
        let mut one = Sender::of_test(DISK, Reason::ExtCall, 100, seconds);
        (one.pid, one.comm) = (pid, "rm".to_owned());
        one
    };
    // Each waited ten seconds in calls of its own, and the drive took them in turns.
    seen.trace.senders = vec![sender(7, 4.0), sender(8, 6.0)];
    let why = told(&seen);
    let victim = &why.victims[0];
    let sums = [Cause::InDiscards, Cause::BehindDiscards].map(|cause| victim.seconds_of(cause));
    assert!(
        (sums[0] - 4.0).abs() < 1e-6 && (sums[1] - 6.0).abs() < 1e-6,
        "{sums:?}"
    );
    let stretch = &why.timeline[5];
    assert!(
        (stretch.behind_discards_s - 0.6).abs() < 1e-6,
        "{stretch:?}"
    );
    assert!(
        why.sentence.contains("within a call of rm (pid 8)"),
        "{}",
        why.sentence
    );
    seen.trace.senders = vec![sender(7, 6.0), sender(8, 4.0)];
    let text = told(&seen).sentence;
    assert!(text.contains("sent 100 discards of 60.0 ms each"), "{text}");
    assert!(
        text.contains("For 4.0 s of it, it waited behind discards that it did not send."),
        "{text}"
    );
    // Its own queue fills the rest.
    seen.trace.senders[1].in_drive_s = 0.1;
    let why = told(&seen);
    assert!((why.victims[0].seconds_of(Cause::InDiscards) - 10.0).abs() < 1e-6);
    assert!(
        why.sentence
            .contains("sent 100 discards of 60.0 ms each to sda within the call"),
        "{}",
        why.sentence
    );
}

#[test]
fn a_discard_of_its_own_elsewhere_does_not_explain_a_long_wait() {
    let mut seen = observation(Place::OwnDiscard, &["blkdev_issue_discard"], None);
    let mut own = Sender::of_test(OTHER, Reason::ExtCall, 1, 0.0002);
    own.pid = 7;
    let commit = Sender::of_test(DISK, Reason::BtrfsCommit, 160, 8.0);
    seen.trace = Trace::default();
    seen.trace.senders = vec![own.clone(), commit];
    let why = told(&seen);
    assert!(why.sentence.contains("to sda"), "{}", why.sentence);
    own.in_drive_s = 4.0;
    seen.trace.senders[0] = own;
    let why = told(&seen);
    assert!(why.sentence.contains("to sdb"), "{}", why.sentence);
}

/// A wait whose place isn't known, in a function of ext4, on a machine with these mounts. Discards
/// are in flight on `sda` from second 2 to 8, and on `sdb` if `both`.
fn somewhere(both: bool) -> Observation {
    let mut seen = observation(Place::Commit, &["ext4_evict_inode"], None);
    discard(&mut seen, 40, 1);
    let mounted = [(DISK, "/"), (OTHER, "/data")];
    seen.mounted = mounted
        .map(|(number, at)| Below {
            at: at.to_owned(),
            file_system: Some(FileSystem::of("ext4")),
            tops: vec![number],
            devices: vec![number],
            exact: vec![number],
            identity: None,
            discards_later: false,
        })
        .to_vec();
    if both {
        let spans = seen.trace.discards[&DISK].clone();
        seen.trace.discards.insert(OTHER, spans);
        let did = seen.devices[&DISK].clone();
        seen.devices.insert(OTHER, did);
        let sender = Sender::of_test(OTHER, Reason::ExtCommit, 99, 6.0);
        seen.trace.senders.push(sender);
    }
    seen
}

#[test]
fn a_wait_at_an_unknown_place_blames_none_of_several_drives() {
    let why = told(&somewhere(true));
    let text = "behind discards of sda or sdb; on which of these drives it waited is not known.";
    assert!(why.sentence.contains(text), "{}", why.sentence);
    assert_eq!(why.victims[0].waits[0].suspects, ["sda", "sdb"]);
    // Only one of them discards.
    let why = told(&somewhere(false));
    assert!(why.sentence.contains("to sda"), "{}", why.sentence);
    // One discards for the other: they are one stack.
    let mut seen = somewhere(true);
    seen.trace.senders[1].reason = Reason::Layer;
    let why = told(&seen);
    assert!(why.sentence.contains("to sda"), "{}", why.sentence);
}

#[test]
fn a_wait_at_an_unknown_place_is_not_behind_discards_of_a_drive_that_is_not_watched() {
    let mut seen = somewhere(true);
    seen.trace.discards.remove(&DISK);
    let other = seen.devices.remove(&OTHER).unwrap();
    let discards_s = |seen: &Observation| waits(seen, &Subject::All)[0].discards_s;
    assert_eq!(discards_s(&seen), 0.0);
    seen.devices.insert(OTHER, other);
    assert!(discards_s(&seen) > 5.0);
}

#[test]
fn a_look_that_stands_for_an_earlier_time_is_not_behind_discards_that_ended_then() {
    let mut seen = observation(Place::Io, &["io_schedule"], Some(DISK));
    discard(&mut seen, 40, 1);
    // The discards end with second 8.
    (seen.from_s, seen.to_s) = (108.0, 109.0);
    seen.sampled.samples.truncate(1);
    let look = &mut seen.sampled.samples[0];
    (look.at_s, look.stands_for_s) = (108.2, 1.0);
    let victim = &waits(&seen, &Subject::All)[0];
    assert_eq!((victim.blocked_s, victim.discards_s), (1.0, 0.0));
}

/// A look is taken because discards have begun, and stands for the second before it, too.
#[test]
fn a_look_in_the_first_discards_is_behind_them_no_longer_than_they_last() {
    let mut seen = observation(Place::Io, &["io_schedule"], Some(DISK));
    (seen.from_s, seen.to_s) = (108.0, 109.0);
    seen.sampled.samples.truncate(1);
    let look = &mut seen.sampled.samples[0];
    (look.at_s, look.stands_for_s) = (108.2, 1.0);
    let spans = seen.trace.discards.entry(DISK).or_default();
    *spans = Spans::default();
    spans.add(108.15, 108.4);
    let victim = &waits(&seen, &Subject::All)[0];
    assert!((victim.discards_s - 0.05).abs() < 1e-9, "{victim:?}");
    assert_eq!((victim.blocked_s, victim.looks), (1.0, 1));
    // A second look that stands for little makes it no surer.
    let mut again = seen.sampled.samples[0].clone();
    (again.at_s, again.stands_for_s) = (108.3, 0.1);
    seen.sampled.samples.push(again);
    assert_eq!(waits(&seen, &Subject::All)[0].looks, 1);
}

#[test]
fn a_wait_at_a_known_place_does_not_blame_senders_elsewhere() {
    let mut seen = observation(Place::Journal, &["jbd2_log_wait_commit"], Some(DISK));
    discard(&mut seen, 40, 1);
    seen.trace.senders = vec![Sender::of_test(OTHER, Reason::ExtCommit, 150, 6.0)];
    let why = told(&seen);
    assert!(!why.sentence.contains("to sdb"), "{}", why.sentence);
}

#[test]
fn a_lock_that_another_program_holds_is_not_discards_fault() {
    let mut seen = observation(Place::Lock, &["locks_lock_inode_wait"], Some(DISK));
    discard(&mut seen, 40, 1);
    let all = (0..1000).map(|number| Call {
        number,
        first: 3,
        second: 0,
    });
    let flock = all.into_iter().find(|call| call.name() == Some("flock"));
    seen.sampled.samples.iter_mut().for_each(|s| s.call = flock);
    let why = told(&seen);
    assert_eq!(
        (why.verdict, why.main_cause),
        (Verdict::NotTrim, Some(Cause::Lock))
    );
    // On a whole machine some program always waits for another.
    let why = explain(&seen, &Subject::All, None);
    assert!(why.victims.is_empty(), "{}", why.sentence);
    assert!(crate::why::folded(&seen, &Subject::All).is_empty());
}

#[test]
fn an_idle_queue_of_a_whole_machine_is_no_io_and_one_behind_discards_is_found() {
    let mut seen = observation(Place::Completions, &["read_events"], Some(DISK));
    assert!(waits(&seen, &Subject::All).is_empty());
    let named = &waits(&seen, &Subject::Process(7))[0];
    assert_eq!(named.seconds_of(Cause::Io), named.seconds);
    discard(&mut seen, 40, 1);
    let victim = &waits(&seen, &Subject::All)[0];
    assert!(victim.discards_s > 5.0, "{victim:?}");
    assert_eq!(victim.blocked_s, victim.discards_s);
}

#[test]
fn trimbench_does_not_head_the_report_of_a_machine() {
    let mut seen = observation(Place::Io, &["io_schedule"], Some(DISK));
    seen.sampled.threads[0].comm = "trimbench".to_owned();
    seen.sampled.threads.push(SampledThread {
        thread: Thread { pid: 8, tid: 8 },
        comm: "vim".to_owned(),
        kernel: false,
    });
    let shorter = seen.sampled.samples[..100].to_vec();
    let shorter = shorter.into_iter().map(|one| Sample { thread: 1, ..one });
    seen.sampled.samples.extend(shorter);
    let why = explain(&seen, &Subject::All, None);
    let names: Vec<&str> = why.victims.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["vim", "trimbench"], "{}", why.sentence);
}

#[test]
fn a_command_that_is_over_at_once_was_not_seen_to_wait() {
    let mut seen = observation(Place::Running, &[], None);
    seen.sampled.samples.truncate(1);
    seen.sampled.samples[0].stands_for_s = 0.0;
    let why = explain(&seen, &Subject::Family(7), Some("true"));
    assert!(
        why.sentence.contains("trimbench had 1 look at it"),
        "{}",
        why.sentence
    );
}

#[test]
fn a_look_that_came_too_late_to_place_a_wait_blames_no_drive() {
    let mut seen = somewhere(false);
    seen.sampled
        .samples
        .iter_mut()
        .for_each(|s| s.nowhere = true);
    let why = told(&seen);
    assert_eq!(
        (why.verdict, why.main_cause),
        (Verdict::NotTrim, Some(Cause::Commit))
    );
}

#[test]
fn looks_that_are_far_apart_make_rough_figures_and_their_spacing_is_reported() {
    let mut seen = observation(Place::Io, &["io_schedule"], Some(DISK));
    assert!((told(&seen).sampling.spacing_s.unwrap() - 0.02).abs() < 1e-9);
    // One look each 0.7 s, of which two meet a wait.
    let samples = seen.sampled.samples.into_iter();
    seen.sampled.samples = samples.skip(34).step_by(35).collect();
    for (number, one) in seen.sampled.samples.iter_mut().enumerate() {
        one.stands_for_s = 0.7;
        if ![4, 9].contains(&number) {
            (one.place, one.stack, one.below) = (Place::Sleep, 0, None);
        }
    }
    (seen.sampled.turns, seen.sampled.partial_turns) = (500, 500);
    let why = told(&seen);
    assert!(why.victims[0].looks as f64 >= FEW_LOOKS);
    let text = "its own reads and writes, about 1 s of 9.8 s";
    assert!(why.sentence.contains(text), "{}", why.sentence);
    let page = page(&why);
    assert!(
        page.contains("each thread every 0.70 s on average"),
        "{page}"
    );
}
