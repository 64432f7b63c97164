use super::*;
use crate::Spread;
use crate::tune::frontier::frontier;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// A point: how long it takes, what is lost, the worst 100 ms, the longest wait in ms.
fn point(policy: Policy, limit_mib: u64, figures: [f64; 4]) -> Point {
    // Repeats that differ by a few percent.
    let spread = |median: f64| Spread {
        median,
        low: median * 0.97,
        high: median * 1.03,
        count: 3,
    };
    let [freeing_s, lost_s, worst_loss, wait_ms] = figures;
    Point {
        trial: Trial {
            policy,
            limit_bytes: limit_mib * MIB,
        },
        runs: 3,
        freeing_s: spread(freeing_s),
        lost_s: spread(lost_s),
        worst_loss: spread(worst_loss),
        usual_worst_loss: spread(0.05),
        worst_read_us: spread(wait_ms * 1e3),
        worst_fsync_us: spread(wait_ms * 1e3),
        discard_bytes: spread(4.0 * GIB as f64),
        // A file system of 128 MiB groups.
        discards: spread(4096.0 / limit_mib.min(128) as f64),
        stalled: if worst_loss > 0.5 { 1.0 } else { 0.0 },
        inconclusive: 0.0,
    }
}

const NOW: Goal = Goal {
    slowdown: 0.1,
    limit_bytes: 1024 * MIB,
    online: true,
    deleted_bytes: 4 * GIB,
    least_runs: 2,
};

#[test]
fn where_nothing_stalls_nothing_changes() {
    let free = point(Policy::Online, 1024, [1.0, 0.01, 0.08, 0.4]);
    let smaller = point(Policy::Online, 32, [1.0, 0.0, 0.05, 0.3]);
    let advice = advise(&[free.clone(), smaller], &NOW);
    assert_eq!((advice.finding, advice.set), (Finding::NothingStalls, None));
    assert!(advice.text.contains("Nothing to change"), "{}", advice.text);
    // Whoever has switched it off needn't have.
    let off = Goal {
        online: false,
        ..NOW
    };
    let advice = advise(std::slice::from_ref(&free), &off);
    assert_eq!(
        (advice.finding, advice.set),
        (Finding::NothingStalls, Some(free.trial))
    );
}

#[test]
fn a_short_stall_is_not_taken_for_none() {
    // 4 GiB on an 870 EVO are 32 discards of 1.6 ms; 1 TiB stalls it for 15 s.
    let short = point(Policy::Online, 1024, [0.1, 0.05, 0.5, 2.0]);
    let advice = advise(std::slice::from_ref(&short), &NOW);
    assert_eq!((advice.finding, advice.set), (Finding::TooLittle, None));
    assert!(advice.text.contains("--set size=32G"), "{}", advice.text);
    assert!(advice.text.contains("1.2 s per 100 GiB"), "{}", advice.text);
    let unsure = Point {
        inconclusive: 1.0,
        ..short
    };
    let advice = advise(&[unsure], &NOW);
    assert_eq!((advice.finding, advice.set), (Finding::TooFewRuns, None));
}

#[test]
fn a_single_run_sets_nothing_unless_it_was_asked_for() {
    let mut points = [
        point(Policy::Online, 1024, [2.0, 1.9, 0.99, 900.0]),
        point(Policy::Online, 8, [1.9, 0.02, 0.1, 4.0]),
    ];
    points[1].runs = 1;
    let advice = advise(&points, &NOW);
    assert_eq!((advice.finding, advice.set), (Finding::TooFewRuns, None));
    let one = Goal {
        least_runs: 1,
        ..NOW
    };
    assert_eq!(advise(&points, &one).set, Some(points[1].trial));
}

#[test]
fn discards_that_are_off_are_not_switched_on_to_stall() {
    // Smaller ones cost less, and still hold others up.
    let points = [
        point(Policy::Online, 1024, [2.0, 1.9, 0.99, 900.0]),
        point(Policy::Online, 32, [2.0, 0.9, 0.9, 40.0]),
    ];
    let off = Goal {
        online: false,
        ..NOW
    };
    let advice = advise(&points, &off);
    assert_eq!((advice.finding, advice.set), (Finding::WithinNoise, None));
    assert!(advice.text.contains("would slow down"), "{}", advice.text);
    assert_eq!(advise(&points, &NOW).set, Some(points[1].trial));
    // Those that don't may be.
    let harmless = point(Policy::Online, 8, [1.9, 0.02, 0.1, 4.0]);
    let advice = advise(&[points[0].clone(), harmless.clone()], &off);
    assert_eq!(advice.set, Some(harmless.trial));
    assert!(
        advice.text.contains("mount with discard"),
        "{}",
        advice.text
    );
}

