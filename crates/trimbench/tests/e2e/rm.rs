//! `trimbench rm` as rm: options, messages, exit codes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::common::gate::{Need, lacks, times};
use crate::common::loop_fs::{must, names, unmount};
use crate::common::run::{run, start_with};
use crate::rm_place::{USERS, answered_as, ext4, place, removed, removed_as, rm, tree};

#[test]
fn files_and_trees_go_and_nothing_else() {
    let (_outer, place) = place();
    tree(&place.join("t"));
    fs::write(place.join("kept"), "").unwrap();
    let odd = OsStr::from_bytes(b"-odd\n\xff'name");
    fs::write(place.join(odd), "").unwrap();
    let mut command = rm(&place, &["--recursive", "--verbose", "--", "t"]);
    command.arg(odd);
    let done = run(command);
    done.succeeds();
    for said in ["removed 't/b/link'", "removed directory 't'", "\\377"] {
        assert!(done.stdout.contains(said), "{said}: {}", done.text());
    }
    assert_eq!(names(&place), ["kept"]);
    assert!(Path::new("/etc/passwd").exists());
}

#[test]
fn messages_and_exit_codes_are_rms() {
    let (_outer, place) = place();
    fs::create_dir_all(place.join("full/d")).unwrap();
    fs::write(place.join("file"), "").unwrap();
    symlink("full", place.join("link")).unwrap();
    let fails = |arguments: &[&str], said: &str| {
        removed(&place, arguments).fails_with(1, &[said]);
    };
    fails(
        &["nothing"],
        "cannot remove 'nothing': No such file or directory",
    );
    fails(&["full"], "cannot remove 'full': Is a directory");
    fails(
        &["--dir", "full"],
        "cannot remove 'full': Directory not empty",
    );
    fails(&["file/"], "cannot remove 'file/': Not a directory");
    fails(
        &["-r", "full/."],
        "refusing to remove '.' or '..' directory",
    );
    fails(&["-rf", ".."], "refusing to remove '.' or '..' directory");
    fails(&["-r", "/"], "dangerous to operate recursively on '/'");
    fails(
        &["-r", "--preserve-root", "//"],
        "dangerous to operate recursively",
    );
    removed(&place, &["--force", "nothing", "file/x"]).succeeds();
    removed(&place, &["-f"]).succeeds();
    fails(&[""], "cannot remove '': No such file or directory");
    fails(&["-vv", ""], "cannot remove '': No such file or directory");
    removed(&place, &[]).fails_with(2, &["PATH"]);
    removed(&place, &["--slowdown", "0", "x"]).fails_with(2, &["0.1%"]);
    assert_eq!(names(&place), ["file", "full", "link"]);
    removed(&place, &["link", "file"]).succeeds();
    removed(&place, &["-d", "full/d"]).succeeds();
    removed(&place, &["-r", "-Rff", "full"]).succeeds();
    fs::write(place.join("file"), "").unwrap();
    let twice = ["-ff", "--recursive", "-R", "--one-file-system", "-x", ""];
    removed(&place, &[&twice[..], &["file"]].concat()).succeeds();
    assert_eq!(names(&place), [""; 0]);
    let version = removed(&place, &["--version"]).succeeds().stdout.clone();
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
}

#[test]
fn a_name_that_looks_like_options_gets_a_hint() {
    let (_outer, place) = place();
    removed(&place, &["-foo"]).fails_with(2, &["unexpected argument"]);
    fs::write(place.join("-foo"), "").unwrap();
    let hint = "Try 'trimbench rm ./-foo' to remove the file '-foo'.";
    removed(&place, &["-r", "-foo"]).fails_with(2, &[hint]);
    removed(&place, &["./-foo"]).succeeds();
    assert_eq!(names(&place), [""; 0]);
}

#[test]
fn slashes_at_a_names_end_are_shown_as_one() {
    let (_outer, place) = place();
    fs::create_dir(place.join("a")).unwrap();
    fs::write(place.join("a/x"), "").unwrap();
    let done = removed(&place, &["-rv", "a///"]);
    let told = "removed 'a/x'\nremoved directory 'a/'\n";
    assert_eq!(done.succeeds().stdout, told);
}

