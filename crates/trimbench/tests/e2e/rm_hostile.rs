//! `trimbench rm` where others mean harm: nothing outside of what was named is touched.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Mode};

use crate::common::gate::{Need, lacks, times};
use crate::common::loop_fs::{must, names};
use crate::common::run::{run, start};
use crate::rm_place::{MIB, SLOW, ext4, removed, rm, seen, written};

#[test]
fn a_file_linked_into_the_tree_and_out_again_is_not_emptied() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    written(&here.join("precious"), 4);
    let (races, mut links) = (times(30, 2000), 0u64);
    for _ in 0..races {
        fs::create_dir_all(here.join("t/d")).unwrap();
        // Others can change names there, so that a link count proves nothing.
        fs::set_permissions(here.join("t/d"), fs::Permissions::from_mode(0o777)).unwrap();
        let root = File::open(here).unwrap();
        let theirs = File::open(here.join("t/d")).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let flags = AtFlags::empty();
                    links += u64::from(
                        rustix::fs::linkat(&root, "precious", &theirs, "f", flags).is_ok(),
                    );
                    let _ = rustix::fs::unlinkat(&theirs, "f", flags);
                }
            });
            removed(here, &["-rf", "t", "--slowdown", "100%", "--quiet"]);
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::metadata(here.join("precious")).unwrap().len(), 4 << 20);
        removed(here, &["-rf", "t", "--slowdown", "100%"]);
    }
    let content = fs::read(here.join("precious")).unwrap();
    assert!(content.iter().all(|&byte| byte == 1));
    eprintln!("{races} races, {links} links made: the file linked in is whole");
}

#[test]
fn in_place_a_file_that_others_can_reach_loses_its_name_first() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let mode = |bits: u32| fs::set_permissions(here, fs::Permissions::from_mode(bits)).unwrap();
    let path = here.join("big").to_string_lossy().into_owned();
    // Others may link it there, or open it while it shrinks.
    for (directory, owner, file_mode, name_first) in [
        (0o755, "0", "600", true),
        (0o755, "65534", "644", true),
        (0o755, "0", "666", true),
        (0o700, "65534", "644", false),
    ] {
        mode(directory);
        written(&here.join("big"), 16);
        must("chown", &[owner, &path]);
        must("chmod", &[file_mode, &path]);
        let mut running = start(rm(
            here,
            &[&["--set", "trash=false", "big"], &SLOW[..]].concat(),
        ));
        let length = || fs::metadata(here.join("big")).map(|found| found.len());
        let begun = |length: u64| length < 16 * MIB as u64;
        running.until("a piece, or its name", || length().map_or(true, begun));
        assert_eq!(length().is_err(), name_first, "{directory:o} {owner}");
        running.signal(rustix::process::Signal::KILL);
        running.wait();
        let _ = fs::remove_file(here.join("big"));
    }
}

/// The remains of a killed deletion of `t`, without what belongs to no deletion.
fn left_behind(here: &Path) -> String {
    fs::create_dir(here.join("t")).unwrap();
    written(&here.join("t/big"), 16);
    fs::create_dir(here.join("outside")).unwrap();
    fs::write(here.join("outside/precious"), "years of work").unwrap();
    let slow = ["-r", "t", "--chunk", "1M", "--sleep", "300ms"];
    let mut running = start(rm(here, &slow));
    running.until("the trash", || seen(here) == ["trash", "outside"]);
    // Dropping it kills it.
    drop(running);
    let trash = names(here).into_iter().find(|name| name.starts_with('.'));
    trash.unwrap()
}

