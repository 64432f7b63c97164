//! `trimbench blkdiscard`.

pub(crate) mod args;
mod messages;

use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::Ordering;

use pace::Policy;
use reclaim::device::{Discarding, Part};
use reclaim::throttle::Pacing;
use reclaim::{Event, Reply};
use record::units::names::shown;

use crate::commands::blkdiscard::args::BlkdiscardArgs;
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::status_line::Live;
use crate::{interference, signals};

/// Carries out the command.
pub(crate) fn run(args: &BlkdiscardArgs) -> Result<Exit, Error> {
    let is_other = |found: std::fs::Metadata| !found.file_type().is_block_device();
    if args.device.metadata().is_ok_and(is_other) {
        return Err(usage(format!(
            "{}: not a block device; give a drive, a partition or a logical volume",
            shown(&args.device)
        )));
    }
    if !args.destroy_data && !args.dry_run {
        return Err(usage(format!(
            "{}: all data in the range would be lost: say so with --destroy-data, or see with \
             --dry-run what would be discarded",
            shown(&args.device)
        )));
    }
    let card = args.goal.card()?;
    let part = Part {
        offset: args.offset,
        length: args.length,
        step: args.step,
    };
    let discarding = Discarding::claim(&args.device, &part, args.force)?;
    if args.dry_run {
        let work = discarding.work();
        Stream::Out.print(&messages::intention(
            args,
            &discarding.range(),
            &work,
            card.as_ref(),
        )?);
        return Ok(Exit::Done);
    }
    let stop = signals::stop_flag()?;
    let say = |text: &str| {
        if !args.quiet {
            Stream::Err.print(&format!("trimbench blkdiscard: {text}\n"));
        }
    };
    let range = discarding.range();
    let mut live = (!args.quiet).then(|| Live::new("trimbench blkdiscard"));
    let mut listener = |event: Event<'_>| {
        match (event, &mut live) {
            (Event::Progress(progress), Some(live)) => {
                live.show(|elapsed| messages::line(&progress, elapsed));
            }
            (Event::Note(sentence), _) => say(&sentence.to_string()),
            _ => {}
        }
        match stop.load(Ordering::Relaxed) {
            true => Reply::Stop,
            false => Reply::Yes,
        }
    };
    let pacing = Pacing {
        card,
        canary_group: crate::simulated::group_of_device(&args.device),
        protect: args.goal.protected(),
        ..Pacing::new(Policy::Adaptive(args.goal.goal()))
    };
    let outcome = discarding.run(&pacing, &mut listener);
    if let Some(live) = &mut live {
        live.end();
    }
    let discarded = outcome?;
    if let Some(at) = discarded.stopped_at {
        Stream::Err.print(&messages::stopped(args, &range, at));
        return Ok(Exit::Interrupted);
    }
    if args.verbose {
        Stream::Out.print(&format!(
            "{}: Discarded {} bytes from the offset {}\n",
            shown(&args.device),
            discarded.bytes,
            range.start
        ));
    }
    for line in messages::summary(&discarded) {
        say(&line);
    }
    Ok(
        match interference::is_missed(&discarded.summary, &args.goal) {
            true => Exit::ConditionHeld,
            false => Exit::Done,
        },
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn a_path_that_is_no_device_is_named_as_such_first() {
        for words in [
            &["/proc/self/exe"][..],
            &["--dry-run", "--destroy-data", "/proc"],
        ] {
            let words = ["trimbench", "blkdiscard"].iter().chain(words);
            let Command::Blkdiscard(args) = Cli::try_parse_from(words).unwrap().command else {
                panic!("another command");
            };
            let text = run(&args).unwrap_err().to_string();
            assert!(text.contains("not a block device"), "{text}");
            assert!(!text.contains("--destroy-data"), "{text}");
        }
    }

    #[test]
    fn without_destroy_data_it_says_that_data_would_be_lost() {
        let words = ["trimbench", "blkdiscard", "--length", "8G", "/dev/none"];
        let Command::Blkdiscard(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("another command");
        };
        let refused = run(&args).unwrap_err();
        assert_eq!(refused.exit(), Exit::Usage);
        let text = refused.to_string();
        for part in [
            "/dev/none",
            "data in the range would be lost",
            "--destroy-data",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
