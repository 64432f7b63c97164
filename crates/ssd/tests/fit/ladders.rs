//! A ladder of deletions on every profile: the figures that come out are those of the card.

use std::time::Duration;

use record::AtaTrim;
use record::RunRecord;
use ssd::fit::{Barrier, Figure, Fit, Made, fit};
use ssd::{Card, Drive, Queue, Time, profiles};
use testkit::harness::{Harness, Pace, Pieces, Readers};

use crate::record::{put_on_a_loop, record};

const MIB: u64 = 1 << 20;
const RUNGS: [u64; 5] = [1, 4, 16, 64, 128];
const QUIET: Readers = Readers::Open { per_s: 100.0 };
const LOADED: Readers = Readers::Closed {
    depth: 8,
    per_io: Duration::from_micros(10),
};

/// Discards of one size on a drive, as ext4 sends them.
pub fn run(card: &Card, mib: u64, discards: u64, gap: Duration, readers: Readers) -> RunRecord {
    let bytes = mib * MIB;
    let figures = card.figures();
    let mut drive = Drive::new(figures.clone(), 1 << 40, 7);
    drive.premap(0..discards * bytes);
    let start = Time::from_secs_f64(2.04);
    let pieces = Pieces::new(0..discards * bytes, bytes, Pace::Gap(gap)).from(start);
    let service = figures.discard.as_ref().unwrap().service(bytes, 0, 1);
    let length = (service + gap + Duration::from_micros(500)) * discards as u32;
    let outcome = Harness::new(readers, 7)
        .drive(drive, pieces)
        .run(Duration::from_secs(4) + length)
        .unwrap();
    record(&outcome, "ext4", readers, start)
}

/// A fit as `trimbench fit DIR` makes it: a rung for each size, undisturbed, and one deletion
/// beside readers.
pub fn ladder(card: &Card) -> Fit {
    let gap = Duration::from_millis(20);
    let mut records: Vec<RunRecord> = RUNGS
        .iter()
        .map(|&mib| run(card, mib, if mib > 16 { 24 } else { 64 }, gap, QUIET))
        .collect();
    let back_to_back = Duration::from_micros(50);
    let large = run(card, 128, 200, back_to_back, LOADED);
    records.push(large);
    fit(&records.iter().collect::<Vec<_>>()).unwrap()
}

fn truth(card: &Card, mib: f64) -> f64 {
    let discard = card.figures().discard.as_ref().unwrap();
    discard.service((mib * MIB as f64) as u64, 0, 1).as_nanos() as f64 / 1e3
}

fn show(figure: &Figure) -> String {
    match figure {
        Figure::Known(e) => format!("{:.2} ({:.2}-{:.2})", e.value, e.low, e.high),
        Figure::AtMost { bound, .. } => format!("<= {bound:.2}"),
        Figure::Unknown { .. } => "-".into(),
    }
}

/// The figures of a profile that can be identified.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Tellable {
    /// a and b.
    Both,
    /// b, and that a is next to nothing.
    OnlyB,
    /// Only a bound of the whole.
    Bound,
}

const PROFILES: [(&str, Tellable); 8] = [
    ("samsung-870-evo-2tb", Tellable::Both),
    ("crucial-t500-2tb", Tellable::Both),
    ("samsung-980-pro-1tb", Tellable::Bound),
    ("ocz-vertex-2", Tellable::Both),
    ("ocz-agility-2", Tellable::Both),
    ("emc-xtremio-10tb", Tellable::Both),
    ("fusionio", Tellable::OnlyB),
    ("ideal", Tellable::Bound),
];

/// Another program discards on the drive below a loop device.
#[test]
fn discards_that_came_not_through_the_file_systems_device_are_left_out() {
    let card = profiles::by_name("crucial-t500-2tb").unwrap();
    let clean = run(card, 16, 64, Duration::from_millis(20), QUIET);
    let mut record = clean.clone();
    put_on_a_loop(&mut record);
    let drive = &mut record.intervals.devices[0];
    let last = drive.discards.iter().rposition(|&count| count > 0).unwrap();
    for i in last + 2..drive.discards.len() {
        (
            drive.discards[i],
            drive.discard_bytes[i],
            drive.discard_ms[i],
        ) = (50, 50 * MIB, 60);
    }
    let points = |record| fit(&[record]).unwrap().points;
    assert_eq!(points(&record), points(&clean));
}

