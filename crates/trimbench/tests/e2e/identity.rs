//! Whose a result is: the same block in all of them, and the parts that `TRIMBENCH_IDENTITY` keeps
//! out.

use std::fs;

use serde_json::{Value, json};

use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::{Done, run, trimbench};

/// The outcome of a command whose environment names these parts.
fn with(identity: &str, arguments: &[&str]) -> Done {
    let states = tempfile::tempdir().unwrap();
    let mut command = trimbench();
    command.env("TRIMBENCH_IDENTITY", identity).args(arguments);
    command.env("STATE_DIRECTORY", states.path());
    run(command)
}

/// The origin of a result on standard output.
fn origin(done: &Done) -> Value {
    let result: Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
    result["origin"].clone()
}

#[test]
fn every_result_has_the_same_origin() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let filesystem = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Tmpfs);
    let at = filesystem.path().to_str().unwrap();
    let file = filesystem.path().join("file");
    fs::write(&file, vec![1; 1 << 20]).unwrap();
    let file = file.to_str().unwrap();
    let commands: [&[&str]; 4] = [
        &["inspect", "--json", "-", at],
        &["fstrim", "--json", "-", at],
        &["rm", "--json", "-", file],
        &["verify", "--json", "-", "--for", "1s", "--size", "16M", at],
    ];
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut ids = Vec::new();
    for arguments in commands {
        let found = origin(&with("host=rack-3", arguments));
        assert_eq!(found["host"], "rack-3", "{arguments:?}");
        assert_eq!(found["kernel"], kernel.trim());
        assert_eq!(found["arguments"], json!(arguments));
        let target = &found["targets"][0];
        assert_eq!(
            (&target["mount"], &target["file_system"]),
            (&json!(at), &json!("ext4"))
        );
        assert!(
            target["options"]
                .as_array()
                .unwrap()
                .contains(&json!("discard"))
        );
        assert_eq!(target["drives"][0], found["drives"][0]["name"]);
        assert!(found["drives"][0]["transport"].is_string());
        ids.push(found["id"].clone());
    }
    ids.dedup();
    assert_eq!(ids.len(), commands.len());
}

#[test]
fn parts_of_the_identity_are_kept_out() {
    let all = |identity| origin(&with(identity, &["inspect", "--all", "--json", "-"]));
    let (shown, hidden) = (all(""), all("no-serial, no-machine-id"));
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    if id.trim().len() == 32 {
        let hashed = shown["machine_id"].as_str().unwrap();
        assert!(hashed.len() == 32 && hashed != id.trim());
    }
    assert_eq!(hidden["machine_id"], Value::Null);
    assert_eq!(hidden["host"], shown["host"]);
    for drive in hidden["drives"].as_array().unwrap() {
        assert_eq!(drive["serial"], Value::Null);
    }
    // A word that is misspelt must show nothing.
    with("no-serials", &["inspect"]).fails_with(2, &["TRIMBENCH_IDENTITY", "'no-serials'"]);
}
