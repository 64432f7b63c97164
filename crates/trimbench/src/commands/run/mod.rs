//! `trimbench run`.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bench::plan::{Control, Place, Plan};
use bench::scenario::{Counters, Idle, Options, Scenario};
use bench::{BenchError, Outcome, ReadyRun, Survey, Warning};
use diagnose::why::beside::RunObserver;
use judge::Verdict;
use linux::SysRoot;
use record::units::names;
use record::units::settings::{Section, pair};
use record::{DeviceInfo, EndReason, Invocation, RunRecord};
use report::terminal;

use crate::commands::run::args::{OutputArgs, RunArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit};
use crate::filled::Stores;
use crate::output::{Output, write_verdict};
use crate::run_progress::Progress;
use crate::{console, record_output, run_progress, signals, simulated};

pub(crate) mod args;
mod intentions;

/// Carries out the command.
pub(crate) fn run(args: RunArgs) -> Result<Exit, Error> {
    let is_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    let json_to_stdout = is_stdout(&args.output.json);
    let people = match json_to_stdout {
        true => Stream::Err,
        false => Stream::Out,
    };
    let quiet = args.output.quiet;
    if is_stdout(&args.output.output) {
        return Err(Error::Usage(
            "--output: a record isn't written to standard output; give a file".into(),
        ));
    }
    crate::output::refuse_dry(args.output.dry_run, "--json", args.output.json.as_deref())?;
    let asked = Asked::of(&args)?;
    let place = place(&args);
    if !args.output.dry_run {
        sweep(&place, quiet);
    }
    let mut survey = simulated::enter_cgroup(Survey::of(&place)?, args.output.dry_run);
    // Given back when the run is over.
    let general = &asked.scenario.general;
    let enable = general.counters() == Counters::Enable;
    let counters = match enable && !args.output.dry_run {
        true => survey.enable_counters()?,
        false => Vec::new(),
    };
    let as_drive = asked.scenario.judging.as_drive();
    if as_drive {
        record_output::has_drives_time(&survey.devices)?;
    }
    let plan = Plan {
        scenario: asked.name.clone(),
        run: Some(invocation(&args)),
        ..Plan::of(&asked.scenario, &survey)?
    };
    let checked = bench::preflight(&plan, &survey)?;
    record_output::refuse_unknown_actors(&args.output.fail_on, &checked.head)?;
    let (json, record_file) = outputs(&args.output)?;
    if !quiet {
        people.print(&terminal::set_up(&checked.head, &people.style()));
        if let Some(name) = &asked.name {
            people.print(&intentions::introduced(name, &asked.scenario));
        }
        people.print(&intentions::of(&plan, &survey));
        warn_of_others(&survey);
    }
    if args.output.dry_run {
        return Ok(Exit::Done);
    }
    let stop = signals::stop_flag()?;
    let mut ready = ReadyRun::claim(checked)?;
    if args.output.why {
        watch_waits(&mut ready, &survey.devices);
    }
    // What an earlier run recorded is lost from here on, and not before.
    let writer = record_file.map(Output::record).transpose()?;
    let mut progress = Progress::new(quiet, plan.phases.interval());
    let stores = Stores::of(survey.devices.iter().filter(|d| d.leaf).map(|d| &*d.name));
    let outcome = ready.perform(writer, &mut progress, &stop);
    drop(progress);
    stores.report("run");
    for guard in counters {
        guard.restore().map_err(BenchError::from)?;
    }
    let Outcome { mut record, error } = outcome?;
    if as_drive {
        record = record_output::in_drives_time(record)?;
    }

    let verdict = record_output::verdict(&record);
    tell(people, quiet, &record, &verdict);
    let written = match json {
        Some(json) => json.verdict(&verdict),
        None if json_to_stdout => {
            write_verdict(std::io::stdout().lock(), &verdict).map_err(|source| Error::OutputWrite {
                path: "standard output".into(),
                source,
            })
        }
        None => Ok(()),
    };
    match (ending(&record, error, &verdict), written) {
        (Ok(Exit::Done), Err(error)) => Err(error),
        // How the run itself went counts for more.
        (ended, Err(error)) => {
            console::error(&error);
            ended
        }
        (ended, Ok(())) => ended,
    }
}

/// Warns of other trimbenches on the same drives before the run, while it can still wait for them.
fn warn_of_others(survey: &Survey) {
    let is_other = |warning: &&Warning| matches!(warning, Warning::Beside { .. });
    for warning in survey.warnings.iter().filter(is_other) {
        Stream::Err.print(&format!("trimbench run: {warning}\n"));
    }
}

/// The files for the verdict and the record, where they are wanted.
fn outputs(args: &OutputArgs) -> Result<(Option<Output>, Option<Output>), Error> {
    let open = |path: &Option<PathBuf>| path.as_deref().map(Output::open).transpose();
    let json = match &args.json {
        Some(path) if path.as_os_str() == "-" => None,
        path => open(path)?,
    };
    let record = open(&args.output)?;
    if let (Some(json), Some(record)) = (&json, &record)
        && json.is_same(record)
    {
        return Err(Error::Usage(
            "--json and --output name the same file: give each its own".into(),
        ));
    }
    Ok((json, record))
}

/// Returns how a run ended, for the exit code.
fn ending(record: &RunRecord, error: Option<BenchError>, verdict: &Verdict) -> Result<Exit, Error> {
    let interrupted = record
        .end
        .as_ref()
        .is_none_or(|end| end.reason == EndReason::Interrupted);
    match error {
        Some(error) if interrupted => {
            console::error(&error.into());
            Stream::Err.print("trimbench: interrupted\n");
            return Ok(Exit::Interrupted);
        }
        Some(error) => return Err(error.into()),
        None if interrupted => {
            Stream::Err.print("trimbench: interrupted; what it had made is removed\n");
            return Ok(Exit::Interrupted);
        }
        None => {}
    }
    record_output::ending(verdict)
}