#[test]
fn every_profile_comes_back() {
    for (name, tellable) in PROFILES {
        let card = profiles::by_name(name).unwrap();
        let fit = ladder(card);
        let discard = card.figures().discard.as_ref().unwrap();
        let (a, b) = (
            discard.a.as_nanos() as f64 / 1e3,
            discard.b.as_nanos() / 1e3,
        );
        println!(
            "{name}: a {a:.1} -> {}, b {b:.3} -> {}, phi {} -> {}, barrier {:?} ({:?} reads), read {} -> {}",
            show(&fit.a_us),
            show(&fit.b_us_per_mib),
            discard.phi(),
            show(&fit.share.phi),
            fit.share.barrier,
            fit.share.ops_per_discard,
            card.figures().read.latency.as_nanos() as f64 / 1e3,
            show(&fit.reads.service_us),
        );
        for point in &fit.points {
            let truth = truth(card, point.mib);
            println!(
                "    {}: {truth:.1} -> {:.1} ({:.1}-{:.1}), {} discards",
                point.size(),
                point.service_us.value,
                point.service_us.low,
                point.service_us.high,
                point.discards
            );
        }
        println!("    {:?}", fit.notes);
        let ends = [fit.points.first(), fit.points.last()];
        for end in ends.into_iter().flatten() {
            let truth = truth(card, end.mib);
            // Below 20 us the kernel's milliseconds say nothing.
            let off = (end.service_us.value - truth).abs();
            assert!(off <= 0.1 * truth + 20.0, "{name}: {end:?}, not {truth}");
        }
        let known = [fit.a_us.value(), fit.b_us_per_mib.value()];
        let told = match tellable {
            Tellable::Both => [true, true],
            Tellable::OnlyB => [false, true],
            Tellable::Bound => [false, false],
        };
        assert_eq!(known.map(|k| k.is_some()), told, "{name}: {fit:#?}");
        if tellable == Tellable::Bound {
            assert!(fit.a_us.why().is_some() && fit.b_us_per_mib.why().is_some());
            assert_eq!(
                fit.of_verdict().service_us,
                None,
                "{name}: only a bound is known"
            );
            continue;
        }
        // What is nothing can't come back to a share of itself, but to one of the whole.
        let got_a = fit.a_us.at_most().unwrap();
        let got_b = known[1].unwrap();
        assert!((got_a - a).abs() <= 0.15 * a + 10.0, "{name}: {got_a}");
        let slack = 0.05 * truth(card, 128.0) / 128.0;
        assert!((got_b - b).abs() <= 0.15 * b + slack, "{name}: {got_b}");
        assert_eq!(fit.share.is_barrier(), Some(true), "{name}");
        assert_eq!(fit.share.phi.value(), Some(1.0), "{name}");
    }
}

#[test]
fn time_lost_alone_is_no_barrier_in_a_verdict() {
    let mut fit = ladder(profiles::by_name("ocz-vertex-2").unwrap());
    let said = |fit: &Fit| fit.of_verdict().barrier;
    assert_eq!(said(&fit), Some(true));
    fit.share.barrier = Some(Barrier::TimeLost);
    assert_eq!((fit.share.is_barrier(), said(&fit)), (Some(true), None));
}

/// Others discard small pieces later, in which reads hardly wait: that says nothing of the large.
#[test]
fn small_discards_do_not_hide_that_large_ones_stop_all_reads() {
    let card = profiles::by_name("samsung-870-evo-2tb").unwrap();
    let card = card.with("a=20ms").unwrap();
    let mut record = run(&card, 128, 100, Duration::from_millis(1), LOADED);
    // As in a log of the devices alone.
    record.head.target.fs = None;
    record.phases.pop();
    record.deletions.clear();
    record.intervals.freed_bytes.fill(0);
    let rows = record.intervals.len();
    let device = &mut record.intervals.devices[0];
    for row in rows - 8..rows {
        device.discards[row] += 32;
        device.discard_bytes[row] += 32 << 19;
        device.discard_ms[row] += 4;
    }
    let share = fit(&[&record]).unwrap().share;
    assert_eq!(share.phi.value(), Some(1.0), "{share:?}");
    assert_eq!(share.is_barrier(), Some(true), "{share:?}");
}

