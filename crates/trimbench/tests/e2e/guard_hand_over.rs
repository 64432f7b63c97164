//! `trimbench guard --hand-over`: files that programs rename into a directory, or name on a socket.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::gate::{beside, lacks, times};
use crate::common::run::{Running, run, start};
use crate::guard_place::{ended, guard, guarded, hidden, seen, started, status};
use crate::rm_place::{MIB, USERS, ext4, place, written};

fn hands_over(directory: &Path, arguments: &[&str]) -> Running {
    let mut running = started(directory, &[&["--hand-over"], arguments].concat());
    let socket = directory.join(".trimbench/socket");
    running.until("the socket", || socket.exists());
    running
}

/// Asks on a connection of its own, and returns the answer.
#[track_caller]
fn asked(directory: &Path, question: &str) -> Value {
    let mut stream = UnixStream::connect(directory.join(".trimbench/socket")).unwrap();
    stream
        .write_all(format!("{question}\n").as_bytes())
        .unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn free_later(directory: &Path, path: &str) -> Value {
    asked(
        directory,
        &json!({ "do": "free_later", "path": path }).to_string(),
    )
}

#[test]
fn what_is_renamed_into_the_inbox_is_freed() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let mut running = start(guard(here, &[".", "--hand-over", "--slowdown", "100%"]));
    let inbox = here.join(".trimbench/in");
    running.until("the inbox", || inbox.exists());
    written(&here.join("large"), 16);
    fs::create_dir(here.join("tree")).unwrap();
    written(&here.join("tree/part"), 4);
    fs::write(here.join("tree/small"), "x").unwrap();
    let free = fs.free();
    fs::rename(here.join("large"), inbox.join("a\u{1b}[2Jb")).unwrap();
    fs::rename(here.join("tree"), inbox.join("tree")).unwrap();
    running.until("an empty inbox", || {
        fs::read_dir(&inbox).unwrap().count() == 0
    });
    running.until("the space", || fs.free() >= free + 19 * MIB as u64);
    // Nothing but the inbox is left, and it goes with the guard.
    ended(running);
    assert_eq!((hidden(here), seen(here).len()), (None, 0));
}

#[test]
fn what_was_handed_over_survives_a_kill() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let kills = times(6, 100);
    for i in 0..kills {
        let slow = [".", "--hand-over", "--min-size", "1M", "--slowdown", "1%"];
        let mut running = start(guard(here, &slow));
        running.until_said("guards files", 1);
        for name in ["one", "two"] {
            fs::write(here.join(name), vec![1; 3 * MIB]).unwrap();
            fs::rename(here.join(name), here.join(".trimbench/in").join(name)).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(97 * i as u64 % 400));
        }
        running.signal(Signal::KILL);
        running.wait();
    }
    let mut running = hands_over(here, &[]);
    running.until_said("guards files", 1);
    running.until("an empty inbox", || {
        fs::read_dir(here.join(".trimbench/in")).unwrap().count() == 0
    });
    guarded(here, &["drain", "."]).succeeds();
    ended(running);
    assert_eq!((hidden(here), seen(here).len()), (None, 0));
    assert!(fs.free() > 400 * MIB as u64, "{}", fs.free());
}

#[test]
fn a_program_asks_on_the_socket_and_never_waits() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let mut running = hands_over(here, &[]);
    fs::create_dir(here.join("d")).unwrap();
    written(&here.join("d/file"), 8);
    assert_eq!(free_later(here, "d/file"), json!({ "ok": true }));
    assert!(!here.join("d/file").exists());
    running.until_said("freed 1 file", 1);
    for wrong in ["d/file", "../d", "/etc/passwd", ".trimbench/in", "."] {
        let refused = free_later(here, wrong);
        assert_eq!(refused["ok"], false, "{wrong}: {refused}");
    }
    let answer = asked(here, r#"{"do":"status"}"#);
    assert_eq!(
        (&answer["ok"], &answer["waiting"]["files"]),
        (&true.into(), &0.into())
    );
    for nonsense in ["", "{}", "stop", r#"{"do":"stop"}"#] {
        assert_eq!(asked(here, nonsense)["ok"], false, "{nonsense}");
    }
    // Bytes are granted soon, and the answers come meanwhile.
    let mut granted = 0;
    running.until("256 MiB", || {
        let left = 256 * MIB as u64 - granted;
        let answer = asked(
            here,
            &json!({ "do": "may_free", "bytes": left }).to_string(),
        );
        granted += answer["bytes"].as_u64().unwrap();
        assert_eq!(
            answer["ask_again_ms"].is_null(),
            granted == 256 * MIB as u64,
            "{answer}"
        );
        granted == 256 * MIB as u64
    });
    let mut stream = UnixStream::connect(here.join(".trimbench/socket")).unwrap();
    let _ = stream.write_all(&vec![b'x'; 20 << 10]);
    let mut line = String::new();
    let _ = BufReader::new(stream).read_line(&mut line);
    assert!(line.is_empty() || line.contains("too long"), "{line}");
    ended(running);
}

