//! Writes the service and the timer.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use diagnose::quiet::{History, Window};
use linux::SysRoot;
use linux::host::{weekly, weekly_within};
use reclaim::lease::Place;
use record::units::minutes;
use record::units::names::shown;
use ssd::Card;

use super::unit_files::{MARK, NAME, service, timer};
use crate::commands::fstrim::args::{Details, FstrimArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::goal::in_shell;
use crate::input;
use crate::systemd::{Units, absolute, next_steps, own_program, refuse_control};

/// Writes both, or shows them.
pub(super) fn install(args: &FstrimArgs, details: &Details) -> Result<Exit, Error> {
    // A card that can't be read is better found now than every week.
    let card = args.goal.card()?;
    let quiet = details.history.as_deref();
    let quiet = quiet
        .map(|file| window(file, args, details, card.as_ref()))
        .transpose()?;
    let (window, why) = quiet.unzip();
    let program = own_program()?;
    let command = command(args, details, &program)?;
    let files = [
        (path(details, "service"), service(&command)),
        (path(details, "timer"), timer(window.as_ref())),
    ];
    let units = Units {
        kind: "timer",
        mark: MARK,
        program: &program,
        files: &files,
    };
    let enable = format!(
        "To use the timer instead of the distribution's:\n  \
         systemctl daemon-reload\n  \
         systemctl disable --now fstrim.timer\n  \
         systemctl enable --now {NAME}.timer\n"
    );
    let host = SysRoot::host();
    let times = match &window {
        Some(window) => weekly_within(&host, window.start, window.spare),
        None => weekly(&host),
    };
    let next = next_steps(&enable, &times, &command) + &why.unwrap_or_default();
    if args.dry_run {
        units.show();
        Stream::Out.print(&next);
        return Ok(Exit::Done);
    }
    units.write(details.replace())?;
    let written = files.each_ref().map(|(path, _)| shown(path));
    Stream::Out.print(&format!(
        "Wrote {}.\nEvery week it runs:{}\n{next}",
        written.join(" and "),
        in_shell(&command),
    ));
    warn_of_faults(args)?;
    Ok(Exit::Done)
}

/// Returns the quietest window that is long enough, with the reasons in words.
fn window(
    file: &Path,
    args: &FstrimArgs,
    details: &Details,
    card: Option<&Card>,
) -> Result<(Window, String), Error> {
    let (needed_s, how) = needed(args, details, card)?;
    let window = History::read(BufReader::new(input::open(file)?)).and_then(|history| {
        let offset = linux::clock::local_offset_s;
        history.quietest(needed_s, offset)
    });
    let window = window.map_err(|why| usage(format!("{}: {why}", shown(file))))?;
    let takes = minutes(Duration::try_from_secs_f64(needed_s).unwrap_or(Duration::MAX));
    let why = format!("The quietest window is {window}. The trim takes {how} {takes}.\n");
    Ok((window, why))
}

/// How long the trim takes, in seconds: each file system by its deadline, or by a forecast.
fn needed(
    args: &FstrimArgs,
    details: &Details,
    card: Option<&Card>,
) -> Result<(f64, &'static str), Error> {
    let deadline = args.goal.deadline;
    let mut all_s = 0.0;
    for one in super::selected(args)? {
        let forecast = || {
            let forecast = super::forecast(&one.path, args, card)?;
            match details.rate {
                Some(rate) => Some(forecast.bytes as f64 / rate as f64),
                None => Some(forecast.time?.paced_s(args.goal.goal().slowdown)),
            }
        };
        let seconds = deadline.map(|deadline| deadline.as_secs_f64());
        all_s += seconds.or_else(forecast).ok_or_else(|| {
            usage(format!(
                "{}: how long a trim takes is unknown; give --deadline TIME, or the drive's --profile \
                 (`trimbench fit` measures it)",
                shown(&one.path)
            ))
        })?;
    }
    let how = match deadline {
        Some(_) => "at most",
        None => "about",
    };
    Ok((all_s, how))
}

/// Warns of the file systems whose trims do harm in this kernel.
fn warn_of_faults(args: &FstrimArgs) -> Result<(), Error> {
    for one in &super::selected(args)? {
        let found = storage::describe(&one.path).ok();
        if let Some(fault) = found.as_ref().and_then(storage::Description::fault) {
            let place = shown(&one.path);
            Stream::Err.print(&format!("trimbench fstrim: {place}: {fault}\n"));
        }
    }
    Ok(())
}

fn path(details: &Details, kind: &str) -> PathBuf {
    details.unit_dir().join(format!("{NAME}.{kind}"))
}

/// Returns the command of the timer: the options that were given, with `--resume`.
fn command(args: &FstrimArgs, details: &Details, program: &Path) -> Result<Vec<String>, Error> {
    let mut words = vec![absolute(program)?, "fstrim".to_owned()];
    let mut add = |option: &str, value: String| words.push(format!("--{option}={value}"));
    match (&args.listed_in, args.all, args.fstab) {
        (Some(files), ..) => {
            let files = files.split(':').filter(|file| !file.is_empty());
            let files: Result<Vec<String>, Error> =
                files.map(|file| absolute(Path::new(file))).collect();
            add("listed-in", files?.join(":"));
        }
        (_, true, _) => add("listed-in", reclaim::trim::MOUNTED.to_owned()),
        (_, _, true) => add("listed-in", reclaim::trim::FSTAB.to_owned()),
        _ if args.mounts.is_empty() => add("listed-in", super::LISTED.to_owned()),
        _ => {}
    }
    if let Some(rate) = details.rate {
        add("set", format!("rate={rate}"));
    }
    if let Some(types) = &args.types {
        add("types", types.clone());
    }
    match &details.lease {
        Some(Place::File(file)) => add("set", format!("lease={}", absolute(file)?)),
        Some(Place::Kubernetes { .. }) => {
            return Err(usage(
                "--set lease=k8s needs a pod's service account, which a timer of systemd does not have; \
                 use deploy/kubernetes/fstrim.yaml, or give --set lease=FILE",
            ));
        }
        None => {}
    }
    words.extend(args.part());
    words.extend(args.goal.in_unit(details.rate.is_none())?);
    for word in ["--resume", "--quiet-unsupported", "--verbose"] {
        words.push(word.to_owned());
    }
    for mount in &args.mounts {
        words.push(absolute(mount)?);
    }
    refuse_control(&words)?;
    Ok(words)
}