#[test]
fn the_card_behaves_as_the_drive_did() {
    for (name, tellable) in PROFILES {
        let card = profiles::by_name(name).unwrap();
        let fit = ladder(card);
        let made = Made {
            name: "mine".into(),
            drive: "A drive in virtual time".into(),
            when: "2026-01-01, Linux 6.12, ext4".into(),
        };
        let origin = record::Origin {
            host: Some("the \"first\"".into()),
            ..Default::default()
        };
        let fitted = fit.card(&made).unwrap().measured_by(origin);
        let text = fitted.to_string();
        let again: Card = text.parse().unwrap();
        assert_eq!(again, fitted, "{name}: what is printed is read again");
        assert!(text.contains("2026-01-01"), "{text}");
        // A drive that drains its queue looks alike.
        let queue = fitted.note("discard.queue").unwrap();
        assert_ne!(queue.sure, ssd::card::Sure::Measured, "{name}: {queue:?}");
        let discard = fitted.figures().discard.as_ref().unwrap();
        for mib in [1.0, 128.0] {
            let got = discard.service((mib * MIB as f64) as u64, 0, 1).as_nanos() as f64 / 1e3;
            let truth = truth(card, mib);
            // A bound is one of the kernel's milliseconds, over all discards.
            let slack = if tellable == Tellable::Bound {
                100.0
            } else {
                10.0
            };
            let within = (got - truth).abs() <= 0.12 * truth + slack;
            assert!(within, "{name}: {got} for {mib} MiB, not {truth}");
        }
    }
}

#[test]
fn stretched_time_is_rounded_no_further() {
    // A drive 20 times slower, and its record in the time of the one it stands for.
    let card = profiles::by_name("samsung-870-evo-2tb").unwrap();
    let slow = card
        .with("a=9620us")
        .unwrap()
        .with("b=168.8us/MiB")
        .unwrap();
    let gap = Duration::from_millis(100);
    let rung = |&mib: &u64| {
        let mut record = run(
            &slow,
            mib,
            if mib > 16 { 24 } else { 64 },
            gap,
            Readers::None,
        );
        let slower = record::Slower {
            times: 20.0,
            converted: false,
        };
        record.head.devices[0].slower = Some(slower);
        record
    };
    let records: Vec<RunRecord> = RUNGS.iter().map(rung).collect();
    let fit = fit(&records.iter().collect::<Vec<_>>()).unwrap();
    println!("{fit:#?}");
    assert!((fit.a_us.value().unwrap() / 481.0 - 1.0).abs() < 0.05);
    assert!((fit.b_us_per_mib.value().unwrap() / 8.44 - 1.0).abs() < 0.05);
    assert!(fit.notes[0].contains("20 times slower"), "{:?}", fit.notes);
}

/// In the time of the drive that it stands for, this stall would be too short for one.
#[test]
fn a_slowed_run_keeps_what_its_verdict_found() {
    let card = profiles::by_name("ocz-vertex-2").unwrap();
    let mut record = run(card, 64, 60, Duration::from_micros(50), LOADED);
    record.head.devices[0].slower = Some(record::Slower {
        times: 25.0,
        converted: false,
    });
    let own = judge::judge(&record, &judge::JudgeOptions::of(&record));
    assert_eq!(own.verdict, judge::verdict::Finding::Stall);
    let own = ssd::fit::joined(own, &record).fit.unwrap();
    let fit = fit(&[&record]).unwrap();
    let same = fit.of_verdict();
    assert_eq!(own.barrier, Some(true), "{own:?}");
    assert_eq!(same.barrier, own.barrier);
    assert_eq!(same.ops_per_discard, own.ops_per_discard);
    assert_eq!(same.phi, own.phi);
}

#[test]
fn a_drive_that_the_kernel_drains_is_one() {
    let card = profiles::by_name("samsung-870-evo-2tb").unwrap();
    let mut record = run(card, 64, 100, Duration::from_micros(50), LOADED);
    let made = Made {
        name: "mine".into(),
        drive: "A drive".into(),
        when: "today".into(),
    };
    let queue = |record: &RunRecord| {
        let card = fit(&[record]).unwrap().card(&made).unwrap();
        card.figures().discard.as_ref().unwrap().queue
    };
    for (trim, drains) in [
        (None, false),
        (Some(AtaTrim::Queued), false),
        (Some(AtaTrim::Unqueued), true),
        (Some(AtaTrim::ForcedUnqueued), true),
    ] {
        record.head.devices[0].discard.ata_trim = trim;
        let got = queue(&record);
        assert_eq!(got == Queue::NonNcqDrain, drains, "{trim:?}: {got:?}");
    }
}

