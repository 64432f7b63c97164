//! `trimbench rm` where discards are sent: what is freed, what is resumed.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::common::gate::times;
use crate::common::loop_fs::{must, names, unmount};
use crate::common::run::{run, start};
use crate::rm_place::{MIB, SLOW, ext4, file, place, removed, rm, seen, written};

#[test]
fn it_ends_when_all_is_discarded() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let before = fs.device().allocated();
    fs::create_dir(here.join("t")).unwrap();
    written(&here.join("t/big"), 64);
    for number in 0..50 {
        fs::write(here.join(format!("t/small{number}")), vec![1; 64 << 10]).unwrap();
    }
    // A sparse file of 4 TiB is as large as what is in it.
    let sparse = here.join("t/sparse");
    written(&sparse, 2);
    must("truncate", &["-s", "4T", &sparse.to_string_lossy()]);
    // What has another name is there after.
    written(&here.join("linked"), 8);
    fs::hard_link(here.join("linked"), here.join("t/linked")).unwrap();
    let done = removed(here, &["-r", "t", "--slowdown", "50%", "--deadline", "1m"]);
    assert!(
        done.succeeds().stderr.contains("other I/O lost"),
        "{}",
        done.text()
    );
    assert_eq!(seen(here), ["linked"]);
    assert_eq!(fs::metadata(here.join("linked")).unwrap().len(), 8 << 20);
    let left = fs.device().allocated();
    assert!(left < before + (24 << 20), "{before} {left}");
}

#[test]
fn what_has_several_names_is_paced_when_the_last_goes() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    // Named themselves, beside each other, and in two trees, as backups have them.
    for (first, second, named) in [
        ("a", "b", ["a", "b"]),
        ("t/a", "t/b", ["t", "u"]),
        ("t/a", "u/a", ["t", "u"]),
    ] {
        let make = || {
            fs::create_dir_all(here.join("t")).unwrap();
            fs::create_dir_all(here.join("u")).unwrap();
            written(&here.join(first), 16);
            fs::hard_link(here.join(first), here.join(second)).unwrap();
        };
        make();
        let arguments = [&["-r"], &named[..]].concat();
        let mut running = start(rm(here, &[&arguments, &SLOW[..]].concat()));
        running.until("a piece of the last name's file is gone", || {
            let trash = names(here).into_iter().find(|name| name.starts_with('.'));
            let shorter = |name| {
                let found = fs::metadata(here.join(trash.as_deref()?).join(name)).ok()?;
                Some(found.is_file() && found.len() < 16 * MIB as u64)
            };
            ["file", "000002"].map(shorter).contains(&Some(true))
        });
        running.signal(Signal::TERM);
        running.wait().fails_with(143, &["--resume"]);
        assert!(!here.join(first).exists() && !here.join(second).exists());
        removed(here, &["--resume", "--slowdown", "100%"]).succeeds();

        // Without being slowed by hand: it knows how much there is.
        let _ = fs::remove_dir_all(here.join("t"));
        make();
        let done = removed(here, &[&arguments, &["--slowdown", "50%"][..]].concat());
        let said = &done.succeeds().stderr;
        assert!(said.contains("freed 16."), "{}", done.text());
    }
}

#[test]
fn what_is_mounted_in_a_tree_is_paced_too() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let (_outer, above) = place();
    let mount = above.join("t/mnt");
    fs::create_dir_all(&mount).unwrap();
    must("rmdir", &[&fs.path().join("lost+found").to_string_lossy()]);
    let (from, to) = (fs.path().to_string_lossy(), mount.to_string_lossy());
    must("mount", &["--bind", &from, &to]);
    let mut all = Vec::new();
    for argument in ["t", "t/mnt"] {
        written(&mount.join("big"), 16);
        let dry = removed(&above, &["-r", "--dry-run", "t/mnt"]);
        all.push((dry, removed(&above, &["-r", argument, "--slowdown", "50%"])));
    }
    unmount(&to);
    for (dry, done) in all {
        assert!(
            dry.stdout.contains(" in 2 names, paced, in place"),
            "{}",
            dry.text()
        );
        done.fails_with(
            1,
            &[
                "freed 16.",
                "cannot remove 't/mnt': Device or resource busy",
            ],
        );
    }
}

