//! The rules of the drive, one by one, and what holds whatever it is given.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use proptest::prelude::*;
use ssd::extents::Extents;
use ssd::{Card, Command, Completion, Drive, Refused, Time, profiles};

const MIB: u64 = 1 << 20;
const CAPACITY: u64 = 1 << 30;

/// Figures that are easy to reckon with: S = 1 ms + 10 µs/MiB, reads 100 µs,
/// writes 50 µs, flushes 200 µs; no jitter.
fn card(changes: &[&str]) -> Card {
    let plain = [
        "a=1ms",
        "b=10us/MiB",
        "discard.jitter=0",
        "read.latency=100us",
        "read.parallelism=4",
        "read.jitter=0",
        "write.latency=50us",
        "write.per_mib=0us/MiB",
        "write.parallelism=4",
        "flush.latency=200us",
    ];
    let shipped = profiles::by_name("crucial-t500-2tb").unwrap().clone();
    plain
        .iter()
        .chain(changes)
        .fold(shipped, |card, change| card.with(change).unwrap())
}

fn drive(changes: &[&str]) -> Drive {
    let mut drive = Drive::new(card(changes).figures().clone(), CAPACITY, 1);
    drive.premap(0..CAPACITY);
    drive
}

fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1000)
}

fn read() -> Command {
    Command::Read(0..4096)
}

fn write() -> Command {
    Command::Write(0..4096)
}

fn discard(range: Range<u64>) -> Command {
    Command::Discard(vec![range])
}

/// All completions until nothing is in flight.
fn finish(drive: &mut Drive) -> Vec<Completion> {
    let mut done = Vec::new();
    while let Some(next) = drive.next_event() {
        drive.advance(next, &mut done);
    }
    assert_eq!(drive.in_flight(), 0);
    done
}

/// When each command starts and completes, in µs, in the order of submission.
fn times(drive: &mut Drive, commands: &[(u64, Command)]) -> Vec<(u64, u64)> {
    for (when, command) in commands {
        drive.submit(at(*when), command.clone()).unwrap();
    }
    let mut done = finish(drive);
    done.sort_by_key(|c| c.id);
    let micros = |time: Time| time.as_nanos() / 1000;
    done.iter()
        .map(|c| (micros(c.started), micros(c.completed)))
        .collect()
}

#[test]
fn reads_beyond_the_parallelism_wait() {
    let commands: Vec<_> = (0..6).map(|_| (0, read())).collect();
    let mut expected = vec![(0, 100); 4];
    expected.extend([(100, 200); 2]);
    assert_eq!(times(&mut drive(&[]), &commands), expected);
}

#[test]
fn an_exclusive_discard_lets_finish_what_has_begun_and_starts_nothing() {
    let commands = [
        (0, read()),
        (50, discard(0..100 * MIB)),
        (60, read()),
        (60, write()),
        (60, Command::Flush),
    ];
    // 1 ms + 100 × 10 µs, beside the first read; then all that waits.
    let expected = [
        (0, 100),
        (50, 2050),
        (2050, 2150),
        (2050, 2100),
        (2100, 2300),
    ];
    assert_eq!(times(&mut drive(&[]), &commands), expected);
}

#[test]
fn an_exclusive_discard_waits_for_those_before_it_to_begin() {
    let mut commands: Vec<_> = (0..5).map(|_| (0, read())).collect();
    commands.push((10, discard(0..0)));
    commands.push((20, read()));
    // This one finds a free slot, but overtakes no discard.
    commands.push((20, write()));
    let times = times(&mut drive(&[]), &commands);
    let expected = [(100, 200), (100, 1100), (1100, 1200), (1100, 1150)];
    assert_eq!(times[4..], expected);
}

#[test]
fn a_non_ncq_trim_waits_until_nothing_is_under_way() {
    let commands = [
        (0, read()),
        (50, discard(0..100 * MIB)),
        (60, read()),
        (70, Command::Flush),
        (80, read()),
    ];
    // The flush is no NCQ command either.
    let expected = [
        (0, 100),
        (100, 2100),
        (2100, 2200),
        (2200, 2400),
        (2400, 2500),
    ];
    assert_eq!(
        times(&mut drive(&["queue=non-ncq-drain"]), &commands),
        expected
    );
}

#[test]
fn phi_is_the_share_that_blocks() {
    let commands = [(0, discard(0..100 * MIB)), (10, read()), (500, read())];
    let expected = [(0, 2000), (400, 500), (500, 600)];
    assert_eq!(times(&mut drive(&["phi=20%"]), &commands), expected);
    // A second discard waits for the first, and reads don't wait for it before it starts.
    let commands = [
        (0, discard(0..100 * MIB)),
        (10, discard(0..0)),
        (20, read()),
        (2100, read()),
    ];
    let expected = [(0, 2000), (2000, 3000), (400, 500), (2200, 2300)];
    assert_eq!(times(&mut drive(&["phi=20%"]), &commands), expected);
}