#[test]
fn it_asks_as_rm_does() {
    let (_outer, place) = place();
    let answer = |arguments: &[&str], answers: &str| {
        let input = tempfile::NamedTempFile::new().unwrap();
        fs::write(input.path(), answers).unwrap();
        let output = rm(&place, arguments)
            .stdin(File::open(input.path()).unwrap())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    tree(&place.join("t"));
    let said = answer(&["-I", "-r", "t"], "n\n");
    assert!(said.contains("remove 1 argument recursively?"), "{said}");
    answer(&["--interactive=once", "-r", "t"], "");
    assert!(place.join("t/b/c/three").exists());
    // Into t, not its file; into b, not into c; link and file of b.
    let said = answer(&["-i", "-r", "t/b"], "y\nn\nn\nn\nn\n");
    assert!(said.contains("descend into directory 't/b'?"), "{said}");
    assert!(place.join("t/b/c/three").exists());
    answer(&["--interactive", "t/one"], "n\n");
    assert!(place.join("t/one").exists());
    let said = answer(&["-ri", "t/one"], "y\n");
    assert!(said.contains("remove regular file 't/one'?"), "{said}");
    assert!(!place.join("t/one").exists());
    answer(&["-i", "-rf", "t"], "");
    assert_eq!(names(&place), [""; 0]);
}

#[test]
fn what_may_not_be_written_to_is_asked_about() {
    if lacks(USERS) || lacks(&[Need::Tool("python3")]) {
        return;
    }
    let (outer, place) = place();
    must("chmod", &["755", &outer.path().to_string_lossy()]);
    let path = |name: &str| place.join(name).to_string_lossy().into_owned();
    fs::create_dir(place.join("d")).unwrap();
    fs::create_dir(place.join("h")).unwrap();
    fs::write(place.join("f"), "1").unwrap();
    fs::write(place.join("g"), "1").unwrap();
    fs::write(place.join("i"), "1").unwrap();
    let all = ["d", "f", "g", "h", "i"].map(path);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    must("chmod", &[&["555"], &all[..]].concat());
    must("chown", &["-R", "65534", &place.to_string_lossy()]);
    for (arguments, what) in [
        (&["-d", "d"][..], "remove write-protected directory 'd'?"),
        (&["f"], "remove write-protected regular file 'f'?"),
        (&["-I", "g"], "remove write-protected regular file 'g'?"),
        (&["-ri", "h"], "remove write-protected directory 'h'?"),
    ] {
        let name = arguments[arguments.len() - 1];
        for answer in ["n\n", "y\n"] {
            let done = answered_as(65534, &place, arguments, answer);
            assert_eq!(done.succeeds().stdout.matches(what).count(), 1);
            assert_eq!(place.join(name).exists(), answer == "n\n");
        }
    }
    // As rm's own tests ask, without a terminal.
    let asked = removed_as(65534, &place, &["---presume-input-tty", "i"]);
    let what = "remove write-protected regular file 'i'?";
    assert!(asked.succeeds().stderr.contains(what), "{}", asked.text());
    assert!(place.join("i").exists());
}

#[test]
fn a_signal_ends_a_question() {
    let (_outer, place) = place();
    tree(&place.join("t"));
    for (arguments, answers) in [
        (&["-ri", "t"][..], ""),
        (&["-I", "-r", "t"], ""),
        // Into it, but not what is first in it: at the next.
        (&["-ri", "t/b"], "y\nn\n"),
    ] {
        let (input, output) = std::io::pipe().unwrap();
        (&output).write_all(answers.as_bytes()).unwrap();
        let asked = answers.len() / 2 + 1;
        let mut running = start_with(rm(&place, arguments), input);
        running.until_said("? ", asked);
        running.signal(Signal::TERM);
        // Nobody answers: it ends by itself.
        let done = running.wait();
        drop(output);
        assert_eq!(done.code(), Some(143), "{}", done.text());
        assert_eq!(done.stderr.matches("? ").count(), asked, "{}", done.text());
    }
    // What was there before is all there yet.
    assert_eq!(names(&place), ["t"]);
    assert_eq!(names(&place.join("t/b")), ["c", "link", "two"]);
}

#[test]
fn a_dry_run_removes_nothing() {
    let (_outer, place) = place();
    tree(&place.join("t"));
    let done = removed(&place, &["-r", "--dry-run", "t"]);
    assert!(
        done.succeeds().stdout.contains("'t': would free"),
        "{}",
        done.text()
    );
    assert!(
        done.stdout.contains("7 names, at once ("),
        "{}",
        done.text()
    );
    assert!(done.stdout.contains("in memory"), "{}", done.text());
    assert_eq!(names(&place), ["t"]);
}

#[test]
fn options_that_exclude_each_other_remove_nothing() {
    let (_outer, place) = place();
    tree(&place.join("t"));
    let refused = |options: &[&str], said| {
        removed(&place, options).fails_with(2, &[options[0], said]);
        assert_eq!(names(&place), ["t"]);
    };
    refused(&["--resume", "--dry-run"], "can't list it");
    refused(&["--resume", "--set", "trash=false"], "goes on in a trash");
    let fixed = "free in fixed steps";
    refused(&["--chunk", "4", "--slowdown", "5%", "-r", "t"], fixed);
    refused(&["--sleep", "0.1", "--deadline", "1m", "-r", "t"], fixed);
}

#[test]
fn ten_thousand_levels_need_few_files() {
    let (_outer, place) = place();
    let made = Command::new("python3")
        .args(["-c", "import os\nos.mkdir('deep');os.chdir('deep')\nfor i in range(10000):\n os.mkdir('d');os.chdir('d')\nopen('f','w')"])
        .current_dir(&place)
        .status()
        .unwrap();
    assert!(made.success());
    let binary = env!("CARGO_BIN_EXE_trimbench");
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -n 70; exec \"$0\" rm -r deep", binary])
        .current_dir(&place)
        .env("XDG_STATE_HOME", place.join("lost+found/state"));
    run(command).succeeds();
    assert_eq!(names(&place), [""; 0]);
}

