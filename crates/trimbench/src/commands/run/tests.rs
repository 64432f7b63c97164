//! The help gives the defaults that plans have.

use bench::plan::{Arrival, Method, Work};
use bench::scenario::{Actor, Deletion, How};
use clap::CommandFactory;
use units::{parse_byte_rate, parse_duration, parse_size};

/// The values behind `[default: ` in the help of an option, in their order.
fn given(option: &str) -> Vec<String> {
    let cli = crate::cli::Cli::command();
    let run = cli.find_subcommand("run").unwrap();
    let mut all = run.get_arguments();
    let argument = all.find(|one| one.get_long() == Some(option)).unwrap();
    let help = argument.get_long_help().or(argument.get_help()).unwrap();
    let help = help.to_string();
    let values = help.split("[default: ").skip(1);
    values
        .map(|rest| rest[..rest.find([']', ';', ',']).unwrap()].to_owned())
        .collect()
}

fn sizes(option: &str) -> Vec<u64> {
    let all = given(option);
    all.iter().map(|text| parse_size(text).unwrap()).collect()
}

fn seconds(option: &str) -> Vec<f64> {
    let all = given(option);
    let parsed = all.iter().map(|text| parse_duration(text).unwrap());
    parsed.map(|time| time.as_secs_f64()).collect()
}

fn numbers(option: &str) -> Vec<u32> {
    let all = given(option);
    all.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn the_help_gives_the_defaults_of_deletions() {
    let deletion = Deletion::default();
    let plan = |how| deletion.planned(how, 32 << 30).unwrap();
    let Method::Truncate {
        chunk_bytes, sleep, ..
    } = plan(How::Truncate)
    else {
        panic!("{:?}", plan(How::Truncate));
    };
    let Method::Discard { step_bytes } = deletion.planned_on_device() else {
        panic!("{:?}", deletion.planned_on_device());
    };
    let Method::Spill {
        parallel,
        pause,
        run_for,
    } = plan(How::Spill)
    else {
        panic!("{:?}", plan(How::Spill));
    };
    let Method::Purge { at_once, every } = plan(How::Purge) else {
        panic!("{:?}", plan(How::Purge));
    };
    let Method::Lsm {
        levels,
        file_bytes,
        rate_bytes_per_s,
        ..
    } = plan(How::Lsm)
    else {
        panic!("{:?}", plan(How::Lsm));
    };
    assert_eq!(plan(How::Unlink), Method::Unlink { parallel: 1 });
    assert_eq!(sizes("chunk"), [chunk_bytes, step_bytes]);
    assert_eq!(seconds("sleep"), [sleep, pause].map(|t| t.as_secs_f64()));
    assert_eq!(numbers("parallel"), [1, parallel]);
    assert_eq!(numbers("files"), [deletion.planned_files()]);
    assert_eq!(numbers("at-once"), [at_once]);
    assert_eq!(seconds("every"), [every.as_secs_f64()]);
    assert_eq!(numbers("levels"), [levels]);
    assert_eq!(sizes("file-size"), [file_bytes]);
    let rate = &given("write-rate")[0];
    assert_eq!(parse_byte_rate(rate), Ok(rate_bytes_per_s));
    assert_eq!(seconds("run-for"), [run_for.as_secs_f64()]);
}

#[test]
fn the_help_gives_the_defaults_of_actors() {
    let reader = Actor::default().planned();
    let Work::Blocks { block_bytes, .. } = reader.work else {
        panic!("{reader:?}");
    };
    assert_eq!(sizes("block-size"), [u64::from(block_bytes)]);
    let Arrival::Closed { depth, batch } = reader.arrival else {
        panic!("{reader:?}");
    };
    assert_eq!(numbers("depth")[0], depth);
    assert_eq!(numbers("batch"), [batch]);
}
