//! `trimbench fstrim --set lease=…`: machines that share storage trim one after the other.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::json;
use testkit::api_server::ApiServer;

use crate::common::gate::{LOOP_EXT4, Need, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On};
use crate::common::run::{run, start};
use crate::fstrim::{fstrim, trimmed};

/// The Lease of the tests, as the server and as the option names it.
const PATH: &str = "storage/leases/array";
const LEASE: &str = "k8s:storage/array";

fn made() -> LoopFs {
    LoopFs::new(Fs::Ext4, "nodiscard", 256, On::Tmpfs)
}

/// A trim that asks a server for the lease.
fn asking(server: &ApiServer, states: &Path, arguments: &[&str]) -> Command {
    let mut command = fstrim(
        states,
        &[&["--set", &*format!("lease={LEASE}")], arguments].concat(),
    );
    command.env("TRIMBENCH_KUBERNETES_API", server.url());
    command
}

#[test]
fn who_shares_storage_waits_for_the_lock_on_a_file() {
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("fstrim")]) {
        return;
    }
    let _turn = beside();
    let made = made();
    let states = tempfile::tempdir().unwrap();
    let lease = states.path().join("lease");
    let at = [
        made.path().to_str().unwrap(),
        "--set",
        &*format!("lease={}", lease.display()),
    ];
    let held = fs::File::create(&lease).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let mut stopped = start(fstrim(states.path(), &at));
    let mut waiting = start(fstrim(states.path(), &at));
    for running in [&mut stopped, &mut waiting] {
        running.until_said("waits for", 1);
    }
    stopped.signal(Signal::TERM);
    assert_eq!(stopped.wait().code(), Some(143));
    assert!(!waiting.is_over(), "the lease is held");
    drop(held);
    waiting.wait().succeeds();
    let dry = trimmed(states.path(), &[&at[..], &["--dry-run"]].concat());
    dry.succeeds();
    let nowhere = trimmed(states.path(), &[at[0], "--set", "lease=/nonexistent/lease"]);
    nowhere.fails_with(2, &["lease=/nonexistent/lease"]);
}

/// Two nodes wait for a third, and then race.
#[test]
fn two_nodes_never_have_a_lease_of_kubernetes_at_once() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let server = ApiServer::start();
    server.hold(PATH, Some("a third"));
    let nodes = [0, 1].map(|_| (made(), tempfile::tempdir().unwrap()));
    let mut racing = nodes.each_ref().map(|(made, states)| {
        let at = made.path().to_str().unwrap();
        start(asking(&server, states.path(), &[at]))
    });
    for node in &mut racing {
        node.until_said("waits for the Lease storage/array, which a third holds", 1);
    }
    server.hold(PATH, None);
    for node in racing {
        node.wait().succeeds();
    }
    for event in server.events() {
        assert_eq!(
            (&event["type"], &event["reason"]),
            (&json!("Normal"), &json!("Trimmed"))
        );
        assert_eq!(event["involvedObject"]["name"], "array");
        let message = event["message"].as_str().unwrap();
        assert!(
            message.contains(": trimmed ") && message.contains("; goal --slowdown 10%"),
            "{message}"
        );
    }
    assert_eq!(server.events().len(), 2);
    // Each took it from nobody, and gave it back.
    let changes = server.changes();
    assert_eq!(changes.len(), 6, "{changes:?}");
    assert_eq!(changes[1], (Some("a third".to_owned()), None));
    for pair in changes[2..].chunks(2) {
        assert!(pair[0].0.is_none() && pair[0].1.is_some(), "{changes:?}");
        assert!(pair[1].0 == pair[0].1 && pair[1].1.is_none(), "{changes:?}");
    }
    assert_ne!(changes[2].1, changes[4].1);
    assert_eq!(server.spec(PATH)["leaseTransitions"], 2);
}

#[test]
fn a_signal_releases_a_lease_and_a_lost_one_ends_the_trim() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let server = ApiServer::start();
    let (made, states) = (made(), tempfile::tempdir().unwrap());
    let at = made.path().to_str().unwrap();
    let trimming = || {
        let mut trim = start(asking(&server, states.path(), &["--set", "rate=1k", at]));
        trim.until("it trims", || {
            server.spec(PATH)["holderIdentity"].is_string()
                && fs::read_dir(states.path()).unwrap().count() > 1
        });
        trim
    };
    let stopped = trimming();
    stopped.signal(Signal::TERM);
    stopped.wait().fails_with(143, &["interrupted at"]);
    assert!(server.spec(PATH)["holderIdentity"].is_null());
    let event = &server.events()[0];
    assert_eq!(
        (&event["type"], &event["reason"]),
        (&json!("Warning"), &json!("TrimInterrupted"))
    );
    let robbed = trimming();
    server.hold(PATH, Some("a thief"));
    let lost = "the Lease storage/array is lost: a thief has it";
    robbed
        .wait()
        .fails_with(1, &["interrupted at", lost, "--resume"]);
    assert_eq!(server.spec(PATH)["holderIdentity"], "a thief");
}

#[test]
fn a_lease_that_cannot_be_had_is_explained() {
    let _turn = beside();
    let server = ApiServer::start();
    let states = tempfile::tempdir().unwrap();
    server.fail(Some(403));
    let forbidden = run(asking(&server, states.path(), &["/"]));
    forbidden.fails_with(1, &["the test wants it", "deploy/kubernetes/lease.yaml"]);
    let mut outside = fstrim(states.path(), &["--set", "lease=k8s", "/"]);
    outside
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env_remove("TRIMBENCH_KUBERNETES_API");
    run(outside).fails_with(2, &["this is no pod", "kubectl proxy"]);
    trimmed(states.path(), &["--set", "lease=k8s:No", "/"])
        .fails_with(2, &["is no name of a Lease"]);
    let timer = ["--install-timer", "--set", "lease=k8s", "--dry-run", "/"];
    trimmed(states.path(), &timer).fails_with(2, &["fstrim.yaml"]);
}
