//! The library from C and from Python, and the header beside what the library exports.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::gate::{LOOP_EXT4, Need, beside, lacks};
use testkit::loop_fs::{Fs, LoopFs, On};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// The shared library that was built for this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.with_file_name("libtrimbench_throttle.so");
    assert!(library.exists(), "{} is missing", library.display());
    library
}

/// Runs a program, which may not fail, and returns what it printed.
fn printed(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {said}");
    String::from_utf8(done.stdout).unwrap()
}

/// Compiles the C program against the header, with what follows the file's name.
fn compiled(into: &Path, linked: &[&str]) -> PathBuf {
    let program = into.join("free");
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Wextra", "-Werror", "-std=c11", "-I"])
        .arg(Path::new(HERE).join("include"))
        .arg(Path::new(HERE).join("tests/programs/free.c"))
        .arg("-o")
        .arg(&program)
        .args(linked);
    printed(&mut cc);
    program
}

#[test]
fn a_program_in_c_frees_a_file_in_pieces() {
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("cc")]) {
        return;
    }
    let _turn = beside();
    let fs = LoopFs::new(Fs::Ext4, "discard", 256, On::Tmpfs);
    let dir = tempfile::tempdir().unwrap();
    let shared = library();
    // As installed: the program looks for the soname.
    std::os::unix::fs::symlink(&shared, dir.path().join("libtrimbench_throttle.so.1")).unwrap();
    let program = compiled(dir.path(), &[shared.to_str().unwrap()]);
    let run = |goal: &str| {
        let mut command = Command::new(&program);
        command.args([fs.path().to_str().unwrap(), goal]);
        command.env("LD_LIBRARY_PATH", dir.path());
        command
    };
    let said = printed(&mut run("slowdown=10%"));
    assert!(said.contains("pieces; goal `speed=3`"), "{said}");
    let refused = run("slowdown=200%").output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("slowdown=200%"), "{why}");
}

#[test]
fn the_static_library_has_all_that_it_needs() {
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("cc")]) {
        return;
    }
    let _turn = beside();
    let fs = LoopFs::new(Fs::Ext4, "discard", 256, On::Tmpfs);
    let dir = tempfile::tempdir().unwrap();
    let archive = library().with_extension("a");
    let linked = [archive.to_str().unwrap(), "-lpthread", "-ldl", "-lm"];
    let program = compiled(dir.path(), &linked);
    let said = printed(Command::new(program).args([fs.path(), Path::new("slowdown=10%")]));
    assert!(said.contains("pieces"), "{said}");
}

#[test]
fn python_frees_a_file_in_pieces() {
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("python3")]) {
        return;
    }
    let _turn = beside();
    let fs = LoopFs::new(Fs::Ext4, "discard", 128, On::Tmpfs);
    let program = Path::new(HERE).join("tests/programs/free.py");
    let said = printed(
        Command::new("python3")
            .arg(program)
            .arg(library())
            .arg(fs.path()),
    );
    assert_eq!(said, "freed\n");
}

/// A function that goes, or that the header lacks, breaks programs.
#[test]
fn the_library_exports_what_the_header_declares() {
    if lacks(&[Need::Tool("nm")]) {
        return;
    }
    let header = std::fs::read_to_string(Path::new(HERE).join("include/trimbench_throttle.h"));
    let header = header.unwrap();
    let named = |line: &str| {
        let begin = line.find("trimbench_")?;
        let name = line[begin..].split('(').next()?;
        (line.ends_with(");") && !line.starts_with(' ')).then(|| name.to_owned())
    };
    let declared: BTreeSet<String> = header
        .lines()
        .map(|line| line.trim_start_matches("typedef struct trimbench_throttle"))
        .filter_map(|line| named(&line.replace("trimbench_throttle *trimbench", "trimbench")))
        .collect();
    let symbols = printed(
        Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(library()),
    );
    let exported: BTreeSet<String> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| name.starts_with("trimbench_"))
        .map(|name| {
            let (name, version) = name.split_once("@@").unwrap_or((name, "none"));
            assert_eq!(version, "libtrimbench_throttle.so.1", "{name}");
            name.to_owned()
        })
        .collect();
    assert_eq!(declared, exported);
    assert_eq!(declared.len(), 9);
    assert!(header.contains("#define TRIMBENCH_ABI 1\n"));
}