/// Removes the files of killed runs. The survey reports directories that can't be read.
fn sweep(place: &Place, quiet: bool) {
    let Place::Directory(directory) = place else {
        return;
    };
    for found in bench::sweep(directory).unwrap_or_default() {
        if !quiet {
            Stream::Err.print(&format!("{}\n", run_progress::swept(&found)));
        }
    }
}

fn tell(people: Stream, quiet: bool, record: &RunRecord, verdict: &Verdict) {
    if quiet {
        people.print(&names::harmless(&format!("{}\n", verdict.summary)));
        people.print(&terminal::conditions(verdict, &people.style()));
        return;
    }
    let style = people.style();
    people.print(&record_output::ended(record, verdict, &style));
}

/// Has the run's own threads watched beside it, and its record say in what they waited.
fn watch_waits(run: &mut ReadyRun<'_>, devices: &[DeviceInfo]) {
    let devices: Vec<String> = devices.iter().map(|one| one.name.clone()).collect();
    let beside = RunObserver::begin(SysRoot::host(), &devices, run.workers.clone());
    let explain = move |record: &RunRecord, zero_s| beside.finish(record, zero_s);
    run.explain = Some(Box::new(explain));
}

/// A scenario, with its name if it has one, and all that the options set.
struct Asked {
    /// The scenario's name.
    name: Option<String>,
    /// The scenario, with the options laid over it.
    scenario: Scenario,
}

impl Asked {
    /// Reads the scenario, if one is named, and lays the options over it.
    fn of(args: &RunArgs) -> Result<Asked, Error> {
        let (name, base) = match &args.scenario {
            Some(name) => {
                let (name, scenario) = Scenario::find(name)?;
                (Some(name), scenario)
            }
            None => (None, Scenario::default()),
        };
        let on_device = args.device.device.is_some();
        if let (Some(name), true) = (&name, on_device)
            && let Some(key) = needs_files(&base)
        {
            return Err(Error::Usage(format!(
                "scenario '{name}' sets {key}, and a raw device has no files: give a directory, or \
                 leave out --scenario"
            )));
        }
        let (scenario, idle) = base.overlaid(options(args)?)?;
        let asked = Asked { name, scenario };
        if on_device && let Some(key) = needs_files(&asked.scenario) {
            return Err(Error::Usage(format!(
                "{} doesn't go with --device: a raw device has no files, and is discarded in steps \
                 of deletion.chunk",
                given_as(args, &key)
            )));
        }
        if let Some(idle) = idle.iter().find(|idle| !(on_device && asked.clears(idle))) {
            return Err(asked.refuse(idle, args));
        }
        Ok(asked)
    }

    /// A raw device is discarded in chunks.
    fn clears(&self, idle: &Idle) -> bool {
        idle.path == "deletion.chunk" && self.scenario.deletion.way().name == "unlink"
    }

    fn refuse(&self, idle: &Idle, args: &RunArgs) -> Error {
        let beside = match &self.name {
            Some(name) => format!(", and not with scenario '{name}' as it is asked for"),
            None => String::new(),
        };
        Error::Usage(format!(
            "{} only does something with {}{beside}: leave it out, or change that",
            given_as(args, &idle.path),
            idle.need,
        ))
    }
}

/// How a key was given: as an option of its own, or by `--set`.
fn given_as(args: &RunArgs, path: &str) -> String {
    let keys = args.keys();
    let option = keys.iter().find(|(_, key, _)| *key == path);
    option.map_or_else(
        || format!("--set {path}"),
        |(option, ..)| (*option).to_owned(),
    )
}

/// The first key that is given and needs files; a raw device has none.
fn needs_files(scenario: &Scenario) -> Option<String> {
    let (general, deletion) = (&scenario.general, &scenario.deletion);
    let own = deletion.given().into_iter();
    let mut own = own.filter(|key| !["how", "size", "chunk"].contains(key));
    let rules = [
        (
            "deletion.how",
            !["unlink", "none"].contains(&deletion.way().name),
        ),
        ("control", general.control() != Control::Off),
    ];
    let rule = rules.iter().find(|(_, needs)| *needs);
    own.next()
        .map(|key| format!("deletion.{key}"))
        .or_else(|| rule.map(|(key, _)| (*key).to_owned()))
}

/// The settings: options that stand for a key, and those of --set.
fn options(args: &RunArgs) -> Result<Options, Error> {
    let mut options = Options::beside(args.foreground.actor.clone());
    for (option, key, text) in args.keys() {
        let set = options.set(key, text);
        set.map_err(|why| Error::Usage(format!("{option} {text}: {why}")))?;
    }
    for setting in &args.set {
        let (key, text) = pair(setting).map_err(Error::Usage)?;
        let set = options.set(key, text);
        set.map_err(|why| Error::Usage(format!("--set {setting}: {why}")))?;
    }
    Ok(options)
}

/// Where the arguments point to.
fn place(args: &RunArgs) -> Place {
    match &args.device.device {
        Some(path) => Place::Device {
            path: path.clone(),
            force: args.device.force,
        },
        None => Place::Directory(args.path.clone()),
    }
}

/// How this run was asked for.
fn invocation(args: &RunArgs) -> Invocation {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let conditions = args.output.fail_on.iter();
    Invocation {
        fail_on: conditions.map(ToString::to_string).collect(),
        ..linux::host::invocation(now.map_or(0.0, |time| time.as_secs_f64()))
    }
}
