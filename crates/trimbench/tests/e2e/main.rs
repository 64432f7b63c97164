//! The command line, end to end: the built binary on file systems of the tests' own.

#![allow(clippy::unwrap_used, unreachable_pub)] // helpers fail for the test, and are seen by it alone

#[path = "../common/mod.rs"]
mod common;

mod absent;
mod actors;
mod bad_place;
mod bad_usage;
mod compare;
mod counted;
mod deleters;
mod deletion;
mod disk_trouble;
mod event;
mod fio;
mod fit;
mod foreground;
mod fstrim;
mod fstrim_drive;
mod fstrim_resume;
mod help;
mod hostile_names;
mod import;
mod import_devices;
mod inspect;
mod inspect_prove;
mod interrupted;
mod killed;
mod lab;
mod lab_commits;
mod lab_drive;
mod lab_gone;
mod lab_run;
mod lab_time;
mod make_run;
mod many_files;
mod no_io_uring;
mod not_restored;
mod outputs;
mod own_scenario;
mod phases;
mod quick;
mod raw_device;
mod real_disk;
mod report;
mod rm;
mod rm_drive;
mod rm_hostile;
mod rm_others;
mod rm_place;
mod rm_signals;
mod rm_small;
mod rm_space;
mod rm_systems;
mod rm_trouble;
mod rm_truth;
mod scenarios;
mod sim;
mod sim_slurm;
mod tune;
mod tune_limits;
mod verdicts;
mod verify;
