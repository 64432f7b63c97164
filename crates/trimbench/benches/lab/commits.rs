//! An OCZ Agility 2 under btrfs with `discard`, 2013: two syncs in a row.

use std::fs;
use std::process::Command;

use crate::drive::{Drive, Fallible, ended, timed};
use crate::row;
use crate::table;

/// Extents that are freed, none beside another: btrfs joins neighbours.
const EXTENTS: usize = 165;
const TRIM_S: f64 = 0.0426;

/// Two syncs with discards and without.
pub fn compare() -> Fallible<()> {
    let mut rows = vec![
        row![
            "",
            "first sync",
            "second",
            "discards",
            "42.6 ms each",
            "off by"
        ],
        row!["2013, discard", "7.0 s", "9.1 s", "", "", ""],
        row!["2013, without", "0.12 s", "0.11 s", "", "", ""],
    ];
    for (name, options) in [
        ("here, discard", "discard=sync"),
        ("here, without", "nodiscard"),
    ] {
        let drive = Drive::up(
            "--profile ocz-agility-2 --size 4G",
            Some(("btrfs", options)),
        )?;
        let file = |i: usize| drive.mount.join(format!("file-{i}"));
        for i in 0..2 * EXTENTS {
            fs::write(file(i), [7; 8192])?;
        }
        let sync = || timed(|| ended(Command::new("sync").arg("-f").arg(&drive.mount)));
        // The first commit frees what the one before it had used.
        sync()?;
        sync()?;
        let before = drive.done("discard")?.commands;
        for i in 0..EXTENTS {
            fs::remove_file(file(2 * i))?;
        }
        let (first, second) = (sync()?, sync()?);
        let discards = drive.done("discard")?.commands - before;
        let due = discards as f64 * TRIM_S;
        rows.push(row![
            name,
            format!("{first:.3} s"),
            format!("{second:.3} s"),
            discards,
            format!("{due:.2} s"),
            match discards {
                0 => String::new(),
                _ => format!("{:+.1} %", (first / due - 1.0) * 100.0),
            },
        ]);
    }
    table::print(
        "OCZ Agility 2, btrfs, 165 extents freed, then two syncs in a row",
        &rows,
    );
    println!(
        "\n  A commit of today's btrfs sends what it freed once; in 2013 the second sync found as much \
         again."
    );
    Ok(())
}
