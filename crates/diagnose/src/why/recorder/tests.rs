use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::super::frames::{Place, Reason};
use super::super::sampler::{Sample, Sampled, SampledThread};
use super::super::spans::Spans;
use super::super::trace::Sender;
use super::super::{Subject, Verdict, Why, explain};
use super::recording::{Head, Recording, RecordingError};
use super::*;
use linux::tasks::Thread;

const SDA: DeviceNumber = DeviceNumber { major: 8, minor: 0 };

fn sample(at_s: f64, thread: usize, place: Place) -> Sample {
    Sample {
        at_s,
        stands_for_s: 0.5,
        thread,
        place,
        stack: 0,
        call: None,
        below: None,
        nowhere: false,
    }
}

fn looked(pid: u32, comm: &str) -> SampledThread {
    SampledThread {
        thread: Thread { pid, tid: pid },
        comm: comm.to_owned(),
        kernel: false,
    }
}

/// One thread sleeps, and another waits for two of five seconds.
fn looks(from_s: f64) -> Looks {
    let mut seen = Sampled {
        stacks: vec![Vec::new()],
        threads: vec![looked(1, "sleeper"), looked(2, "vim")],
        ..Sampled::default()
    };
    for half in 1..=10 {
        let at_s = from_s + 0.5 * f64::from(half);
        seen.samples.push(sample(at_s, 0, Place::Sleep));
        let waits = half > 4 && half <= 8;
        let place = if waits {
            Place::OwnDiscard
        } else {
            Place::Sleep
        };
        seen.samples.push(sample(at_s, 1, place));
    }
    Looks::new((from_s, from_s + 5.0), seen)
}

/// A second full of discards of a tenth of a millisecond.
fn work(from_s: f64) -> Work {
    let mut spans = Spans::default();
    for one in 0..1000 {
        let at_s = from_s + f64::from(one) / 1000.0;
        spans.add(at_s, at_s + 1e-4);
    }
    spans.join();
    let mut trace = Trace::default();
    trace.senders = vec![Sender::of_test(SDA, Reason::Trim, 1000, 0.1)];
    trace.discards = [(SDA, spans)].into();
    Work::new((from_s, from_s + 1.0), trace, Vec::new())
}

fn head(now_s: f64, complete_s: f64) -> Head {
    Head {
        schema: recording::SCHEMA.to_owned(),
        version: record::form::VERSION.to_owned(),
        origin: Default::default(),
        unix_s: 1_000_000.0 + now_s,
        now_s,
        complete_s,
        disks: Disks::of([(SDA, "sda")]).list(),
        mounted: Vec::new(),
        cpu_share: 0.001,
        period_s: 0.25,
        missing: Vec::new(),
    }
}

fn written(ring: &Ring, now_s: f64) -> Vec<u8> {
    let mut text = Vec::new();
    let head = head(now_s, ring.complete_s());
    recording::write(&head, ring.since(0.0), &mut text).unwrap();
    text
}

#[test]
fn threads_that_only_sleep_are_left_out_and_times_stay() {
    let looks = looks(100.0);
    assert_eq!(looks.sampled.threads, [looked(2, "vim")]);
    // Asleep, four looks at a wait, asleep.
    assert_eq!(looks.sampled.samples.len(), 6);
    let all = looks.sampled.samples.iter();
    assert_eq!(all.map(|one| one.stands_for_s).sum::<f64>(), 5.0);
}

#[test]
fn a_recording_gives_the_report_of_the_time_that_is_asked_for() {
    let mut ring = Ring::new(900.0, 100.0);
    for second in 0..10 {
        ring.push(Piece::Work(work(100.0 + f64::from(second))));
    }
    ring.push(Piece::Looks(looks(100.0)));
    ring.push(Piece::Looks(looks(105.0)));
    let text = written(&ring, 110.0);
    let discarding_s = |why: &Why| -> f64 { why.timeline.iter().map(|one| one.discarding_s).sum() };
    let why = |from, to, pid| {
        let recording = Recording::read(text.as_slice()).unwrap();
        assert_eq!(recording.begins_unix_s(), 1_000_100.0);
        let seen = recording.observed(from, to, pid);
        explain(&seen, &Subject::All, None)
    };
    let all = why(1_000_100.0, 1_000_110.0, None);
    assert_eq!(
        (all.verdict, all.victims.len()),
        (Verdict::Trim, 1),
        "{all:#?}"
    );
    assert!(all.sentence.starts_with("vim"), "{}", all.sentence);
    assert_eq!((all.victims[0].blocked_s, all.seconds), (4.0, 10.0));
    let sender = &all.senders[0];
    assert_eq!((sender.discards, sender.device.as_str()), (10_000, "sda"));
    assert!((discarding_s(&all) - 1.0).abs() < 1e-6, "{all:#?}");
    let part = why(1_000_103.0, 1_000_104.0, Some(2));
    assert_eq!(part.victims[0].discards_s, 1.0, "{part:#?}");
    assert!((discarding_s(&part) - 0.1).abs() < 1e-6, "{part:#?}");
    assert!(why(1_000_100.0, 1_000_110.0, Some(1)).victims.is_empty());
}