/// Another user can't connect, and the owner of the directory gains nothing by root's guard.
#[test]
fn other_users_gain_nothing_by_a_hand_over() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    if lacks(USERS) {
        return;
    }
    let here = fs.path().join("place");
    fs::create_dir(&here).unwrap();
    chown(&here, Some(65_534), Some(65_534)).unwrap();
    let mut running = hands_over(&here, &[]);
    let socket = here.join(".trimbench/socket").metadata().unwrap();
    assert_eq!((socket.uid(), socket.mode() & 0o777), (65_534, 0o600));
    assert_eq!(here.join(".trimbench/in").metadata().unwrap().uid(), 65_534);
    // Root's own below the guarded directory.
    fs::create_dir(here.join("roots")).unwrap();
    written(&here.join("roots/precious"), 2);
    fs::write(fs.path().join("outside"), vec![1; 2 * MIB]).unwrap();
    for path in ["roots/precious", "roots"] {
        let refused = free_later(&here, path);
        assert_eq!(refused["ok"], false, "{path}: {refused}");
    }
    symlink(fs.path(), here.join("up")).unwrap();
    assert_eq!(free_later(&here, "up/outside")["ok"], false);
    // The owner swaps names in the inbox all the time.
    let inbox = here.join(".trimbench/in");
    let over = AtomicBool::new(false);
    let races = times(200, 10_000);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for _ in 0..races {
                let bait = inbox.join("bait");
                // A rename between two names of one file leaves both.
                let _ = fs::remove_file(&bait);
                let _ = fs::write(&bait, vec![9; MIB]);
                let _ = chown(&bait, Some(65_534), Some(65_534));
                let _ = fs::remove_file(&bait);
                let _ = symlink(fs.path().join("outside"), &bait);
                let _ = fs::remove_file(&bait);
                let _ = symlink("../..", &bait);
                let _ = fs::remove_file(&bait);
                let _ = fs::hard_link(here.join("roots/precious"), &bait);
                let _ = fs::rename(&bait, inbox.join("other"));
            }
            over.store(true, Ordering::Relaxed);
        });
        running.until("all races", || over.load(Ordering::Relaxed));
    });
    let whole = |path: &Path| fs::read(path).is_ok_and(|content| content.len() == 2 * MIB);
    assert!(whole(&here.join("roots/precious")) && whole(&fs.path().join("outside")));
    // A tree of root's in it stays.
    fs::rename(here.join("roots"), inbox.join("roots")).unwrap();
    running.until_said("belong to another user", 1);
    assert!(whole(&inbox.join("roots/precious")));
    assert_eq!(
        status(&here)["pid"].as_u64(),
        Some(running.pid().as_raw_nonzero().get() as u64)
    );
    ended(running);
    eprintln!("{races} races: nothing was gained");
}

#[test]
fn install_writes_a_hardened_service_once() {
    let _turn = beside();
    let (_outer, here) = place();
    let units = here.join("units");
    fs::create_dir(&units).unwrap();
    let at = units.to_string_lossy().into_owned();
    let install = |more: &[&str]| {
        let all = [&[".", "--install", "--unit-dir", &at], more].concat();
        run(guard(&here, &all))
    };
    install(&[]).fails_with(2, &["--force"]);
    let done = install(&["--force", "--by", "link", "--slowdown", "5%", "--hand-over"]);
    done.succeeds();
    let text = fs::read_to_string(units.join("trimbench-guard.service")).unwrap();
    let path = here.to_string_lossy();
    for part in [
        "--by=link",
        "--slowdown=5%%",
        "--hand-over --keep-names",
        &format!("ReadWritePaths={path}\n"),
        &format!("RequiresMountsFor={path}\n"),
        "ProtectSystem=strict\n",
        "PrivateNetwork=yes\n",
        "Restart=on-failure\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // With it, systemd forbids openat2, and guard could keep no file.
    assert!(!text.contains("RestrictSUIDSGID=yes"), "{text}");
    install(&["--force", "--by", "trim", "--most", "5%"]).succeeds();
    fs::write(units.join("trimbench-guard.service"), "mine").unwrap();
    install(&["--force"]).fails_with(2, &["wasn't written by trimbench"]);
    let mut checked = start(guard(&here, &[".", "--by", "link", "--quiet"]));
    checked.until("a hidden directory", || hidden(&here).is_some());
    ended(checked);
}
