//! io_uring forbidden, as containers and hardened machines do it.

use std::process::Command;

use crate::common::disturb::{Sysctl, without_io_uring};
use crate::common::gate::{LOOP_EXT4, Need, alone, beside, lacks, only_in_soak};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::run;
use crate::quick::{Files, Measured, command_on};

const PYTHON: &[Need] = &[Need::Tool("python3")];

fn forbidden(fs: &LoopFs, arguments: &[&str]) -> Measured {
    let files = Files::new();
    let command: Command = without_io_uring(&command_on(fs.path(), &files, arguments));
    files.read(run(command))
}

#[test]
fn a_refused_engine_costs_no_earlier_record() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let files = Files::new();
    std::fs::write(files.record(), "precious").unwrap();
    let command = command_on(fs.path(), &files, &["--engine", "io_uring"]);
    run(without_io_uring(&command)).fails_with(2, &["io_uring", "sync"]);
    assert_eq!(std::fs::read_to_string(files.record()).unwrap(), "precious");
    assert!(!files.verdict().exists(), "an empty file is left");
}

fn quiet_fs() -> Option<LoopFs> {
    (!lacks(LOOP_EXT4) && !lacks(PYTHON))
        .then(|| LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs))
}

#[test]
fn auto_falls_back_to_libaio_and_says_so() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let measured = forbidden(&fs, &["--engine", "auto"]).succeeds();
    assert_eq!(measured.actor(0)["engine"], "libaio");
    assert!(measured.total(0, "ops") > 0);
    assert!(
        measured.warnings().contains("io_uring"),
        "{}",
        measured.warnings()
    );
    assert!(
        measured.done.text().contains("io_uring"),
        "{}",
        measured.done.text()
    );
}

#[test]
fn asked_for_by_name_it_is_refused_with_what_to_do() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    for engine in ["io_uring", "null"] {
        let measured = forbidden(&fs, &["--engine", engine]);
        measured.done.fails_with(2, &["io_uring", "sync"]);
        assert_eq!(fs.names(), [""; 0]);
    }
}

#[test]
fn sync_never_asks_for_it() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let measured = forbidden(&fs, &["--engine", "sync"]).succeeds();
    assert!(
        !measured.warnings().contains("io_uring"),
        "{}",
        measured.warnings()
    );
}

/// Only in the soak: the setting is the whole machine's.
#[test]
fn by_sysctl_as_well() {
    let _turn = alone();
    if !only_in_soak() || lacks(&[Need::File("/proc/sys/kernel/io_uring_disabled")]) {
        return;
    }
    let Some(fs) = quiet_fs() else { return };
    let files = Files::new();
    let _restored = Sysctl::set("kernel/io_uring_disabled", "2");
    let measured = files
        .read(run(command_on(fs.path(), &files, &[])))
        .succeeds();
    assert_eq!(measured.actor(0)["engine"], "libaio");
}