#[test]
fn a_law_of_equal_costs_gives_nothing_to_a_limit() {
    // What is lost is the same however it is cut; smaller ones only take longer.
    let points = [
        point(Policy::Online, 1024, [1.0, 0.9, 0.99, 2.0]),
        point(Policy::Online, 32, [1.05, 0.92, 0.99, 2.1]),
        point(Policy::Online, 2, [2.5, 2.4, 0.99, 1.5]),
    ];
    let advice = advise(&points, &NOW);
    assert_eq!((advice.finding, advice.set), (Finding::WithinNoise, None));
    assert!(advice.text.contains("within the noise"), "{}", advice.text);
}

#[test]
fn a_limit_that_changes_no_discard_is_not_advised() {
    // The longest waits differ by chance: the file system sends 128 MiB with both.
    let points = [
        point(Policy::Online, 1024, [0.5, 0.40, 0.9, 90.0]),
        point(Policy::Online, 256, [0.5, 0.41, 0.9, 40.0]),
    ];
    let advice = advise(&points, &NOW);
    assert_eq!((advice.finding, advice.set), (Finding::WithinNoise, None));
}

#[test]
fn only_what_differs_beyond_the_noise_counts_as_less() {
    let points = [
        point(Policy::Online, 1024, [0.5, 0.40, 0.9, 90.0]),
        point(Policy::Online, 32, [0.5, 0.41, 0.9, 40.0]),
    ];
    let advice = advise(&points, &NOW);
    assert_eq!(advice.set, Some(points[1].trial));
    let text = &advice.text;
    assert!(
        text.contains("its longest wait is 40.0 ms instead of 90.0 ms"),
        "{text}"
    );
    assert!(
        !text.contains("0.41") && !text.contains("100 ms is"),
        "{text}"
    );
}

#[test]
fn a_limit_that_costs_less_is_set() {
    let points = [
        point(Policy::Online, 1024, [2.0, 1.9, 0.99, 900.0]),
        point(Policy::Online, 32, [2.0, 1.2, 0.9, 40.0]),
        point(Policy::Online, 8, [1.9, 0.02, 0.1, 4.0]),
    ];
    let advice = advise(&points, &NOW);
    assert_eq!(
        (advice.finding, advice.set),
        (Finding::Limit, Some(points[2].trial))
    );
    assert!(advice.text.contains("8388608"), "{}", advice.text);
}

#[test]
fn pacing_is_advised_with_what_it_costs() {
    let online = point(Policy::Online, 1024, [1.0, 0.9, 0.99, 2.0]);
    let rm = point(Policy::PacedRm, 1024, [9.0, 0.95, 0.3, 2.0]);
    let fstrim = point(Policy::PacedFstrim, 1024, [9.0, 0.9, 0.3, 2.0]);
    let all = [online.clone(), rm, fstrim.clone()];
    let advice = advise(&all, &NOW);
    assert_eq!((advice.finding, advice.set), (Finding::PacedRm, None));
    assert!(advice.text.contains("trimbench rm") && advice.text.contains("policies=fstrim"));
    // Where discards are off already, they needn't be switched on.
    let off = Goal {
        online: false,
        ..NOW
    };
    let advice = advise(&all, &off);
    assert_eq!(
        (advice.finding, advice.set),
        (Finding::PacedFstrim, Some(fstrim.trial))
    );
    let told: String = advice.costs.iter().map(|cost| cost.cost.as_str()).collect();
    assert!(told.contains("wear") && told.contains("slow"), "{told}");
}

#[test]
fn a_paced_way_that_misses_the_goal_is_not_advised() {
    let online = point(Policy::Online, 1024, [2.0, 1.9, 0.99, 900.0]);
    let rm = |lost_s| point(Policy::PacedRm, 1024, [10.0, lost_s, 0.3, 2.0]);
    let fstrim = |lost_s| point(Policy::PacedFstrim, 1024, [10.0, lost_s, 0.3, 2.0]);
    // 16 and 14 % of others' throughput, where 10 % were asked for.
    let points = [online.clone(), rm(1.6), fstrim(1.4)];
    let advice = advise(&points, &NOW);
    assert_eq!((advice.finding, advice.set), (Finding::GoalMissed, None));
    for told in [
        "No paced way held the goal of 10 %",
        "Allow a larger loss (--set slowdown=20%)",
        "`trimbench rm` missed the goal: it cost others 16 %",
        "`trimbench fstrim` missed the goal: it cost others 14 %",
    ] {
        assert!(advice.text.contains(told), "{told}: {}", advice.text);
    }
    let costs = advice.costs.iter();
    let marked = costs.filter(|cost| cost.cost.contains("misses the goal"));
    assert_eq!(marked.count(), 2, "{:?}", advice.costs);
    let missed = points.each_ref().map(|p| p.misses(NOW.slowdown));
    assert_eq!(missed, [None, Some(true), Some(true)]);
    // One that holds it is advised, and the other one's miss is told.
    let advice = advise(&[online, rm(1.6), fstrim(0.9)], &NOW);
    assert_eq!(advice.finding, Finding::PacedFstrim);
    let told = "`trimbench rm` missed the goal";
    assert!(advice.text.contains(told), "{}", advice.text);
}