#[test]
fn arguments_in_many_directories_need_no_more_than_may_be_open() {
    let (_outer, place) = place();
    let arguments: Vec<String> = (0..60).map(|number| format!("d{number}/t")).collect();
    for argument in &arguments {
        fs::create_dir_all(place.join(argument)).unwrap();
    }
    // What may be open is less than a process may allow itself.
    let binary = env!("CARGO_BIN_EXE_trimbench");
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -Sn 64; exec \"$0\" rm -r \"$@\"", binary])
        .args(&arguments)
        .current_dir(&place)
        .env("XDG_STATE_HOME", place.join("lost+found/state"));
    run(command).succeeds();
    assert!((0..60).all(|number| names(&place.join(format!("d{number}"))).is_empty()));
}

#[test]
fn what_cannot_go_gets_its_name_back() {
    let Some(fs) = ext4("nodiscard", 64) else {
        return;
    };
    let here = fs.path();
    tree(&here.join("t"));
    must("chattr", &["+i", &here.join("t/b/two").to_string_lossy()]);
    let done = removed(here, &["-r", "t"]);
    done.fails_with(1, &["cannot remove 't/b/two': Operation not permitted"]);
    assert_eq!(names(here), ["t"]);
    assert_eq!(names(&here.join("t/b")), ["two"]);
    must("chattr", &["-i", &here.join("t/b/two").to_string_lossy()]);

    // A mount in it: in place, not beyond it with -x, and busy without.
    fs::create_dir(here.join("t/mnt")).unwrap();
    let mount = here.join("t/mnt").to_string_lossy().into_owned();
    must("mount", &["-t", "tmpfs", "none", &mount]);
    fs::write(here.join("t/mnt/theirs"), "").unwrap();
    let done = removed(here, &["-r", "--one-file-system", "t"]);
    let kept = here.join("t/mnt/theirs").exists();
    let second = removed(here, &["-r", "t"]);
    let root = removed(here, &["-r", "--preserve-root=all", "t/mnt"]);
    let forced = removed(here, &["-r", "--no-preserve-root", "t/mnt"]);
    unmount(&mount);
    done.fails_with(1, &["skipping 't/mnt', since it's on a different device"]);
    assert!(kept);
    second.fails_with(1, &["cannot remove 't/mnt': Device or resource busy"]);
    root.fails_with(1, &["--preserve-root=all is in effect"]);
    forced.fails_with(1, &["Device or resource busy"]);

    fs.remount("ro");
    removed(here, &["-r", "t"]).fails_with(1, &["cannot remove 't", "Read-only file system"]);
    fs.remount("rw");
    removed(here, &["-rf", "t"]).succeeds();
    assert_eq!(names(here), [""; 0]);
}

