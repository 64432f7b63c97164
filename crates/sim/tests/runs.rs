//! Every policy with every workload.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use sim::{Drives, PolicyKind, Setup, WorkloadKind};

fn small(policy: PolicyKind, workload: WorkloadKind) -> Setup {
    let card = ssd::profiles::by_name("samsung-870-evo-2tb")
        .unwrap()
        .clone();
    let mut setup = Setup::new(Drives::single(card), policy, workload);
    setup.volume = 8 << 30;
    setup.size = match workload {
        WorkloadKind::Churn => 64 << 20,
        WorkloadKind::Spill => 256 << 20,
        _ => 1 << 30,
    };
    setup.files = 500;
    setup.length = Duration::from_secs(20);
    setup.baseline = Duration::from_millis(500);
    setup.recovery = Duration::from_millis(500);
    setup.limit = Duration::from_secs(200);
    setup.readers = 1;
    setup.syncers = 1;
    match policy {
        PolicyKind::Fstrim => setup.set("every", "5s").unwrap(),
        PolicyKind::BtrfsAsync => setup.set("delay", "5s").unwrap(),
        PolicyKind::Guard => {
            setup.set("max-age", "10s").unwrap();
            setup.length = Duration::from_secs(60);
        }
        _ => {}
    }
    setup
}

