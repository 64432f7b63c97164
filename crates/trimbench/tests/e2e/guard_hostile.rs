//! `trimbench guard` that is killed, and beside users that mean harm: no file in use is lost or
//! changed, and nothing stays that is to be freed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use crate::common::gate::times;
use crate::common::loop_fs::Fs;
use crate::guard_place::{ended, hidden, second_names, seen, started};
use crate::rm_place::{MIB, ext4, ground, written};

/// Files of a program that makes, replaces and deletes them, and the byte that each is full of.
struct Churn {
    files: HashMap<String, u8>,
    random: fastrand::Rng,
    made: u64,
}

impl Churn {
    fn step(&mut self, here: &Path) {
        let name = format!("{:03}", self.random.u32(..40));
        let byte = self.random.u8(1..);
        match self.random.u8(..3) {
            0 => {
                let _ = fs::remove_file(here.join(&name));
                self.files.remove(&name);
            }
            replace => {
                let new = here.join("new");
                let content = vec![byte; MIB + self.random.usize(..MIB)];
                // Nobody deletes so fast for long; where no guard runs, nothing is freed.
                if File::create(&new)
                    .and_then(|mut file| file.write_all(&content))
                    .is_err()
                {
                    fs::remove_file(&new).unwrap();
                    std::thread::sleep(Duration::from_millis(50));
                    return;
                }
                std::thread::sleep(Duration::from_millis(3));
                // In place, or by a name of its own.
                if replace == 1 {
                    let _ = fs::remove_file(here.join(&name));
                }
                fs::rename(&new, here.join(&name)).unwrap();
                self.files.insert(name, byte);
                self.made += 1;
            }
        }
    }

    fn check(&self, here: &Path) {
        assert_eq!(seen(here).len(), self.files.len());
        for (name, &byte) in &self.files {
            let content = fs::read(here.join(name)).unwrap();
            assert!(
                content.len() >= MIB && content.iter().all(|&b| b == byte),
                "{name}"
            );
        }
    }
}

fn killed(kind: Fs) {
    let Some(fs) = ground(kind, "discard", 512) else {
        return;
    };
    let here = fs.path();
    let mut churn = Churn {
        files: HashMap::new(),
        random: fastrand::Rng::with_seed(26),
        made: 0,
    };
    let kills = times(8, 100);
    for _ in 0..kills {
        let running = started(here, &[]);
        let until = std::time::Instant::now() + Duration::from_millis(churn.random.u64(20..800));
        while std::time::Instant::now() < until {
            churn.step(here);
        }
        running.signal(Signal::KILL);
        running.wait();
        churn.step(here);
        churn.check(here);
    }
    let mut running = started(here, &[]);
    let live = churn.files.len();
    running.until(
        "nothing that waits, and a second name for each file",
        || second_names(here) == live,
    );
    churn.check(here);
    ended(running);
    churn.check(here);
    assert_eq!(hidden(here), None);
    eprintln!(
        "{kills} kills, {} files made: none lost, none left",
        churn.made
    );
}

#[test]
fn killed_at_any_moment_on_ext4_nothing_is_lost_or_left() {
    killed(Fs::Ext4);
}

#[test]
fn killed_at_any_moment_on_xfs_nothing_is_lost_or_left() {
    killed(Fs::Xfs);
}

/// The owner of a directory that root guards changes names all the time: symbolic links to a file
/// outside, directories swapped for links, hard links of another user's file.
#[test]
fn a_hostile_owner_gains_nothing() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let (inside, outside) = (fs.path().join("inside"), fs.path().join("outside"));
    for directory in [&inside, &outside] {
        fs::create_dir(directory).unwrap();
    }
    std::os::unix::fs::chown(&inside, Some(65_534), Some(65_534)).unwrap();
    written(&outside.join("precious"), 2);
    let is_whole = || {
        let content = fs::read(outside.join("precious")).unwrap();
        content.len() == 2 * MIB && content.iter().all(|&byte| byte == 1)
    };
    let races = times(300, 10_000) as u64;
    let (over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut running = started(&inside, &["--only-scan", "--scan-every", "1ms"]);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let bait = inside.join("bait");
                let _ = fs::create_dir(inside.join("d"));
                // Root's own file under a name of theirs, as without fs.protected_hardlinks.
                let _ = fs::hard_link(outside.join("precious"), inside.join("hard"));
                let _ = symlink(outside.join("precious"), &bait);
                let _ = fs::remove_file(&bait);
                let _ = fs::write(&bait, vec![9; MIB]);
                let _ = std::os::unix::fs::chown(&bait, Some(65_534), Some(65_534));
                let _ = fs::remove_file(&bait);
                let _ = fs::remove_dir(inside.join("d"));
                let _ = symlink(&outside, inside.join("d"));
                let _ = fs::remove_file(inside.join("d"));
                let _ = fs::remove_file(inside.join("hard"));
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        running.until("enough races", || {
            count.load(Ordering::Relaxed) >= races && is_whole()
        });
        over.store(true, Ordering::Relaxed);
    });
    // No second name of a file that isn't the owner's.
    assert_eq!(fs::metadata(outside.join("precious")).unwrap().nlink(), 1);
    ended(running);
    assert!(is_whole());
    eprintln!("{} races: the file outside is whole", count.into_inner());
}