#[test]
fn old_pieces_go_and_memory_is_bounded() {
    let mut ring = Ring::new(900.0, 0.0);
    for second in 0..2000 {
        ring.push(Piece::Work(work(f64::from(second))));
    }
    assert_eq!(ring.complete_s(), 1100.0);
    assert_eq!(ring.since(0.0).count(), 900);
    assert_eq!(ring.since(1500.0).count(), 500);
    // Ten thousand threads that are blocked all the time.
    let mut seen = Sampled {
        stacks: vec![Vec::new()],
        threads: (0..10_000).map(|pid| looked(pid, "x")).collect(),
        ..Sampled::default()
    };
    let all = (0..10_000).map(|thread| sample(2001.0, thread, Place::Io));
    seen.samples = all.collect();
    for piece in 0..100 {
        let from_s = 2000.0 + f64::from(piece);
        let looks = Looks::new((from_s, from_s + 1.0), seen.clone());
        ring.push(Piece::Looks(looks));
    }
    let (kept, complete_s) = (ring.since(0.0).count(), ring.complete_s());
    assert!(kept < 10 && complete_s > 2090.0, "{kept} {complete_s}");
}

#[test]
fn a_broken_recording_is_refused() {
    let mut ring = Ring::new(900.0, 100.0);
    ring.push(Piece::Looks(looks(100.0)));
    let text = String::from_utf8(written(&ring, 110.0)).unwrap();
    let read = |text: &str| Recording::read(text.as_bytes()).unwrap_err();
    let cut = text.rsplit_once("\"end\"").unwrap().0;
    assert!(matches!(read(cut), RecordingError::Ends));
    assert!(matches!(read(""), RecordingError::Ends));
    let odd = text.replace("recording/1", "recording/7");
    assert!(read(&odd).to_string().contains("recording/7"));
    let beyond = text.replace("\"thread\":0", "\"thread\":7");
    assert!(matches!(read(&beyond), RecordingError::Line(2, _)));
    assert!(matches!(read("{}\n"), RecordingError::Line(1, _)));
}

#[test]
fn a_second_recorder_is_refused_and_an_absent_one_named() {
    let folder = tempfile::tempdir().unwrap();
    let place: PathBuf = folder.path().join("run");
    let absent = server::request(&place).unwrap_err().to_string();
    assert!(absent.contains("no recorder runs"), "{absent}");
    let first = server::Server::open(&place).unwrap();
    let second = server::Server::open(&place).unwrap_err().to_string();
    let own = format!("process {}", std::process::id());
    assert!(second.contains(&own), "{second}");
    drop(first);
    let shared = folder.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
    let refused = server::Server::open(&shared).unwrap_err().to_string();
    assert!(refused.contains("this user's alone"), "{refused}");
    // A program that another test starts shares the lock until its exec.
    let until = Instant::now() + Duration::from_secs(10);
    while let Err(error) = server::Server::open(&place) {
        assert!(Instant::now() < until, "{error}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Found by the fuzz test: frames and reasons of a recording reached the terminal as they were.
#[test]
fn nothing_of_a_recording_acts_on_the_terminal() {
    let mut ring = Ring::new(900.0, 100.0);
    ring.push(Piece::Looks(looks(100.0)));
    let recording = Recording::read(written(&ring, 110.0).as_slice()).unwrap();
    let seen = recording.observed(1_000_100.0, 1_000_110.0, None);
    let mut why = explain(&seen, &Subject::All, None);
    why.missing.push(crate::why::Missing {
        what: "stacks\u{1b}[2J".to_owned(),
        why: "\u{9b}31m\u{202e}".to_owned(),
    });
    let look = crate::Look {
        width: 80,
        unicode: true,
        colour: false,
    };
    let page = crate::why::text::page(&why, look);
    assert!(page.contains("stacks\u{fffd}[2J"), "{page}");
    assert!(!page.contains(|c| c != '\n' && record::units::names::is_harmful(c)));
}

#[test]
fn the_recordings_of_earlier_versions_are_read_and_that_of_a_later_one_is_refused() {
    for text in testkit::formats::all("recording") {
        let recording = Recording::read(&text[..]).unwrap();
        let begins = recording.begins_unix_s();
        let seen = recording.observed(begins, begins + 1e6, None);
        assert!(!seen.sampled.samples.is_empty());
        let newer = Recording::read(&testkit::formats::newer(&text)[..]);
        let why = newer.unwrap_err().to_string();
        assert!(why.contains("trimbench 99.0.0 wrote it"), "{why}");
    }
}