#[test]
fn a_file_mounted_over_another_is_not_emptied() {
    let Some(fs) = ext4("discard", 64) else {
        return;
    };
    let here = fs.path();
    fs::create_dir(here.join("t")).unwrap();
    fs::write(here.join("theirs"), vec![1; 4 << 20]).unwrap();
    fs::write(here.join("t/f"), "").unwrap();
    let path = |name: &str| here.join(name).to_string_lossy().into_owned();
    must("mount", &["--bind", &path("theirs"), &path("t/f")]);
    let done = removed(here, &["-r", "t"]);
    unmount(&path("t/f"));
    done.fails_with(1, &["cannot remove 't/f': Device or resource busy"]);
    assert_eq!(fs::metadata(here.join("theirs")).unwrap().len(), 4 << 20);
}

#[test]
fn behind_a_bind_mount_is_another_tree() {
    let Some(fs) = ext4("nodiscard", 64) else {
        return;
    };
    let here = fs.path();
    for directory in ["a/data/hidden", "b"] {
        fs::create_dir_all(here.join(directory)).unwrap();
    }
    fs::write(here.join("a/old"), "").unwrap();
    let path = |name: &str| here.join(name).to_string_lossy().into_owned();
    must("mount", &["-t", "tmpfs", "none", &path("a/data")]);
    must("mount", &["--bind", &path("a"), &path("b")]);
    fs::write(here.join("a/data/theirs"), "").unwrap();
    // The same directory twice; in one of its places something is mounted.
    let done = removed(here, &["-rf", "a/old", "b/data"]);
    let (kept, hidden) = (
        here.join("a/data/theirs").exists(),
        here.join("b/data/hidden").exists(),
    );
    unmount(&path("b"));
    unmount(&path("a/data"));
    assert!(kept && !hidden, "{}", done.text());
}

#[test]
fn swapping_a_directory_for_a_link_leads_nowhere() {
    let (outer, place) = place();
    let outside = outer.path().join("outside");
    fs::create_dir(&outside).unwrap();
    for number in 0..20 {
        fs::write(outside.join(number.to_string()), "").unwrap();
    }
    let (races, mut swaps, mut lost) = (times(100, 10_000), 0u64, 0);
    for _ in 0..races {
        fs::create_dir_all(place.join("t/d")).unwrap();
        fs::write(place.join("t/d/0"), "").unwrap();
        let over = std::sync::atomic::AtomicBool::new(false);
        // A directory held open by whoever owns it stays theirs, wherever it is renamed to.
        let held = File::open(place.join("t")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    swaps += 1;
                    let _ = rustix::fs::renameat(&held, "d", &held, "away");
                    let _ = rustix::fs::symlinkat(&outside, &held, "d");
                    let _ = rustix::fs::unlinkat(&held, "d", rustix::fs::AtFlags::empty());
                    let _ = rustix::fs::renameat(&held, "away", &held, "d");
                }
            });
            let done = removed(&place, &["-rf", "t"]);
            lost += u32::from(done.code() != Some(0));
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(names(&outside).len(), 20);
        removed(&place, &["-rf", "t"]);
    }
    eprintln!(
        "{races} races, {swaps} swaps: nothing outside removed; rm gave up something in {lost} races"
    );
}

#[test]
fn others_may_not_be_robbed() {
    if lacks(USERS) {
        return;
    }
    // A sticky directory of others: neither renamed nor removed.
    let (outer, place) = place();
    for path in [outer.path(), &place] {
        must("chmod", &["1777", &path.to_string_lossy()]);
    }
    tree(&place.join("t"));
    let done = removed_as(65534, &place, &["-r", "t"]);
    done.fails_with(1, &["cannot remove 't/", "Permission denied"]);
    assert_eq!(names(&place), ["t"]);
    assert_eq!(fs::metadata(place.join("t/b/c/three")).unwrap().size(), 9);
}