/// Journals that nobody of ours has written.
fn journals(own: &[u8]) -> Vec<Vec<u8>> {
    let head =
        |entries: &str| format!("{{\"format\":\"trimbench.trash/1\",\"entries\":{entries}}}\n");
    let entry = |number: &str, name: &str| {
        format!(
            "{{\"number\":{number},\"name\":{name},\"path\":\"t\",\"one_file_system\":false}}\n"
        )
    };
    let mut all: Vec<Vec<u8>> = (0..own.len())
        .step_by(9)
        .map(|end| own[..end].to_vec())
        .collect();
    for (entries, number, name) in [
        ("1", "1", "\"../outside/precious\""),
        ("1", "1", "\"outside/precious\""),
        ("1", "1", "\"/etc/passwd\""),
        ("1", "1", "\"..\""),
        ("1", "1", "\"\""),
        ("1", "1", "\"a\\u0000b\""),
        ("1", "1", "[46,46,47,97]"),
        ("1", "1", "[300]"),
        ("1", "0", "\"outside\""),
        ("1", "4294967296", "\"outside\""),
        ("1", "-1", "\"outside\""),
        ("18446744073709551615", "1", "\"t\""),
        ("-1", "1", "\"t\""),
        ("1e99", "1", "\"t\""),
    ] {
        all.push(format!("{}{}", head(entries), entry(number, name)).into_bytes());
    }
    all.push(format!("{}{}", head("2"), entry("1", "\"t\"").repeat(2)).into_bytes());
    all.push(vec![0xff; 4096]);
    all.push(vec![b'['; 200_000]);
    // A byte here and there.
    let mut random = 1u64;
    for _ in 0..times(40, 1000) {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let mut text = own.to_vec();
        let at = (random >> 33) as usize % text.len();
        text[at] = (random >> 56) as u8;
        all.push(text);
    }
    all
}

#[test]
fn no_journal_leads_outside() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let name = left_behind(here);
    let (trash, kept) = (here.join(&name), here.join("lost+found/kept"));
    let path = |path: &Path| path.to_string_lossy().into_owned();
    must("cp", &["-a", &path(&trash), &path(&kept)]);
    let own = fs::read(kept.join("journal")).unwrap();
    let (mut refused, mut resumed) = (0, 0);
    let mut attempt = |spoil: &dyn Fn(&Path)| {
        must("rm", &["-rf", &path(&trash), &path(&here.join("t"))]);
        must(
            "cp",
            &["-a", "--reflink=never", &path(&kept), &path(&trash)],
        );
        spoil(&trash);
        let done = removed(here, &["--resume", ".", "--slowdown", "100%"]);
        assert!(matches!(done.code(), Some(0 | 1)), "{}", done.text());
        assert!(!done.stderr.contains("panicked"), "{}", done.text());
        if done.code() == Some(1) {
            assert!(
                done.stderr.contains("it is left alone, because"),
                "{}",
                done.text()
            );
            refused += 1;
        } else {
            resumed += 1;
        }
        let precious = fs::read_to_string(here.join("outside/precious"));
        assert_eq!(precious.unwrap(), "years of work", "{}", done.text());
        assert_eq!(names(&here.join("outside")), ["precious"]);
        assert!(!here.join("../passwd").exists() && Path::new("/etc/passwd").exists());
    };
    // Nothing wrong with it: then it is gone on with.
    attempt(&|_| {});
    for text in journals(&own) {
        attempt(&|trash| fs::write(trash.join("journal"), &text).unwrap());
    }
    // No file at all.
    let replaced = |trash: &Path| {
        let journal = trash.join("journal");
        fs::remove_file(&journal).unwrap();
        journal
    };
    attempt(&|trash| symlink("/etc/passwd", replaced(trash)).unwrap());
    attempt(&|trash| fs::create_dir(replaced(trash)).unwrap());
    attempt(&|trash| {
        rustix::fs::mkfifoat(rustix::fs::CWD, replaced(trash), Mode::RWXU).unwrap();
    });
    // Links in place of what was taken, and of the file that was being emptied.
    attempt(&|trash| {
        fs::remove_dir_all(trash.join("000001")).unwrap();
        let _ = fs::remove_file(trash.join("file"));
        symlink("../outside", trash.join("000001")).unwrap();
        symlink("../outside/precious", trash.join("file")).unwrap();
    });
    attempt(&|trash| {
        let _ = fs::remove_file(trash.join("file"));
        fs::hard_link(here.join("outside/precious"), trash.join("file")).unwrap();
    });
    assert!(refused > 30, "{refused} were refused");
    eprintln!(
        "{refused} journals and trashes refused, {resumed} gone on with: nothing outside touched"
    );
}