#[test]
fn one_size_tells_its_time_and_not_a_from_b() {
    for (name, mib) in [("crucial-t500-2tb", 128), ("samsung-870-evo-2tb", 124)] {
        let card = profiles::by_name(name).unwrap();
        let record = run(card, mib, 1000, Duration::from_micros(50), LOADED);
        let fit = fit(&[&record]).unwrap();
        println!("{fit:#?}");
        let told = fit.of_verdict();
        let truth = truth(card, mib as f64);
        assert!(
            (told.service_us.unwrap() / truth - 1.0).abs() < 0.1,
            "{told:?}, not {truth}"
        );
        assert!((told.at_mib.unwrap() - mib as f64).abs() < 0.01);
        assert_eq!((told.a_us, told.b_us_per_mib), (None, None));
        assert!(
            fit.a_us.why().unwrap().contains("sizes that differ"),
            "{:?}",
            fit.a_us
        );
        assert_eq!((told.phi, told.barrier), (Some(1.0), Some(true)));
        assert!(
            (told.ops_per_discard.unwrap() / 8.0 - 1.0).abs() < 0.1,
            "{told:?}"
        );
        let made = Made {
            name: "mine".into(),
            drive: "A drive".into(),
            when: "today".into(),
        };
        let fitted = fit.card(&made).unwrap();
        let alone = format!("holds for discards of about {mib} MiB alone");
        assert!(fitted.to_string().contains(&alone), "{fitted}");
        let read: Card = fitted.to_string().parse().unwrap();
        let size = read.one_size().unwrap() as f64 / MIB as f64;
        assert!((size - mib as f64).abs() < 0.5, "{size}");
        assert_eq!(card.one_size(), None);
        let notes = fit.notes.join(" ");
        assert!(
            notes.contains(&alone) && notes.contains("fit DIRECTORY"),
            "{notes}"
        );
        let service = fitted
            .figures()
            .discard
            .as_ref()
            .unwrap()
            .service(mib * MIB, 0, 1);
        assert!((service.as_nanos() as f64 / 1e3 / truth - 1.0).abs() < 0.1);
        assert_eq!(fitted.note("discard.a").unwrap().sure.name(), "assumed");
    }
}

/// A network disk: a MiB costs many times what it costs an SSD.
#[test]
fn a_card_of_a_bound_takes_that_long_at_its_size() {
    let card = profiles::by_name("emc-xtremio-10tb").unwrap();
    let card = card.with("a=2ms").unwrap().with("b=700us/MiB").unwrap();
    let card = card.with("discard.jitter=33%").unwrap();
    let rungs = [(6, 3), (96, 7)]
        .map(|(mib, many)| run(&card, mib, many, Duration::from_millis(30), QUIET));
    let fit = fit(&[&rungs[0], &rungs[1]]).unwrap();
    let Figure::AtMost { bound, .. } = fit.service_us else {
        panic!("{fit:#?}");
    };
    let made = Made {
        name: "mine".into(),
        drive: "A drive".into(),
        when: "today".into(),
    };
    let got = truth(&fit.card(&made).unwrap(), fit.at_mib);
    assert!((got / bound - 1.0).abs() < 0.01, "{got} us, not {bound}");
}

#[test]
fn a_share_comes_back_too() {
    // Long enough that what one holds up is more than a batch of reads.
    let card = profiles::by_name("crucial-t500-2tb").unwrap();
    for phi in [0.3, 0.6] {
        let card = card
            .with(&format!("discard.phi={phi}"))
            .unwrap()
            .with("a=10ms")
            .unwrap();
        let record = run(&card, 128, 300, Duration::from_micros(50), LOADED);
        let fit = fit(&[&record]).unwrap();
        println!("{:?}", fit.share);
        let got = fit.share.phi.value().unwrap();
        assert!((got - phi).abs() < 0.05, "{got}, not {phi}");
        assert_eq!(fit.share.is_barrier(), Some(false), "{:?}", fit.share);
    }
}

/// Readers that became faster all the time hide a part of what discards cost them.
#[test]
fn beside_a_baseline_that_drifts_the_share_is_less_certain() {
    let card = profiles::by_name("crucial-t500-2tb").unwrap();
    let mut record = run(card, 128, 300, Duration::from_micros(50), LOADED);
    let deleted = record.phases[1].at_s;
    let rows = &mut record.intervals;
    for (i, ops) in rows.actors[0].ops.iter_mut().enumerate() {
        let at = rows.at_s[i] / deleted;
        if at < 1.0 {
            *ops = (f64::from(*ops) * (0.8 + 0.3 * at)) as u32;
        }
    }
    let fit = fit(&[&record]).unwrap();
    let phi = fit.share.phi.estimate().unwrap();
    assert!(phi.low < 0.75 && phi.high == 1.0, "{phi:?}");
}