#[test]
fn what_somebody_has_open_stays_theirs() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let open = file(&here.join("big"), 8);
    let by = format!("(pid {})", std::process::id());
    let done = removed(here, &["big", "--json", "-"]);
    let said = &done.succeeds().stderr;
    assert!(said.contains("1 file is open in "), "{}", done.text());
    let end = format!("{by}: its 8.0 MiB stay until it closes it");
    assert!(said.contains(&end), "{}", done.text());
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let spared = &json["not_emptied"][0];
    assert_eq!(spared["reason"], "open", "{json}");
    assert_eq!(
        (&spared["files"], &spared["space_stays"]),
        (&1.into(), &true.into())
    );
    assert!(spared["by"].as_str().unwrap().ends_with(&by), "{json}");
    let mut first = [0; 1];
    open.read_exact_at(&mut first, 8 * MIB as u64 - 1).unwrap();
    assert_eq!(first, [1]);
    assert_eq!(seen(here), [""; 0]);
    // A program that runs.
    let program = here.join("program");
    // Written by another process: one of ours that is just being forked would have it open.
    let made = "cat /bin/sleep /dev/zero | head -c 2M > \"$0\" && chmod +x \"$0\"";
    must("sh", &["-c", made, &program.to_string_lossy()]);
    let mut command = Command::new(&program);
    command.arg("60");
    let _runs = start(command);
    let done = removed(here, &["program"]);
    let said = "1 file is open in program (pid ";
    assert!(done.succeeds().stderr.contains(said), "{}", done.text());
    // Small files: nobody waits for their discards, nor says that they never came.
    fs::create_dir(here.join("t")).unwrap();
    let logs: Vec<File> = (0..3)
        .map(|number| {
            let log = File::create_new(here.join(format!("t/log{number}"))).unwrap();
            log.write_all_at(&[1; 400 << 10], 0).unwrap();
            log
        })
        .collect();
    written(&here.join("t/big"), 2);
    let done = removed(here, &["-r", "t", "--slowdown", "50%"]);
    let said = format!("{by}: their 1.2 MiB stay until it closes them");
    assert!(done.succeeds().stderr.contains(&said), "{}", done.text());
    assert!(
        done.stderr.contains("3 files are open in "),
        "{}",
        done.text()
    );
    assert!(!done.stderr.contains("no discards came"), "{}", done.text());
    assert_eq!(logs[2].metadata().unwrap().len(), 400 << 10);
    assert_eq!(seen(here), [""; 0]);
}

#[test]
fn goals_of_all_kinds_are_taken() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    for goal in [
        &["--chunk", "1M", "--sleep", "1ms"][..],
        &["--chunk", "1M", "--sleep", "1ms", "--set", "fsync=false"],
        &["--max-latency", "200ms", "--quiet"],
        &["--profile", "870-evo", "--slowdown", "50%"],
        &["--set", "trash=false", "--slowdown", "50%"],
    ] {
        written(&here.join("big"), 6);
        let done = removed(here, &[goal, &["big"]].concat());
        done.succeeds();
        assert_eq!(seen(here), [""; 0]);
        if goal.contains(&"--quiet") {
            assert_eq!(done.stderr, "");
        }
    }
    written(&here.join("big"), 6);
    let done = removed(
        here,
        &["big", "--profile", "vertex", "--max-latency", "5ms"],
    );
    done.fails_with(1, &["--max-latency"]);
    assert_eq!(seen(here), ["big"]);
    removed(here, &["big", "--profile", "no-such"]).fails_with(2, &["no-such"]);
}

