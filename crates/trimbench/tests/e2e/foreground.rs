//! Options that say what the foreground does.

use crate::common::gate::{LOOP_EXT4, alone, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::at_once;
use crate::quick::{Measured, measure, number};

fn quiet_fs() -> LoopFs {
    LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs)
}

/// A run that deletes nothing: only its foreground is looked at.
fn loaded(arguments: &[&str]) -> Option<Measured> {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return None;
    }
    let arguments = [&["--delete", "none"], arguments].concat();
    let measured = measure(quiet_fs().path(), &arguments).succeeds();
    assert!(measured.total(0, "ops") > 0, "the foreground did nothing");
    assert_eq!(measured.total(0, "errors"), 0);
    Some(measured)
}

#[test]
fn by_default_it_reads_random_blocks_past_the_cache() {
    let Some(measured) = loaded(&[]) else { return };
    let actor = measured.actor(0);
    assert_eq!(actor["op"], "read");
    assert_eq!(actor["pattern"], "random");
    assert_eq!(actor["block_bytes"], 4096);
    assert_eq!(actor["direct"], true);
    assert_eq!(actor["loop"], "closed");
    assert_eq!(actor["depth"], 8);
    assert_eq!(measured.total(0, "bytes"), 4096 * measured.total(0, "ops"));
}

#[test]
fn op_write_overwrites_the_file() {
    let Some(measured) = loaded(&["--op", "write"]) else {
        return;
    };
    assert_eq!(measured.actor(0)["op"], "write");
    let written: u64 = measured
        .lines("interval")
        .filter_map(|interval| interval["devices"][0]["write_bytes"].as_u64())
        .sum();
    assert!(written >= measured.total(0, "bytes"));
}

#[test]
fn pattern_and_block_size_and_depth_are_kept() {
    let arguments = [
        "--set",
        "actor.pattern=sequential",
        "--set",
        "actor.block-size=64k",
        "--depth",
        "3",
    ];
    let Some(measured) = loaded(&arguments) else {
        return;
    };
    let actor = measured.actor(0);
    assert_eq!(actor["pattern"], "sequential");
    assert_eq!(actor["block_bytes"], 65536);
    assert_eq!(actor["depth"], 3);
    assert_eq!(measured.total(0, "bytes"), 65536 * measured.total(0, "ops"));
    // No more than that many are ever in flight at the device, beside the canary's one.
    let most = measured
        .lines("interval")
        .filter_map(|interval| interval["devices"][0]["in_flight"].as_u64())
        .max();
    assert!(most.unwrap() <= 4 + 16, "{most:?}");
}

#[test]
fn batch_is_written_down_and_works() {
    let Some(measured) = loaded(&["--depth", "16", "--set", "actor.batch=8"]) else {
        return;
    };
    let scenario = measured.head()["scenario"].to_string();
    assert!(scenario.contains("\"batch\":8"), "{scenario}");
}

#[test]
fn rate_is_an_open_loop_of_that_rate() {
    let _turn = alone();
    if lacks(LOOP_EXT4) {
        return;
    }
    let with = |arrival: &'static str| {
        move || {
            let arguments = [
                "--rate",
                "500",
                "--set",
                arrival,
                "--baseline",
                "2s",
                "--delete",
                "none",
            ];
            measure(quiet_fs().path(), &arguments).succeeds()
        }
    };
    let both = at_once([&with("arrival=constant"), &with("arrival=poisson")]);
    for (measured, poisson) in both.into_iter().zip([false, true]) {
        let kind = measured.actor(0);
        assert_eq!(kind["loop"], "open");
        assert_eq!(number(&kind["rate_per_s"]), 500.0);
        assert_eq!(kind["poisson"], poisson);
        // 1000 arrivals: six standard deviations of a Poisson count are 190.
        let intervals = measured
            .lines("interval")
            .filter(|i| !i["actors"][0].is_null());
        let seconds: f64 = intervals.map(|interval| number(&interval["seconds"])).sum();
        let rate = measured.total(0, "ops") as f64 / seconds;
        assert!(
            (400.0..600.0).contains(&rate),
            "poisson {poisson}: {rate}/s"
        );
    }
}

#[test]
fn buffered_goes_through_the_cache() {
    let Some(measured) = loaded(&["--set", "actor.buffered=true"]) else {
        return;
    };
    assert_eq!(measured.actor(0)["direct"], false);
}

#[test]
fn every_engine_works_and_is_named() {
    for (engine, named) in [
        ("auto", "io_uring"),
        ("io_uring", "io_uring"),
        ("sync", "sync"),
        ("null", "null"),
    ] {
        let Some(measured) = loaded(&["--engine", engine]) else {
            return;
        };
        assert_eq!(measured.actor(0)["engine"], named);
    }
}

#[test]
fn foreground_size_is_the_size_of_its_file() {
    let Some(measured) = loaded(&["--set", "foreground.size=24M", "--set", "seed=77"]) else {
        return;
    };
    let scenario = measured.head()["scenario"].to_string();
    assert!(scenario.contains(&(24u64 << 20).to_string()), "{scenario}");
    assert!(scenario.contains("\"seed\":77"), "{scenario}");
}

#[test]
fn the_canary_reads_beside_the_foreground_unless_told_not_to() {
    let Some(with) = loaded(&["--set", "canary=50", "--baseline", "1s"]) else {
        return;
    };
    assert_eq!(with.actor(1)["name"], "canary");
    assert_eq!(with.actor(1)["loop"], "open");
    assert_eq!(number(&with.actor(1)["rate_per_s"]), 50.0);
    assert!(with.total(1, "ops") > 0);
    let Some(without) = loaded(&["--set", "canary=0"]) else {
        return;
    };
    assert_eq!(without.head()["actors"].as_array().unwrap().len(), 1);
}