#[test]
fn parallel_discards_run_beside_each_other() {
    let commands: Vec<_> = (0..3)
        .map(|_| (0, discard(0..0)))
        .chain([(10, read())])
        .collect();
    let mut drive = drive(&["queue=parallel 2", "phi=0"]);
    assert_eq!(
        times(&mut drive, &commands),
        [(0, 1000), (0, 1000), (1000, 2000), (10, 110)]
    );
}

#[test]
fn what_ends_at_an_instant_has_ended_before_anything_begins_in_it() {
    let changes = [
        "queue=parallel 1",
        "phi=50%",
        "read.latency=500us",
        "read.parallelism=1",
    ];
    let commands = [
        (0, discard(0..0)),
        (0, read()),
        (0, read()),
        (0, discard(0..0)),
    ];
    // At 1000 µs the older read begins before the discard that would block it.
    let expected = [(0, 1000), (500, 1000), (1000, 1500), (1000, 2000)];
    assert_eq!(times(&mut drive(&changes), &commands), expected);
}

#[test]
fn a_flush_waits_for_the_writes_before_it_only() {
    let mut commands: Vec<_> = (0..5).map(|_| (0, write())).collect();
    commands.push((10, Command::Flush));
    commands.push((20, write()));
    let times = times(&mut drive(&[]), &commands);
    assert_eq!(times[4..], [(50, 100), (100, 300), (50, 100)]);
}

#[test]
fn reads_are_slower_while_writes_are_moved_in_the_background() {
    let changes = [
        "fold.per_mib=1ms/MiB",
        "fold.longest=3ms",
        "fold.read_share=25%",
    ];
    let large = Command::Write(0..2 * MIB);
    let commands = [
        (0, read()),
        (0, large.clone()),
        (1000, read()),
        (2100, read()),
    ];
    // 2 ms of work from 50 µs on.
    let expected = [(0, 100), (0, 50), (1000, 1400), (2100, 2200)];
    assert_eq!(times(&mut drive(&changes), &commands), expected);
    // Of 4 ms, no more than 3 are put off.
    let commands = [
        (0, large.clone()),
        (0, large),
        (3000, read()),
        (3050, read()),
    ];
    let expected = [(0, 50), (0, 50), (3000, 3400), (3050, 3150)];
    assert_eq!(times(&mut drive(&changes), &commands), expected);
    assert_eq!(times(&mut drive(&[]), &commands)[2], (3000, 3100));
}

#[test]
fn only_mapped_space_costs_b() {
    let changes = ["b=100us/MiB", "b_unmapped=1us/MiB"];
    let mut drive = drive(&changes);
    let first = times(&mut drive, &[(0, discard(0..10 * MIB))]);
    assert_eq!(first, [(0, 2000)]);
    // Half of it holds nothing now.
    let again = times(&mut drive, &[(5000, discard(0..20 * MIB))]);
    assert_eq!(again, [(5000, 7010)]);
    let mapped = drive.mapped().clone();
    assert_eq!(mapped, Extents::from(20 * MIB..CAPACITY));
    // A write maps it again.
    times(&mut drive, &[(9000, Command::Write(0..1))]);
    assert_eq!(drive.mapped().first(), Some(0..4096));
}

#[test]
fn what_is_not_a_whole_granule_or_too_short_stays() {
    let mut drive = drive(&["granule=64k", "smallest=96k"]);
    let command = Command::Discard(vec![1000..300_000, 400_000..450_000, 786_432..917_504]);
    drive.submit(at(0), command).unwrap();
    let done = finish(&mut drive);
    assert_eq!(done[0].trimmed, [65_536..262_144, 786_432..917_504]);
    let stats = drive.stats();
    assert_eq!(stats.bytes_discarded, 299_000 + 50_000 + 131_072);
    assert_eq!(stats.bytes_unmapped, 196_608 + 131_072);
    assert_eq!(stats.bytes_lost_to_rounding, 299_000 - 196_608);
    assert_eq!(stats.bytes_ignored, 50_000);
    assert!(drive.mapped().contains(64_000) && !drive.mapped().contains(65_536));
}

#[test]
fn a_discard_shows_from_its_completion_on() {
    let mut drive = drive(&[]);
    drive.submit(at(0), discard(0..MIB)).unwrap();
    drive.advance(at(1009), &mut Vec::new());
    assert!(drive.mapped().covers(0..MIB));
    drive.advance(at(1010), &mut Vec::new());
    assert_eq!(drive.mapped().overlap(0..MIB), 0);
}