#[test]
fn interrupted_it_is_out_of_sight_and_goes_on() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    fs::create_dir(here.join("t")).unwrap();
    written(&here.join("t/big"), 64);
    fs::write(here.join("kept"), "").unwrap();
    let slow = ["-r", "t", "--chunk", "4M", "--sleep", "300ms"];
    let mut running = start(rm(here, &slow));
    running.until("the trash", || seen(here) == ["trash", "kept"]);
    // Somebody is at it: it is left alone.
    removed(here, &["--resume"]).fails_with(1, &["another process works on it"]);
    running.signal(Signal::INT);
    running.wait().fails_with(130, &["interrupted", "--resume"]);
    assert_eq!(seen(here), ["trash", "kept"]);
    // In another directory it says where.
    fs::create_dir(here.join("other")).unwrap();
    let done = removed(here, &["--resume", "other"]);
    let said = format!(
        "in 'other'; an interrupted removal is in '{}'",
        here.display()
    );
    assert!(done.succeeds().stderr.contains(&said), "{}", done.text());
    fs::remove_dir(here.join("other")).unwrap();
    removed(here, &["--resume=all", "--slowdown", "100%"]).succeeds();
    assert_eq!(seen(here), ["kept"]);
    let done = removed(here, &["--resume", "."]);
    assert!(
        done.succeeds().stderr.contains("nothing to go on with"),
        "{}",
        done.text()
    );
}

#[test]
fn what_is_not_mounted_just_now_is_kept_and_what_was_removed_is_forgotten() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let (here, state) = (fs.path(), tempfile::tempdir().unwrap());
    let noted = |command: &mut Command| {
        command.env("XDG_STATE_HOME", state.path());
    };
    let places = [here.join("one"), here.join("two"), here.to_owned()];
    for place in &places {
        fs::create_dir_all(place).unwrap();
        written(&place.join("big"), 64);
        let mut slow = rm(place, &["big", "--chunk", "4M", "--sleep", "300ms"]);
        noted(&mut slow);
        let mut running = start(slow);
        running.until("the trash", || {
            seen(place).iter().any(|name| name == "trash")
        });
        running.signal(Signal::INT);
        running.wait().fails_with(130, &["--resume"]);
    }

    let all = || {
        let mut command = rm(state.path(), &["--resume=all", "--slowdown", "100%"]);
        noted(&mut command);
        run(command)
    };
    let (device, at) = (fs.device().path().to_string_lossy(), here.to_string_lossy());
    unmount(&at);
    let done = all();
    // All directories that are not there have one line.
    let said = done.succeeds().stderr.clone();
    for part in ["it waits", "(nor in 1 other place); what lies there waits"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(said.matches("cannot look").count(), 1, "{said}");
    must("mount", &["-o", "discard", &device, &at]);
    // The one that is removed is forgotten, without a word.
    fs::remove_dir_all(&places[0]).unwrap();
    let done = all();
    assert!(
        !done.succeeds().stderr.contains("cannot look"),
        "{}",
        done.text()
    );
    assert_eq!(seen(here), ["two"]);
    assert_eq!(seen(&places[1]), [""; 0]);
    assert_eq!(names(&state.path().join("trimbench/trash")), [""; 0]);
}

#[test]
fn what_is_half_emptied_is_gone_on_with_first() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    // Others can write there: each is emptied in the trash, under the same name.
    fs::create_dir(here.join("t")).unwrap();
    must("chmod", &["777", &here.join("t").to_string_lossy()]);
    for name in ["one", "two"] {
        written(&here.join("t").join(name), 32);
    }
    let emptied = |below: u64| {
        let trash = names(here).into_iter().find(|name| name.starts_with('.'));
        let trash = here.join(trash.unwrap_or_default());
        let length = fs::metadata(trash.join("file")).map(|found| found.len());
        length.is_ok_and(|length| length < below).then_some(trash)
    };
    let arguments = [&["-r", "t"], &SLOW[..]].concat();
    let mut running = start(rm(here, &arguments));
    running.until("one is half emptied", || emptied(24 << 20).is_some());
    running.signal(Signal::TERM);
    running.wait().fails_with(143, &["--resume"]);
    let trash = emptied(24 << 20).unwrap();
    let left = fs::metadata(trash.join("file")).unwrap().len();

    let mut running = start(rm(here, &[&["--resume"], &SLOW[..]].concat()));
    running.until("it is gone on with", || emptied(left).is_some());
    assert_eq!(names(&trash.join("000001")).len(), 1, "the other waits");
    running.signal(Signal::TERM);
    running.wait().fails_with(143, &["--resume"]);
    removed(here, &["--resume", "--slowdown", "100%"]).succeeds();
    assert_eq!(seen(here), [""; 0]);
}

