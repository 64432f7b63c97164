//! `trimbench tune` on drives whose limit, once changed, comes back with the next start only.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;

use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, SMALL};
use crate::common::run::{run, start};
use crate::tune::{limit, number, tune};

/// The options that all runs here have in common.
const FEW: [&str; 6] = [
    "--set",
    "size=64M",
    "--set",
    "repeats=1",
    "--set",
    "policies=online",
];

/// A loop device that nobody had before, so with the driver's own limit: almost 4 GiB, and odd.
struct NewLoop(String);

impl NewLoop {
    /// Asks the loop driver for one (0x4c80), or to take one away (0x4c81); whether it did.
    fn control(order: &str, number: &str) -> bool {
        let ask = format!(
            "import fcntl; fcntl.ioctl(open('/dev/loop-control', 'rb'), {order}, {number})"
        );
        let done = Command::new("python3").args(["-c", &ask]).output();
        done.unwrap().status.success()
    }

    fn new() -> NewLoop {
        // Another test may be faster.
        let made = |number: &String| {
            !Path::new(&format!("/sys/block/loop{number}")).exists()
                && NewLoop::control("0x4c80", number)
        };
        let mut numbers = (100..200).map(|number: u32| number.to_string());
        NewLoop(numbers.find(made).unwrap())
    }

    fn name(&self) -> String {
        format!("loop{}", self.0)
    }

    /// ext4 on it, with discard.
    fn fs(&self) -> LoopFs {
        let device = Path::new("/dev").join(self.name());
        LoopFs::on(&device, Fs::Ext4, "discard", SMALL)
    }
}

impl Drop for NewLoop {
    fn drop(&mut self) {
        NewLoop::control("0x4c81", &self.0);
    }
}

#[test]
fn a_limit_that_does_not_come_back_is_changed_on_demand_alone() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let new = NewLoop::new();
    let (name, fs) = (new.name(), new.fs());
    let file = limit(fs.device().path());
    let usual = number(&file);
    assert!(!usual.is_multiple_of(4096), "{usual}");
    let told = run(tune(fs.path(), &["--dry-run"]));
    let text = &told.succeeds().stdout;
    assert!(
        text.contains(&format!("No other limit is tried: that of {name}")),
        "{text}"
    );
    assert!(!text.contains("at most 32.0 MiB"), "{text}");
    // Whoever watches for a kill has nothing to put back.
    let mut killed = start(tune(fs.path(), &[&FEW[..], &["--yes"]].concat()));
    killed.until("a run begins", || !fs.names().is_empty());
    killed.signal(Signal::KILL);
    killed.wait();
    let watched = fs::File::open(&file).unwrap();
    flock(&watched, FlockOperation::LockExclusive).unwrap();
    assert_eq!(number(&file), usual);
    drop(watched);
    let told = run(tune(
        fs.path(),
        &[&FEW[..], &["--set", "limits=32M", "--yes"]].concat(),
    ));
    let text = &told.succeeds().stdout;
    let most = usual / 4096 * 4096;
    assert!(
        text.contains(&format!(
            "the limit of {name} will be {most} until the next start"
        )),
        "{text}"
    );
    assert!(text.contains("at most 32.0 MiB"), "{text}");
    assert!(
        text.contains(&format!("the limit of {name} is {most} until")),
        "{text}"
    );
    assert_eq!(number(&file), most);
    let above = run(tune(fs.path(), &["--dry-run", "--set", "limits=4G"]));
    above.fails_with(2, &["up to"]);
}

#[test]
fn who_ends_it_early_is_told_which_limit_does_not_come_back() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let new = NewLoop::new();
    let (name, fs) = (new.name(), new.fs());
    let file = limit(fs.device().path());
    let usual = number(&file);
    let arguments = [&FEW[..], &["--set", "limits=32M", "--yes"]].concat();
    // While nothing has changed there is nothing to tell.
    let mut running = start(tune(fs.path(), &arguments));
    running.until("a run begins", || !fs.names().is_empty());
    running.signal(Signal::TERM);
    let done = running.wait();
    done.fails_with(143, &["put back"]);
    assert!(!done.stderr.contains("But the limit"), "{}", done.text());
    assert_eq!(number(&file), usual);

    let mut running = start(tune(fs.path(), &arguments));
    running.until("the limit changes", || number(&file) == 32 << 20);
    running.signal(Signal::TERM);
    let most = usual / 4096 * 4096;
    let told = format!("But the limit of {name} is {most} until the next start.");
    running.wait().fails_with(143, &["put back", &told]);
    assert_eq!(number(&file), most);
}