#[test]
fn a_trash_of_others_is_left_alone() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let name = left_behind(here);
    let refused = |why: &str| {
        removed(here, &["--resume"]).fails_with(1, &["it is left alone, because", why]);
        assert!(here.join(&name).join("000001").exists());
    };
    must("chown", &["65534", &here.join(&name).to_string_lossy()]);
    refused("another user");
    must("chown", &["0", &here.join(&name).to_string_lossy()]);
    must("chmod", &["777", &here.join(&name).to_string_lossy()]);
    refused("others");
    must("chmod", &["700", &here.join(&name).to_string_lossy()]);
    removed(here, &["--resume", "--slowdown", "100%"]).succeeds();
    assert_eq!(seen(here), ["outside"]);
}

#[test]
fn the_command_that_goes_on_is_one_for_a_shell() {
    use std::os::unix::ffi::OsStrExt;
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    if lacks(&[Need::Tool("bash")]) {
        return;
    }
    let here = fs.path();
    let odd = here.join(std::ffi::OsStr::from_bytes(b"-o\n\x1b[31m\xff'd"));
    fs::create_dir(&odd).unwrap();
    written(&odd.join("big"), 16);
    let mut command = rm(here, &[&SLOW[..], &["--"]].concat());
    command.arg(odd.strip_prefix(here).unwrap().join("big"));
    let mut running = start(command);
    running.until("the trash", || seen(&odd) == ["trash"]);
    running.signal(rustix::process::Signal::TERM);
    let done = running.wait();
    done.fails_with(143, &["What is left is in '"]);
    assert!(!done.stderr.contains('\u{1b}'), "{}", done.text());
    let (_, on) = done.stderr.split_once("go on with: trimbench ").unwrap();
    // As slowly as it was begun.
    let line = format!("\"$0\" {}", on.trim_end());
    assert!(line.ends_with(" --chunk=1M --sleep=200ms"), "{line}");
    let mut shell = Command::new("bash");
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_trimbench")]);
    shell.current_dir(here);
    run(shell).succeeds();
    assert_eq!(seen(&odd), [""; 0]);
}

#[test]
fn names_of_any_bytes_go() {
    use std::os::unix::ffi::OsStrExt;
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    let odd: Vec<&[u8]> = vec![
        b"-rf",
        b"--",
        b"new\nline",
        b"\xff\xfe",
        b"\x1b[31mred",
        b" ",
        b"*",
        b"...",
        b"'\"",
        b"\\",
        &[b'x'; 255],
    ];
    let os = |name: &[u8]| std::ffi::OsStr::from_bytes(name).to_owned();
    for large in [false, true] {
        fs::create_dir(here.join("t")).unwrap();
        for name in &odd {
            for directory in [here, &here.join("t")] {
                let mut made = File::create(directory.join(os(name))).unwrap();
                made.write_all(&vec![1; if large { 3 * MIB / 2 } else { 10 }])
                    .unwrap();
            }
        }
        let mut command: Command = rm(here, &["-r", "--verbose", "--slowdown", "100%", "--", "t"]);
        command.args(odd.iter().map(|name| os(name)));
        let done = run(command);
        done.succeeds();
        // Nothing that a terminal would obey.
        assert!(!done.text().contains('\u{1b}'), "{}", done.text());
        assert!(done.stdout.contains("removed '-rf'"), "{}", done.text());
        assert_eq!(seen(here), [""; 0]);
    }
}