fn json(outcome: &sim::Outcome) -> String {
    let mut bytes = Vec::new();
    let mut writer = record::RecordWriter::new(&mut bytes);
    for line in outcome.record.lines() {
        writer.write(&line).unwrap();
    }
    writer.finish().unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn every_policy_survives_every_workload_and_repeats_it_by_its_seed() {
    for &workload in WorkloadKind::ALL {
        for &policy in PolicyKind::ALL {
            let name = format!("{} {}", policy.name(), workload.name());
            let mut setup = small(policy, workload);
            if policy == PolicyKind::PerBlock {
                setup.size /= 16;
                setup.files /= 16;
            }
            let outcome = sim::run(&setup).unwrap_or_else(|e| panic!("{name}: {e}"));
            let figures = &outcome.figures;
            println!(
                "{name:<24}{:>10} ev {:>6} cmd {:>8.1} MiB discarded {:>8.1} cancelled, {:?}",
                outcome.events,
                figures.commands,
                figures.discarded_bytes as f64 / 1048576.0,
                figures.cancelled_bytes as f64 / 1048576.0,
                outcome.verdict.verdict,
            );
            assert!(!figures.is_full, "{name}");
            assert!(figures.removed_bytes > 0, "{name}");
            let never = [PolicyKind::None].contains(&policy) && workload != WorkloadKind::Mkfs;
            // f2fs waits for an idle drive, and here it never is.
            // Nothing of what this workload frees stays free for 15 s.
            let used_again = policy == PolicyKind::Guard && workload == WorkloadKind::Churn;
            if !never && !used_again && policy != PolicyKind::F2fs {
                assert!(figures.commands > 0, "{name}");
            }
            if !workload.is_continuous() && policy != PolicyKind::F2fs {
                assert!(!figures.gave_up, "{name}");
            }
            if matches!(workload, WorkloadKind::DropMany | WorkloadKind::Spill) {
                let again = sim::run(&setup).unwrap();
                assert_eq!(json(&again), json(&outcome), "{name}");
            }
        }
    }
}

#[test]
fn a_volume_that_runs_full_ends_the_run_and_is_reported() {
    let mut setup = small(PolicyKind::Ext4Online, WorkloadKind::Spill);
    setup.size = 7 << 30;
    setup.fill = 0.5;
    let outcome = sim::run(&setup).unwrap();
    assert!(outcome.figures.is_full);
    setup.workload = WorkloadKind::DropFile;
    let error = sim::run(&setup).unwrap_err();
    assert!(
        error.to_string().contains("give a larger `volume`"),
        "{error}"
    );
}

#[test]
fn a_run_cut_off_at_its_limit_has_no_time_of_all_discards() {
    let run = |limit_s| {
        let mut setup = small(PolicyKind::Ext4Online, WorkloadKind::DropFile);
        setup.drives = Drives::single(ssd::profiles::by_name("ocz-vertex-2").unwrap().clone());
        // It discards 8 GiB in 3.6 s.
        (setup.volume, setup.size) = (32 << 30, 8 << 30);
        setup.limit = Duration::from_secs(limit_s);
        (setup.baseline, setup.syncers) = (Duration::from_secs(2), 0);
        sim::run(&setup).unwrap()
    };
    let (cut, whole) = (run(2), run(100));
    let figures = &cut.figures;
    assert!(figures.gave_up && !whole.figures.gave_up, "{figures:?}");
    assert_eq!((figures.drained_s, figures.freed_bytes_per_s), (None, None));
    assert!(
        whole.figures.drained_s.unwrap() > 2.0,
        "{:?}",
        whole.figures
    );
    let late = judge::verdict::Reason::DiscardsDidNotCome;
    for (outcome, is_late) in [(&cut, true), (&whole, false)] {
        let verdict = &outcome.verdict;
        println!("{}", verdict.summary);
        assert_eq!(verdict.reasons.contains(&late), is_late, "{verdict:?}");
        assert_eq!(verdict.summary.contains("for at least"), is_late);
    }
    let both = [cut.figures, whole.figures];
    assert_eq!(sim::pareto_front(&both), [false, true]);
}

#[test]
fn an_allocation_waits_for_a_discard_only_where_space_is_held_until_then() {
    let run = |policy| {
        let mut setup = small(policy, WorkloadKind::Spill);
        // Two of them don't fit.
        setup.volume = 4 << 30;
        setup.size = 2 << 30;
        setup.readers = 0;
        setup.pause = Duration::ZERO;
        let slow = ssd::profiles::by_name("ocz-vertex-2").unwrap().clone();
        setup.drives = Drives::single(slow);
        setup.set("at-least", "0").unwrap();
        sim::run(&setup).unwrap().figures
    };
    let queued = run(PolicyKind::Queued);
    assert_eq!(queued.allocations_held, 0, "{queued:?}");
    assert!(queued.cancelled_bytes > 0, "{queued:?}");
    let held = run(PolicyKind::Coalesce);
    assert!(held.held_max_bytes > 1 << 30, "{held:?}");
}

/// A T500 that is eight times slower, with reads of its own, as `bench/rm-lab` slows it.
fn slowed_t500() -> Drives {
    let changes = [
        "discard.a=7808us",
        "discard.b=65.36us/MiB",
        "read.latency=1200us",
        "write.latency=20us",
        "write.per_mib=0ns/MiB",
        "flush.latency=20us",
    ];
    let card = ssd::profiles::by_name("crucial-t500-2tb").unwrap().clone();
    let card = changes
        .iter()
        .fold(card, |card, change| card.with(change).unwrap());
    Drives::single(card)
}

#[test]
fn adaptive_takes_the_time_that_its_goal_asks_for_and_cuts_no_extents() {
    let run = |policy, goal: Option<&str>| {
        let mut setup = Setup::new(slowed_t500(), policy, WorkloadKind::DropFile);
        // Extents of 128 MiB and reads at depth 8, as there.
        setup.extents = vec![128 << 20; 80];
        goal.iter()
            .for_each(|goal| setup.set("slowdown", goal).unwrap());
        sim::run(&setup).unwrap().figures
    };
    let plain = run(PolicyKind::Ext4Online, None);
    for (text, goal) in [("10%", 0.10), ("20%", 0.20), ("30%", 0.30), ("50%", 0.50)] {
        let paced = run(PolicyKind::Adaptive, Some(text));
        let time = paced.drained_s.unwrap() / (plain.lost_s.unwrap() / goal);
        let lost = paced.lost_s.unwrap() / plain.lost_s.unwrap();
        println!("{text}: time {time:.2} of what the goal asks for, lost {lost:.2} of rm's");
        // The first pieces, which try the drive, are smaller.
        assert!(paced.commands <= plain.commands + 6, "{text}");
        assert!((0.9..1.35).contains(&time), "{text}: {time}");
        assert!(lost < 1.35, "{text}: {lost}");
    }
}

#[test]
fn adaptive_cuts_extents_whose_discards_cost_by_the_byte_and_records_the_foreground_alone() {
    let mut setup = Setup::new(slowed_t500(), PolicyKind::Adaptive, WorkloadKind::DropFile);
    let card = &setup.drives.cards[0];
    let card = card.with("discard.a=100us").unwrap();
    let card = card.with("discard.b=500us/MiB").unwrap();
    setup.drives = Drives::single(card);
    // Of 32 ms each.
    setup.extents = vec![64 << 20; 16];
    let outcome = sim::run(&setup).unwrap();
    let figures = outcome.figures;
    // A read waits for about a millisecond of discards.
    let each = figures.discarded_bytes / figures.commands;
    assert!((1 << 20..=3 << 20).contains(&each), "{figures:?}");
    assert_eq!(outcome.record.head.actors.len(), 1);
    assert!(figures.max_ms.unwrap() < 8.0, "{figures:?}");
}

#[test]
fn discards_that_never_pause_cost_as_much_as_without_them_is_better() {
    let run = |policy| {
        let mut setup = small(policy, WorkloadKind::Churn);
        setup.drives = Drives::single(ssd::profiles::by_name("crucial-t500-2tb").unwrap().clone());
        (setup.readers, setup.syncers) = (8, 0);
        sim::run(&setup).unwrap()
    };
    let without = run(PolicyKind::None);
    let [online, guard] = [PolicyKind::Ext4Online, PolicyKind::Guard].map(|policy| {
        let mut outcome = run(policy);
        outcome.measure_by(&without);
        outcome.figures
    });
    let (lost, waited) = (online.lost_s.unwrap(), online.waited_s.unwrap());
    // A discard takes 1 ms, and stops all reads.
    let busy = online.commands as f64 * 1e-3;
    assert!((0.8..1.2).contains(&(lost / busy)), "{online:?}");
    // Eight wait at once.
    assert!((0.8..1.2).contains(&(waited / 8.0 / lost)), "{online:?}");
    assert!(online.worst_second.unwrap() > 0.5, "{online:?}");
    assert!(guard.waited_s.unwrap() < 0.1 * waited, "{guard:?}");
}

#[test]
fn who_sends_nothing_or_gets_less_done_is_not_better_for_it() {
    let with = |policy, commands, removed_bytes, worst| {
        let mut figures = sim::run(&small(policy, WorkloadKind::Churn))
            .unwrap()
            .figures;
        (figures.commands, figures.removed_bytes) = (commands, removed_bytes);
        (figures.drained_s, figures.waited_s) = (None, Some(worst));
        (figures.worst_second, figures.untold_bytes) = (Some(worst), 0);
        figures
    };
    let online = with(PolicyKind::Ext4Online, 1000, 1 << 30, 0.5);
    let fewer = with(PolicyKind::Adaptive, 5, 1 << 20, 0.5);
    let idle = with(PolicyKind::BtrfsAsync, 0, 1 << 30, 0.0);
    let none = with(PolicyKind::None, 0, 1 << 30, 0.01);
    let front = sim::pareto_front(&[online.clone(), fewer, idle]);
    assert_eq!(front, [true, false, false]);
    assert_eq!(sim::pareto_front(&[online, none]), [false, true]);
}

/// Two discards that stop all reads end at the same moment, and so do the eight reads that waited.
#[test]
fn reads_that_end_with_the_last_discard_have_waited_for_it() {
    let mut setup = small(PolicyKind::XfsOnline, WorkloadKind::DropFile);
    setup.drives = Drives::single(ssd::profiles::by_name("crucial-t500-2tb").unwrap().clone());
    (setup.readers, setup.syncers) = (8, 0);
    let figures = sim::run(&setup).unwrap().figures;
    let (lost, waited) = (figures.lost_s.unwrap(), figures.waited_s.unwrap());
    assert!((0.8..1.2).contains(&(waited / 8.0 / lost)), "{figures:?}");
}

#[test]
fn a_guard_that_waits_for_longer_runs_sends_fewer_discards() {
    let run = |min_run: &str| {
        let mut setup = small(PolicyKind::Guard, WorkloadKind::Churn);
        setup.drives = Drives::single(ssd::profiles::by_name("ocz-vertex-2").unwrap().clone());
        setup.length = Duration::from_secs(600);
        setup.pause = Duration::from_secs(20);
        setup.interval = Duration::from_secs(1);
        (setup.readers, setup.syncers, setup.reads_per_s) = (0, 0, 10.0);
        for (key, value) in [("max-age", "4m"), ("min-run", min_run)] {
            setup.set(key, value).unwrap();
        }
        let mut outcome = sim::run(&setup).unwrap();
        setup.policy = PolicyKind::None;
        outcome.measure_by(&sim::run(&setup).unwrap());
        outcome.figures
    };
    let (all, waits) = (run("0"), run("auto"));
    assert!(waits.commands < all.commands, "{all:?} {waits:?}");
    assert!(waits.waited_s < all.waited_s, "{all:?} {waits:?}");
    assert!(waits.debt_age_s > all.debt_age_s, "{all:?} {waits:?}");
    assert_eq!(run("auto"), waits);
}

/// Reads that wait for the last discard are the deletion's, though they are done after it.
#[test]
fn reads_that_the_last_discard_holds_up_count() {
    for reads_per_s in [0.0, 500.0] {
        let mut setup = small(PolicyKind::Queued, WorkloadKind::DropFile);
        setup.drives = Drives::single(ssd::profiles::by_name("ocz-vertex-2").unwrap().clone());
        setup.reads_per_s = reads_per_s;
        let figures = sim::run(&setup).unwrap().figures;
        assert_eq!(figures.commands, 1);
        // One takes 50 ms, and lets nothing through.
        let longest = figures.max_ms.unwrap();
        assert!((45.0..56.0).contains(&longest), "{figures:?}");
    }
}

#[test]
fn a_deletion_that_is_over_within_a_row_has_its_own_discards() {
    let mut setup = small(PolicyKind::Ext4Online, WorkloadKind::DropFile);
    setup.size = 256 << 20;
    setup.interval = Duration::from_millis(100);
    let outcome = sim::run(&setup).unwrap();
    let verdict = &outcome.verdict;
    assert_eq!(verdict.others, None, "{}", verdict.summary);
    assert_eq!(verdict.discard.bytes, Some(256 << 20), "{verdict:?}");
}

#[test]
fn what_is_lost_does_not_depend_on_the_rows_of_the_record() {
    for policy in [PolicyKind::Ext4Online, PolicyKind::Adaptive] {
        let lost_s = |interval: &str| {
            let card = ssd::profiles::by_name("ocz-vertex-2").unwrap().clone();
            let mut setup = Setup::new(Drives::single(card), policy, WorkloadKind::DropFile);
            setup.size = 1 << 30;
            setup.set("interval", interval).unwrap();
            let figures = sim::run(&setup).unwrap().figures;
            // 50 ms for each, and the drive stops meanwhile.
            let busy_s = 0.05 * figures.commands as f64;
            (figures.lost_s.unwrap(), busy_s)
        };
        for interval in ["10ms", "70ms", "100ms", "250ms"] {
            let (lost_s, busy_s) = lost_s(interval);
            println!("{policy:?} {interval}: {lost_s:.3} s of {busy_s:.3} s");
            // A row without a discard's end can have a part of its loss.
            assert!((lost_s / busy_s - 1.0).abs() < 0.07, "{interval}: {lost_s}");
        }
    }
}

#[test]
fn a_drive_that_takes_no_discards_learns_nothing() {
    let card = ssd::profiles::by_name("intel-x25-e").unwrap().clone();
    let mut setup = Setup::new(
        Drives::single(card),
        PolicyKind::Ext4Online,
        WorkloadKind::DropFile,
    );
    setup.size = 1 << 30;
    let figures = sim::run(&setup).unwrap().figures;
    assert_eq!((figures.commands, figures.discarded_bytes), (0, 0));
    assert_eq!(figures.untold_bytes, figures.removed_bytes);
    assert_eq!((figures.freed_bytes_per_s, figures.drained_s), (None, None));
}

#[test]
fn what_stops_readers_and_what_does_not_differ_in_the_worst_second() {
    let run = |policy| {
        let card = ssd::profiles::by_name("crucial-t500-2tb").unwrap().clone();
        let mut setup = Setup::new(Drives::single(card), policy, WorkloadKind::DropFile);
        setup.size = 128 << 30;
        sim::run(&setup).unwrap().figures
    };
    let all = [PolicyKind::Ext4Online, PolicyKind::Adaptive].map(run);
    let worst = all.each_ref().map(|f| f.worst_second.unwrap());
    assert!(worst[0] > 0.9 && worst[1] < 0.15, "{worst:?}");
    // They lose as much in all, so one is quick and the other is kind.
    assert_eq!(sim::pareto_front(&all), [true, true], "{all:?}");
    // A loss that nobody knows is not the smallest.
    let [known, _] = all;
    let (lost_s, worst_second) = (None, None);
    let unknown = sim::Figures {
        lost_s,
        worst_second,
        ..known.clone()
    };
    assert_eq!(sim::pareto_front(&[unknown, known]), [false, true]);
}
