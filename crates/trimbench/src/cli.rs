//! The command line: its commands. Each one's options are in `commands/NAME/args.rs`; help, man
//! page and completions come from them.

use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    blkdiscard, compare, fit, fstrim, guard, import, inspect, lab, report, rm, run, scenarios, sim,
    suite, table, tune, verify, watch, why,
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Tells whether deleting data stalls your storage.
///
/// Deleting a lot of data on an SSD makes the file system send TRIM (discard)
/// commands, and many drives stop serving reads, writes and fsyncs while they
/// process them. trimbench measures that on your own drive.
///
/// Results say whose they are. TRIMBENCH_IDENTITY=host=LABEL,no-machine-id,no-serial gives the
/// host a label and keeps parts out (docs/fleet.md).
#[derive(Debug, Parser)]
#[command(name = "trimbench", version, styles = STYLES, max_term_width = 100)]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The command line, of which `-h` shows what matters first, and `--help` all.
pub fn command() -> clap::Command {
    brief(Cli::command())
}

/// Examples that `-h` shows.
const EXAMPLES: usize = 2;

/// Has `-h` show the first examples only.
fn brief(command: clap::Command) -> clap::Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(whole) => command
            .after_help(first_examples(&whole))
            .after_long_help(whole),
        None => command,
    };
    command.mut_subcommands(brief)
}

fn first_examples(whole: &str) -> String {
    let mut left = EXAMPLES + 1;
    let examples = whole.lines().take_while(|line| {
        let begins = line.starts_with("  ") && !line.starts_with("   ");
        left -= usize::from(begins);
        left > 0 && !line.is_empty()
    });
    let examples: Vec<&str> = examples
        .filter(|_| whole.starts_with("Examples:"))
        .collect();
    format!("{}\n\n--help shows more.", examples.join("\n"))
        .trim_start()
        .to_owned()
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Delete data while a foreground runs, and report whether it stalls
    ///
    /// Makes a file to delete and a file to read, and reads until the rate is steady. Then it
    /// deletes, and watches the readers and the drive until all that was freed has been discarded.
    /// With --scenario the foreground and the deletion are those of a production case. Removes what
    /// it made, also when it is interrupted.
    Run(Box<run::args::RunArgs>),
    /// List the scenarios: production cases that `run --scenario` repeats
    ///
    /// Each is a file of TOML. To make one of your own, copy what `trimbench scenarios show NAME`
    /// prints into a file, change it, and name the file: `trimbench run --scenario ./mine.toml`.
    Scenarios(scenarios::args::ScenariosArgs),
    /// Show records of runs: as text, tables, pictures or a page of HTML
    ///
    /// The record alone is enough, so it may be years old or come from another machine. A record of
    /// a run that was killed is shown as far as it goes.
    Report(report::args::ReportArgs),
    /// Compare runs, or groups of repeats: what differs, by how much, and how surely
    ///
    /// Prints each figure with its 95 % confidence interval. This comes from the scatter of the
    /// intervals within runs and, where runs were repeated, of the runs. Differences in the set-up
    /// (drive, kernel, mount options, scenario) are printed beside it.
    Compare(compare::args::CompareArgs),
    /// Make one table of many results, for engines that speak SQL
    ///
    /// A row of JSON for each drive of each result, whole directories at a time. Damaged files are
    /// listed and skipped.
    Table(table::args::TableArgs),
    /// Make a record from logs of iostat and fio, and show its verdict
    ///
    /// Finds the deletion by itself: by the first discards that matter. The verdict's warnings list
    /// what it guessed, and each line that it left out.
    Import(import::args::ImportArgs),
    /// Find out what this drive's discards cost, and write it down as a device card
    ///
    /// Uses records, or a short ladder of deletions: of files in a directory, or of a raw device
    /// with --destroy-data. If a figure can't be found, it prints the reason. `trimbench lab up
    /// --profile FILE` takes the card, and makes a drive that behaves as this one did.
    Fit(fit::args::FitArgs),
    /// Remove files and directories without stalling other I/O
    ///
    /// Takes rm's options. The names vanish at once. The space behind them is freed in
    /// pieces, as fast as the goal allows, and the command ends when all has been discarded. Where
    /// no discards are sent, nothing is paced.
    Rm(Box<rm::args::RmArgs>),
    /// Trim mounted file systems without stalling other I/O
    ///
    /// Takes fstrim's options. Trims window by window, as fast as the goal allows. You can watch
    /// it, stop it and resume it.
    Fstrim(Box<fstrim::args::FstrimArgs>),
    /// Trim what programs free, all the time, without stalling other I/O
    ///
    /// The file system is mounted without discard, so that deleting costs nothing when it happens.
    /// Guard looks at the free space and trims what was freed, as fast as the goal allows.
    Guard(Box<guard::args::GuardArgs>),
    /// Discard a block device without stalling other I/O
    ///
    /// Takes blkdiscard's options. All data in the range are lost. Discards step by step, as fast as
    /// the goal allows, and prints where it stopped if it is interrupted.
    Blkdiscard(Box<blkdiscard::args::BlkdiscardArgs>),
    /// Find out by experiment which discard settings suit a drive
    ///
    /// Tries values of discard_max_bytes and ways of discarding in short runs. Prints how much they
    /// slow down other I/O, how long the freeing takes, and the settings that it advises, with
    /// their cost. Needs root. Puts back what it changes, unless --apply sets what it advises.
    Tune(Box<tune::args::TuneArgs>),
    /// Compare file systems and mount options on a drive, step by step
    ///
    /// Makes each file system with and without discard, mounts it in several ways, and measures mkfs,
    /// creation, removal, syncs, fstrim, and readers beside a deletion, in turns and several times.
    /// Prints tables, a ranking and the policy that follows. Destroys all data on the device.
    Suite(Box<suite::args::SuiteArgs>),
    /// Show whether TRIM arrives here, and what stops it
    ///
    /// Draws the storage stack from the file system down to the drives, and marks where discards
    /// pass, change or stop. Lists who trims and when, and what deserves attention, each with its
    /// evidence and the command that mends it.
    Inspect(inspect::args::InspectArgs),
    /// Try ways of discarding on a drive's model, in virtual time
    ///
    /// Hours pass in seconds, and no drive is touched. A run gives a record for `report` and
    /// `compare`, and figures: the foreground's loss, and the commands that the drive got.
    Sim(Box<sim::args::SimArgs>),
    /// Check that TRIM destroys no data, and report what happened to damaged data
    ///
    /// Writes blocks that say what they are, overwrites, cuts, removes and discards them, and reads
    /// them back past the page cache. Reports where and how data were damaged, which discard was
    /// near, and which fault of the drive explains it. Removes what it made.
    Verify(verify::args::VerifyArgs),
    /// Show what devices do now, who sends discards, and who is blocked
    ///
    /// Shows a live view of reads, writes, discards and flushes, with the share of time that each
    /// device spends in discards. Prints lines where standard output is no terminal. Can record a
    /// run for `report`, and export figures to Prometheus.
    Watch(Box<watch::args::WatchArgs>),
    /// Show what a program waits for, and whether TRIM is to blame
    ///
    /// Looks at its threads while it runs, and at every discard that the kernel sends meanwhile.
    /// Names the sender of the discards, the deletion behind them and what would help; or what else
    /// the program waited for.
    Why(Box<why::args::WhyArgs>),
    /// Make loop devices that behave like given drives, to try anything out on
    ///
    /// Needs root, /dev/fuse and loop devices.
    Lab(lab::args::LabArgs),
}