#[test]
fn an_end_that_is_not_sure_is_named() {
    let card = profiles::by_name("samsung-870-evo-2tb").unwrap();
    let slow = |jitter: &str| {
        let card = card.with("a=50ms").unwrap().with(jitter).unwrap();
        let gap = Duration::from_millis(20);
        let rung = |mib, discards| run(&card, mib, discards, gap, Readers::None);
        fit(&[&rung(1, 64), &rung(128, 5)]).unwrap()
    };
    // Of five that scatter little is known, and of 64 enough.
    let fitted = slow("discard.jitter=20%");
    let end = fitted.unsure_end(0.05, 1.0).unwrap();
    assert!((end.mib - 128.0).abs() < 1.0, "{end:?}");
    assert_eq!(fitted.unsure_end(1.0, 1.0), None);
    let jitter = fitted.jitter.unwrap();
    assert!((0.1..0.3).contains(&jitter), "{jitter}");
    assert_eq!(slow("discard.jitter=0").unsure_end(0.05, 1.0), None);
}

#[test]
fn records_of_two_drives_are_refused_by_their_names() {
    let card = profiles::by_name("crucial-t500-2tb").unwrap();
    let of = |model: &str| {
        let mut record = run(card, 1, 64, Duration::from_millis(20), QUIET);
        record.head.devices[0].model = Some(model.to_owned());
        record
    };
    let (one, same) = (of("T500, 4 times slower"), of("T500, 4 times slower"));
    assert!(fit(&[&one, &same]).is_ok());
    let error = fit(&[&one, &of("T500, 20 times slower")]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("T500, 20 times slower; T500, 4 times slower"),
        "{text}"
    );
}

/// ext4 discards free space beside the deleted bytes, and an array with nothing there finishes that
/// at once. A size has two prices then, and their mean bounds nothing.
#[test]
fn free_space_beside_gives_no_bound() {
    let card = profiles::by_name("emc-xtremio-10tb").unwrap();
    let gap = Duration::from_millis(20);
    let with = |mapped: u64| {
        let (bytes, discards) = (128 * MIB, 24);
        let mut drive = Drive::new(card.figures().clone(), 1 << 40, 7);
        for i in 0..mapped {
            let start = i * bytes * discards / mapped;
            drive.premap(start..start + bytes);
        }
        let start = Time::from_secs_f64(2.04);
        let pieces = Pieces::new(0..discards * bytes, bytes, Pace::Gap(gap)).from(start);
        let harness = Harness::new(QUIET, 7).drive(drive, pieces);
        let outcome = harness.run(Duration::from_secs(8)).unwrap();
        let mut record = record(&outcome, "ext4", QUIET, start);
        (record.deletions[0].bytes, record.deletions[0].files) = (mapped * bytes, mapped);
        record
    };
    let small = run(card, 1, 64, gap, QUIET);
    for mapped in [24, 12] {
        let fit = fit(&[&small, &with(mapped)]).unwrap();
        println!("{}, {:?}", show(&fit.b_us_per_mib), fit.notes);
        let told = fit
            .notes
            .iter()
            .any(|note| note.contains("1.5 GiB more were discarded"));
        assert_eq!(told, mapped == 12, "{:?}", fit.notes);
        // 4.1 ms and 233 µs for each MiB.
        let most_us = fit.service_at_most_us(128 * MIB).unwrap();
        assert!(most_us >= 0.95 * 33_924.0, "{most_us} of {mapped}");
        // More of the same would not tell what the drive had there.
        let again = fit.unsure_end(0.05, 1.0);
        assert!(mapped == 24 || again.is_none(), "{again:?}");
        match mapped {
            24 => assert!(fit.b_us_per_mib.value().is_some()),
            _ => {
                assert!(
                    matches!(fit.b_us_per_mib, Figure::Unknown { .. }),
                    "{:?}",
                    fit.b_us_per_mib
                );
                // Of the mean size no more than of a larger one, and no less than it takes.
                let (most, largest) = (
                    fit.service_us.at_most().unwrap(),
                    fit.points.last().unwrap(),
                );
                let least = 4100.0 + 233.0 * fit.at_mib;
                assert!(
                    least < most && most < largest.service_us.high,
                    "{most} of {}",
                    fit.at_mib
                );
            }
        }
    }
    // A run of the same size alone takes its place.
    let fit = fit(&[&small, &with(24), &with(12)]).unwrap();
    assert!(fit.b_us_per_mib.value().is_some(), "{:?}", fit.notes);
    let left_out = |note: &String| note.contains("1.5 GiB more") && note.contains("left out");
    assert!(fit.notes.iter().any(left_out), "{:?}", fit.notes);
}
