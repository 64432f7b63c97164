//! An EMC XtremIO volume of 10 TiB under ext4, 2015: mkfs, rm of 64 files of
//! 16 GiB, and fstrim, in compressed time.
//!
//! Nothing of it fits here, and nothing has to: on a premapped drive the files
//! are made without their data.

use std::fs;
use std::process::Command;
use std::time::Instant;

use crate::drive::{Done, Drive, Fallible, ended, timed};
use crate::row;
use crate::table;

const DRIVE: &str = "--profile emc-xtremio-10tb --size 10T";
/// Each command's drive runs faster by its own factor, and no faster than needed. The time that
/// this machine itself takes for a command counts as this many times longer. The whole comparison
/// takes seven minutes.
const MKFS_FASTER: f64 = 2.0;
const RM_FASTER: f64 = 4.0;
const FSTRIM_FASTER: f64 = 4.0;
const FILES: u32 = 64;
/// A file system without discards, and without a thread that makes inode tables later.
const PLAIN: [&str; 4] = ["-q", "-F", "-E", "nodiscard"];
const OPTIONS: &str = "noinit_itable";

/// Compares all figures of 2015 with the simulated drive's.
pub fn compare() -> Fallible<()> {
    let mut rows = vec![row![
        "",
        "2015",
        "here",
        "off by",
        "of it the drive's discards",
        "and this machine's work",
        "discards",
        "so many times faster"
    ]];
    mkfs(&mut rows)?;
    rm_with_discards(&mut rows)?;
    rm_then_fstrim(&mut rows)?;
    let title = "EMC XtremIO, 10 TiB, ext4; in compressed time, told in the array's";
    table::print(title, &rows);
    println!(
        "\n  What discards cost is the drive's. The rest is this machine's processor, told as so many \
         times longer,\n  and was the host's in 2015: without discards the drive has next to nothing to do."
    );
    Ok(())
}

/// mkfs on a new volume, of which nothing is mapped.
fn mkfs(rows: &mut Vec<Vec<String>>) -> Fallible<()> {
    let drive = Drive::up(&format!("{DRIVE} --slower {}", 1.0 / MKFS_FASTER), None)?;
    let make = |options: &[&str]| {
        let mut command = Command::new("mkfs.ext4");
        command.args(options).arg(&drive.device);
        timed(|| ended(&mut command))
    };
    let without = make(&PLAIN)?;
    let compared = |what, then_s, took_s, done| compared(what, MKFS_FASTER, then_s, took_s, done);
    let none = Done::default();
    rows.push(compared("mkfs without discards", 4.86, without, none));
    let with = make(&PLAIN[..2])?;
    let done = drive.done("discard")?;
    rows.push(compared("mkfs", 152.1, with, done));
    let difference = with - without;
    rows.push(compared("what discards cost it", 147.2, difference, done));
    Ok(())
}

fn rm_with_discards(rows: &mut Vec<Vec<String>>) -> Fallible<()> {
    let drive = with_files("discard", RM_FASTER)?;
    let began = Instant::now();
    remove(&drive)?;
    let took = drive.quiet_since(began)?;
    let done = drive.done("discard")?;
    rows.push(compared(
        "rm of 1 TiB, to its last discard",
        RM_FASTER,
        292.6,
        took,
        done,
    ));
    drive.unmount()
}

fn rm_then_fstrim(rows: &mut Vec<Vec<String>>) -> Fallible<()> {
    let drive = with_files("nodiscard", FSTRIM_FASTER)?;
    // Only the files were mapped in 2015. So the rest is freed first, at no cost.
    drive.set(&["a=0", "b=0ns/MiB", "b_unmapped=0ns/MiB"])?;
    let trim = || timed(|| ended(Command::new("fstrim").arg(&drive.mount)));
    trim()?;
    drive.set(&["a=4.1ms", "b=233us/MiB", "b_unmapped=12.1us/MiB"])?;
    // A group that was trimmed is not trimmed again until something in it is
    // freed, or the file system mounted anew.
    drive.unmount()?;
    drive.mount(OPTIONS)?;
    let without = timed(|| remove(&drive))?;
    rows.push(compared(
        "rm without discards",
        FSTRIM_FASTER,
        16.4,
        without,
        Done::default(),
    ));
    let before = drive.done("discard")?;
    let took = trim()?;
    let after = drive.done("discard")?;
    let done = Done {
        commands: after.commands - before.commands,
        busy_s: after.busy_s - before.busy_s,
    };
    rows.push(compared(
        "fstrim of 9.9 TiB",
        FSTRIM_FASTER,
        689.3,
        took,
        done,
    ));
    drive.unmount()
}

/// A full volume with 64 files of 16 GiB on it.
fn with_files(discard: &str, faster: f64) -> Fallible<Drive> {
    let drive = Drive::up(
        &format!("{DRIVE} --set premapped=true --slower {}", 1.0 / faster),
        None,
    )?;
    let mut command = Command::new("mkfs.ext4");
    ended(command.args(PLAIN).arg(&drive.device))?;
    drive.mount(&format!("{OPTIONS},{discard}"))?;
    for i in 0..FILES {
        let mut command = Command::new("fallocate");
        command.args(["-l", "16G"]);
        ended(command.arg(drive.mount.join(format!("file{i}"))))?;
    }
    // What is known of them must be read again, as after 1 TiB of writing.
    drive.unmount()?;
    drive.mount(&format!("{OPTIONS},{discard}"))?;
    Ok(drive)
}

/// Removes them, and lets the journal commit.
fn remove(drive: &Drive) -> Fallible<()> {
    for i in 0..FILES {
        fs::remove_file(drive.mount.join(format!("file{i}")))?;
    }
    ended(Command::new("sync").arg("-f").arg(&drive.mount)).map(|_| ())
}

fn compared(what: &str, faster: f64, then_s: f64, took_s: f64, done: Done) -> Vec<String> {
    let (here, busy) = (took_s * faster, done.busy_s * faster);
    let with_discards = |cell: String| {
        if done.commands == 0 {
            String::new()
        } else {
            cell
        }
    };
    row![
        what,
        format!("{then_s:.1} s"),
        format!("{here:.1} s"),
        format!("{:+.1} %", (here / then_s - 1.0) * 100.0),
        with_discards(format!("{busy:.1} s")),
        with_discards(format!("{:.1} s", here - busy)),
        with_discards(done.commands.to_string()),
        faster,
    ]
}
