//! `trimbench inspect`.

pub(crate) mod args;

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use diagnose::forecast::Forecast;
use diagnose::inspect::collect::{collect, unpack};
use diagnose::inspect::metrics::register as findings;
use diagnose::inspect::prove::ProveError;
use diagnose::inspect::text;
use diagnose::inspect::{Inspection, Now, Options, Proof, Scope, inspect, prove};
use diagnose::watch::drives::Drives;
use diagnose::watch::metrics::registry;
use diagnose::watch::trims::LastTrims;
use linux::SysRoot;
use prometheus_client::registry::Registry;
use record::units::{bytes, names};

use crate::commands::inspect::args::{FailOn, InspectArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::output::{self, Sink};
use crate::{metrics, signals, simulated};

/// Carries out the command.
pub(crate) fn run(args: &InspectArgs) -> Result<Exit, Error> {
    if let Some(file) = &args.collect {
        return collected(file);
    }
    let (sys, _unpacked) = match &args.sysroot {
        Some(root) if root.is_file() => {
            let unpacked = unpacked(root)?;
            (SysRoot::at(&unpacked.0), Some(unpacked))
        }
        Some(root) if !root.is_dir() => {
            let root = names::shown(root);
            return Err(usage(format!(
                "--sysroot {root}: there is no such file or directory"
            )));
        }
        Some(root) => (SysRoot::at(root), None),
        None => (SysRoot::host(), None),
    };
    // This process's own directory is none of another machine's.
    let all = args.all || args.sysroot.is_some() && args.path == Path::new(".");
    let scope = match all {
        true => Scope::All,
        false => Scope::Path(args.if_deleted.first().unwrap_or(&args.path).clone()),
    };
    let json = Sink::named(&args.json)?;
    let mut options = options(args)?;
    if args.prove {
        match proof(args)? {
            Some(proof) => options.proof = Some(proof),
            None => return Ok(Exit::Interrupted),
        }
    }
    let found = inspect(&sys, &scope, &options)?;
    match &args.metrics {
        Some(file) => metrics::write(file, &figures(&found))?,
        None => output::present(&found, json, Stream::Out, || {
            text::page(&found, args.verbose, Stream::Out.look()) + &slowed(&found)
        })?,
    }
    let holds = |least: FailOn| found.worst() >= Some(least.severity());
    Ok(match args.fail_on.is_some_and(holds) {
        true => Exit::ConditionHeld,
        false => Exit::Done,
    })
}

/// The figures for Prometheus.
fn figures(found: &Inspection) -> Registry {
    let mut all = registry();
    findings(found, &mut all);
    Drives::new(&mut all).show(&found.drives);
    metrics::trims::read(&LastTrims::new(&mut all));
    all
}

/// The sentence where the times of a forecast are not those of a simulated drive in stretched time;
/// empty for any other.
fn slowed(found: &Inspection) -> String {
    let timed = |forecast: &Forecast| forecast.time.is_some();
    let drive = found.stacks.first().and_then(|stack| stack.drives().next());
    let Some(drive) = drive.filter(|_| found.if_deleted.as_ref().is_some_and(timed)) else {
        return String::new();
    };
    let device = Path::new("/dev").join(&drive.name);
    match simulated::here().of_device(&device) {
        Ok(Some(info)) if info.spec.slower != 1.0 => format!(
            "\n{} is simulated ({}): the times forecast are those of --profile, without this factor.\n",
            drive.name,
            simulated::profile(&info)
        ),
        _ => String::new(),
    }
}

/// Writes the archive of this machine.
fn collected(file: &Path) -> Result<Exit, Error> {
    let failed = Error::unwritten(file);
    let mut archive = std::io::BufWriter::new(std::fs::File::create(file).map_err(&failed)?);
    collect(&SysRoot::host(), &mut archive).map_err(&failed)?;
    let size = std::fs::metadata(file).map_or(0, |found| found.len());
    let (shown, size, quoted) = (names::shown(file), bytes(size), names::quoted(file));
    Stream::Out.print(&format!(
        "{shown}: {size}; inspect it with: trimbench inspect --sysroot {quoted}\n"
    ));
    Ok(Exit::Done)
}

/// A directory that is removed when this is dropped.
struct Unpacked(PathBuf);

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An archive, unpacked for as long as the result lives.
fn unpacked(file: &Path) -> Result<Unpacked, Error> {
    let failed = |why: String| usage(format!("cannot read {}: {why}", names::shown(file)));
    let name = format!("trimbench-sysroot-{}", std::process::id());
    let into = std::env::temp_dir().join(name);
    let made = std::fs::DirBuilder::new().mode(0o700).create(&into);
    made.map_err(|error| failed(format!("{}: {error}", names::shown(&into))))?;
    let into = Unpacked(into);
    let opened = std::fs::File::open(file).map_err(|error| failed(error.to_string()))?;
    let mut from = std::io::BufReader::new(opened);
    unpack(&mut from, &into.0).map_err(|error| failed(error.to_string()))?;
    Ok(into)
}

fn options(args: &InspectArgs) -> Result<Options, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let unix_s = now.map_or(0, |now| now.as_secs() as i64);
    let card = args.profile.as_deref().map(crate::card::named);
    Ok(Options {
        now: Now {
            unix_s,
            offset_s: linux::clock::local_offset_s(unix_s),
        },
        privileged: rustix::process::geteuid().is_root(),
        proof: None,
        if_deleted: args.if_deleted.clone(),
        card: card.transpose()?,
    })
}

/// The result of a proof; `None` if a signal stopped it.
fn proof(args: &InspectArgs) -> Result<Option<Proof>, Error> {
    let stop = signals::stop_flag()?;
    let terminal = Stream::Err.is_terminal();
    let proven = prove(&args.path, &stop, &mut |doing| {
        if terminal {
            Stream::Err.print(&format!("trimbench inspect: {doing}\n"));
        }
    });
    match proven {
        Ok(proof) => Ok(Some(proof)),
        Err(ProveError::Interrupted) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