#[test]
fn without_the_present_setting_nothing_is_said() {
    let other = point(Policy::Online, 32, [1.0, 0.9, 0.99, 2.0]);
    assert_eq!(advise(&[other], &NOW).finding, Finding::TooFewRuns);
    assert_eq!(advise(&[], &NOW).set, None);
}

#[test]
fn the_frontier_is_what_nothing_beats() {
    let points = [
        point(Policy::Online, 1024, [1.0, 0.9, 0.99, 2.0]),
        // Longer, and nothing gained.
        point(Policy::Online, 2, [3.0, 2.9, 0.99, 2.0]),
        // Longer, and gentler.
        point(Policy::PacedRm, 1024, [9.0, 0.95, 0.3, 2.0]),
    ];
    assert_eq!(frontier(&points), [true, false, true]);
    assert_eq!(frontier(&[]), [false; 0]);
}

#[test]
fn what_is_advised_for_its_thin_loss_is_on_the_frontier() {
    // The paced deletion loses as much in all, and next to nothing at a time.
    let points = [
        point(Policy::Online, 1024, [0.25, 0.2, 0.71, 8.0]),
        point(Policy::Online, 8, [1.6, 1.1, 0.76, 7.0]),
        point(Policy::PacedRm, 1024, [2.5, 0.2, 0.66, 9.0]),
    ];
    assert_eq!(advise(&points, &NOW).finding, Finding::PacedRm);
    assert_eq!(frontier(&points), [true, false, true]);
}

fn any_point() -> impl Strategy<Value = Point> {
    let policy = prop::sample::select(Policy::ALL.to_vec());
    let limit = prop::sample::select(vec![1u64, 8, 32, 1024]);
    let figures = [0.1..100.0f64, 0.0..50.0, 0.0..1.0, 0.1..1000.0];
    (policy, limit, figures).prop_map(|(policy, limit, figures)| point(policy, limit, figures))
}

proptest! {
    #[test]
    fn somebody_is_always_on_the_frontier(points in prop::collection::vec(any_point(), 1..6)) {
        // Noise makes "beats" no order, but two points never beat each other outright.
        for a in &points {
            for b in &points {
                let outright = |a: &Point, b: &Point| frontier(&[a.clone(), b.clone()]);
                prop_assert!(outright(a, b).contains(&true));
            }
        }
    }

    #[test]
    fn nothing_is_set_that_was_not_tried(points in prop::collection::vec(any_point(), 0..6), online: bool) {
        let goal = Goal { online, ..NOW };
        let advice = advise(&points, &goal);
        prop_assert!(advice.set.is_none_or(|set| points.iter().any(|p| p.trial == set)));
        // Switching discards off is never said without its price.
        if advice.finding == Finding::PacedFstrim {
            prop_assert!(advice.costs.iter().any(|cost| cost.cost.contains("wear")));
        }
    }
}

#[test]
fn a_median_of_runs_that_differ_has_its_range() {
    let now = point(Policy::Online, 1024, [1.0, 0.6, 0.99, 600.0]);
    let mut rm = point(Policy::PacedRm, 1024, [8.0, 0.4, 0.2, 20.0]);
    (rm.lost_s.low, rm.lost_s.high) = (0.0, 0.72);
    let advice = advise(&[now.clone(), rm.clone()], &NOW);
    assert_eq!(advice.finding, Finding::PacedRm);
    assert!(
        advice.text.contains("costs others 5.0 % (0.0 % to 9.0 %)"),
        "{}",
        advice.text
    );
    let cost = &advice.costs[1].cost;
    assert!(cost.contains("per 100 GiB (0 s to 18.0 s)"), "{cost}");
    // A single run has none, and two digits.
    rm.runs = 1;
    for (lost_s, said) in [
        (1.622, "about 41 s per 100 GiB"),
        (0.1622, "about 4.1 s per"),
        (0.01622, "about 0.41 s per"),
        (16.22, "about 7 min per"),
    ] {
        rm.lost_s.median = lost_s;
        let advice = advise(&[now.clone(), rm.clone()], &NOW);
        let cost = &advice.costs[1].cost;
        assert!(cost.contains(said) && !cost.contains('('), "{cost}");
    }
}