#[test]
fn killed_at_any_moment_it_loses_nothing() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    written(&here.join("kept"), 2);
    let (kills, mut in_sight, mut resumed) = (times(12, 200), 0, 0);
    for round in 0..kills {
        fs::create_dir(here.join("t")).unwrap();
        written(&here.join("t/big"), 4);
        for number in 0..20 {
            fs::write(here.join(format!("t/s{number}")), vec![1; 8 << 10]).unwrap();
        }
        written(&here.join("big"), 4);
        let running = start(rm(
            here,
            &["-r", "t", "big", "--chunk", "1M", "--sleep", "5ms"],
        ));
        std::thread::sleep(Duration::from_micros(round as u64 % 40 * 2500));
        // Dropping it kills it.
        drop(running);
        // Each is whole in sight, or out of sight.
        let whole = here.join("t");
        if whole.exists() {
            in_sight += 1;
            assert_eq!(names(&whole).len(), 21);
            assert_eq!(fs::metadata(whole.join("big")).unwrap().len(), 4 << 20);
        }
        if let Ok(big) = fs::metadata(here.join("big")) {
            assert_eq!(big.len(), 4 << 20);
        }
        resumed += u32::from(seen(here).contains(&"trash".to_owned()));
        removed(here, &["--slowdown", "100%", "--resume", "."]).succeeds();
        assert!(
            !seen(here).contains(&"trash".to_owned()),
            "{:?}",
            names(here)
        );
        assert_eq!(fs::metadata(here.join("kept")).unwrap().len(), 2 << 20);
        removed(here, &["-rf", "t", "big", "--slowdown", "100%"]).succeeds();
    }
    eprintln!(
        "{kills} kills: {in_sight} found the tree whole in sight, {resumed} a trash that was resumed; \
         nothing lost"
    );
}

/// As logs of databases are: truncating to more than the length frees nothing of that.
#[test]
fn what_is_allocated_beyond_the_end_is_freed_piece_by_piece() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    fs::write(here.join("log"), "begun").unwrap();
    must(
        "fallocate",
        &["-n", "-l", "96M", &here.join("log").to_string_lossy()],
    );
    assert_eq!(fs::metadata(here.join("log")).unwrap().len(), 5);
    let done = removed(here, &["log", "--slowdown", "50%"]);
    let said = &done.succeeds().stderr;
    assert!(!said.contains("no discards came"), "{}", done.text());
    assert!(said.contains("other I/O lost"), "{}", done.text());
    assert_eq!(seen(here), [""; 0]);
}

#[test]
fn a_full_file_system_is_no_obstacle() {
    let Some(fs) = ext4("discard", 64) else {
        return;
    };
    let here = fs.path();
    fs::create_dir(here.join("t")).unwrap();
    let big = File::create(here.join("t/big")).unwrap();
    let mut at = 0;
    for size in [MIB, 4096, 1024] {
        while let Ok(written) = big.write_at(&vec![1; size], at) {
            if written == 0 {
                break;
            }
            at += written as u64;
        }
    }
    drop(big);
    let done = removed(here, &["-r", "t"]);
    let said = "'t' was removed in place: no trash can be made beside it: No space left on device";
    assert!(done.succeeds().stderr.contains(said), "{}", done.text());
    assert_eq!(seen(here), [""; 0]);
}