#[test]
fn what_the_drive_does_not_take_is_refused_and_changes_nothing() {
    let mut drive = drive(&["max_ranges=2", "max_bytes=10M"]);
    let too_many = Command::Discard(vec![0..1, 2..3, 4..5]);
    let refused = drive.submit(at(0), too_many).unwrap_err();
    assert_eq!(refused, Refused::TooManyRanges { given: 3, most: 2 });
    let refused = drive.submit(at(0), discard(0..11 * MIB)).unwrap_err();
    assert!(matches!(refused, Refused::TooLarge { .. }));
    let beyond = Command::Read(CAPACITY - 1..CAPACITY + 1);
    assert!(matches!(
        drive.submit(at(0), beyond),
        Err(Refused::OutOfRange { .. })
    ));
    let backwards = discard(Range { start: 5, end: 4 });
    assert!(matches!(
        drive.submit(at(0), backwards),
        Err(Refused::OutOfRange { .. })
    ));
    assert_eq!((drive.in_flight(), drive.next_event()), (0, None));

    let no_trim = profiles::by_name("no-trim").unwrap();
    let mut drive = Drive::new(no_trim.figures().clone(), CAPACITY, 1);
    assert_eq!(drive.submit(at(0), discard(0..0)), Err(Refused::NoDiscards));
}

#[test]
fn figures_change_while_it_works() {
    let mut drive = drive(&[]);
    drive.submit(at(0), discard(0..0)).unwrap();
    drive.submit(at(0), discard(0..0)).unwrap();
    drive.set_figures(at(500), card(&["a=5ms"]).figures().clone());
    let done = finish(&mut drive);
    assert_eq!(done[0].completed, at(1000), "it had begun before");
    assert_eq!(done[1].completed, at(6000));

    // Told to take no discards, it is quickly done with those that wait.
    drive.submit(at(7000), discard(0..0)).unwrap();
    drive.submit(at(7000), discard(0..MIB)).unwrap();
    drive.set_figures(at(7001), card(&["supported=false"]).figures().clone());
    assert_eq!(finish(&mut drive).len(), 2);
}

#[test]
fn figures_beyond_all_measure_overflow_nothing() {
    let longest = "a=18446744073709551615ns";
    let nines = format!("b={}s/KiB", "9".repeat(290));
    let longest_read = longest.replace('a', "read.latency");
    let longest_fold = longest.replace('a', "fold.longest");
    let changes = [
        &[
            longest,
            &nines,
            "per_range=18446744073709551615ns",
            "discard.jitter=33%",
        ][..],
        &[longest, "queue=parallel 4294967295", "phi=99%"],
        &[longest, "queue=non-ncq-drain", "max_bytes=16777215T"],
        &[
            &longest_read,
            &longest_fold,
            "fold.per_mib=999999s/KiB",
            "fold.read_share=0.1%",
        ],
        &["granule=8388608T", "smallest=16777215T"],
    ];
    for changes in changes {
        let capacity = i64::MAX as u64 / MIB * MIB;
        let mut drive = Drive::new(card(changes).figures().clone(), capacity, 1);
        drive.premap(0..u64::MAX);
        let mut send = |command| {
            drive
                .submit(Time::from_nanos(u64::MAX / 2), command)
                .unwrap()
        };
        send(Command::Write(capacity - 512..capacity));
        send(Command::Read(capacity - 512..capacity));
        send(discard(capacity - MIB..capacity));
        send(Command::Flush);
        send(discard(0..0));
        assert_eq!(finish(&mut drive).len(), 5);
        assert!(drive.mapped().covered() <= capacity);
    }
}

#[test]
fn what_is_lost_with_the_power_never_completes_and_changes_nothing() {
    let mut drive = drive(&["a=100ms"]);
    for command in [read(), write(), discard(0..MIB), Command::Flush, read()] {
        drive.submit(at(0), command).unwrap();
    }
    // The first read and the write are done by then, and not yet told.
    drive.submit(at(110), read()).unwrap();
    drive.lose_all(at(120));
    assert_eq!((drive.in_flight(), drive.next_event()), (0, None));
    assert!(drive.mapped().covers(0..MIB));
    // It is idle.
    let commands = [(200, read()), (200, write()), (200, Command::Flush)];
    let expected = [(200, 300), (200, 250), (250, 450)];
    assert_eq!(times(&mut drive, &commands), expected);
}

fn command() -> impl Strategy<Value = Command> {
    let range = (0..CAPACITY, 0..200 * MIB).prop_map(|(s, l)| s..(s + l).min(CAPACITY));
    prop_oneof![
        4 => range.clone().prop_map(Command::Read),
        3 => range.clone().prop_map(Command::Write),
        1 => Just(Command::Flush),
        2 => prop::collection::vec(range, 0..5).prop_map(Command::Discard),
    ]
}

