//! Writes the service and the timer.

use std::path::{Path, PathBuf};

use linux::SysRoot;
use reclaim::lease::Place;
use record::units::names::shown;

use super::unit_files::{MARK, NAME, service, timer};
use crate::commands::fstrim::args::{Details, FstrimArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::goal::in_shell;
use crate::systemd::{Units, absolute, next_steps, own_program, refuse_control};

/// The tables of a timer that names nothing else: those of the distributions' timer.
const LISTED: &str = "/etc/fstab:/proc/self/mountinfo";

/// Writes both, or shows them.
pub(super) fn install(args: &FstrimArgs, details: &Details) -> Result<Exit, Error> {
    // A card that can't be read is better found now than every week.
    args.goal.card()?;
    let program = own_program()?;
    let command = command(args, details, &program)?;
    let files = [
        (path(details, "service"), service(&command)),
        (path(details, "timer"), timer()),
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
    let next = next_steps(&enable, &linux::host::weekly(&SysRoot::host()), &command);
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

/// Warns of the file systems whose trims do harm in this kernel.
fn warn_of_faults(args: &FstrimArgs) -> Result<(), Error> {
    let listed = match args.mounts.is_empty() {
        true => super::listed(args)?,
        false => args.mounts.iter().map(|path| super::named(path)).collect(),
    };
    for one in &listed {
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
        _ if args.mounts.is_empty() => add("listed-in", LISTED.to_owned()),
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