fn changes() -> impl Strategy<Value = Vec<String>> {
    let queue = prop_oneof![
        (0..=10_u32).prop_map(|phi| format!("exclusive {phi}")),
        Just("non-ncq-drain 10".to_owned()),
        (1..5_u32, 0..=10_u32).prop_map(|(k, phi)| format!("parallel {k} {phi}")),
    ];
    (queue, 1..5_u32, 0..3_u32, prop::bool::ANY).prop_map(|(queue, slots, a, jitter)| {
        let (kind, phi) = queue.rsplit_once(' ').unwrap();
        let phi: f64 = phi.parse::<f64>().unwrap() / 10.0;
        // phi before queue would not fit to a drain, nor queue before phi to another.
        let mut changes = vec!["queue=exclusive".to_owned()];
        changes.push(format!("phi={phi}"));
        changes.push(format!("queue={kind}"));
        changes.push(format!("read.parallelism={slots}"));
        changes.push(format!("write.parallelism={slots}"));
        changes.push(format!("a={a}ms"));
        if jitter {
            changes.push("discard.jitter=33%".to_owned());
            changes.push("read.jitter=33%".to_owned());
        }
        changes
    })
}

proptest! {
    #[test]
    fn nothing_is_lost_and_time_never_goes_backwards(
        changes in changes(),
        commands in prop::collection::vec((0..2000_u64, command()), 1..60),
        // How late the caller comes, as a real clock does.
        late in 0..3000_u64,
        seed in any::<u64>(),
    ) {
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        let figures = card(&changes).figures().clone();
        let run = || {
            let mut drive = Drive::new(figures.clone(), CAPACITY, seed);
            let (mut done, mut now, mut ids) = (Vec::new(), 0, HashSet::new());
            for (wait, command) in &commands {
                now += wait;
                // Every other time the caller collects first.
                if wait % 2 == 0 {
                    drive.advance(at(now), &mut done);
                }
                ids.insert(drive.submit(at(now), command.clone()).unwrap());
            }
            while let Some(next) = drive.next_event() {
                drive.advance(next + Duration::from_micros(late), &mut done);
            }
            (done, ids, drive)
        };
        let (done, ids, drive) = run();
        prop_assert_eq!(done.len(), commands.len());
        prop_assert_eq!(drive.in_flight(), 0);
        prop_assert_eq!(done.iter().map(|c| c.id).collect::<HashSet<_>>(), ids);
        prop_assert!(done.is_sorted_by_key(|c| c.completed));
        for c in &done {
            prop_assert!(c.submitted <= c.started && c.started <= c.completed);
            if c.command == Command::Flush {
                // Every write before it is done.
                prop_assert!(done.iter().all(|w| !matches!(w.command, Command::Write(_))
                    || w.id > c.id || w.completed <= c.started));
            }
        }
        let stats = drive.stats();
        prop_assert_eq!(
            stats.reads + stats.writes + stats.flushes + stats.discards,
            commands.len() as u64
        );
        // Nothing may start while it is blocked, and nobody runs beside a drain.
        let exclusive = changes.contains(&"queue=non-ncq-drain");
        for d in done.iter().filter(|c| matches!(c.command, Command::Discard(_))) {
            for other in done.iter().filter(|c| c.id != d.id) {
                let beside = other.started < d.completed && d.started < other.completed;
                prop_assert!(!(exclusive && beside), "{:?} beside {:?}", other, d);
            }
        }
        // The same again.
        prop_assert_eq!(run().0, done);
    }

    #[test]
    fn what_is_mapped_is_what_was_written_and_not_trimmed_since(
        commands in prop::collection::vec(command(), 1..40),
    ) {
        let mut drive = Drive::new(card(&["granule=512"]).figures().clone(), CAPACITY, 1);
        let mut expected = Extents::new();
        for command in commands {
            let now = drive.next_event().unwrap_or(Time::ZERO);
            drive.submit(now, command.clone()).unwrap();
            // One after the other: at once, their order is the drive's.
            finish(&mut drive);
            match command {
                Command::Write(r) if !r.is_empty() => {
                    expected.insert(r.start / 512 * 512..r.end.next_multiple_of(512).min(CAPACITY));
                }
                Command::Discard(ranges) => for r in ranges {
                    expected.remove(r.start.next_multiple_of(512)..r.end / 512 * 512);
                },
                _ => {}
            }
            prop_assert_eq!(drive.mapped(), &expected);
        }
    }
}

#[test]
fn settings_fit_each_other_in_any_order() {
    let card = profiles::by_name("ocz-vertex-2").unwrap();
    for both in [["phi=0", "queue=exclusive"], ["queue=exclusive", "phi=0"]] {
        let changed = card.with_all(both).unwrap();
        assert_eq!(changed.figures().discard.as_ref().unwrap().phi(), 0.0);
    }
    let (wrong, _) = card.with_all(["a=2ms", "quue=exclusive"]).unwrap_err();
    assert_eq!(wrong, "quue=exclusive");
}
