//! `trimbench compare`.

pub(crate) mod args;
mod groups;

use std::path::PathBuf;

use judge::JudgeOptions;
use judge::compare::condition::Outcome;
use judge::compare::{Comparison, Group, Run, compare};
use record::units::names;
use record::units::settings::Section;
use report::compare as shown;

use crate::commands::compare::args::{CompareArgs, CompareFormat, Details};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::input::{self, Input};
use crate::output::Sink;
use crate::record_output;
use groups::Named;

/// Carries out the command.
pub(crate) fn run(args: &CompareArgs) -> Result<Exit, Error> {
    let details = Details::of(&args.set).map_err(Error::Usage)?;
    let named = match args.group.is_empty() {
        true => groups::singles(&args.runs)?,
        false => groups::parse(&args.group)?,
    };
    let output = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    let mut sink = file(output, "--output", &named)?.unwrap_or_else(Sink::standard);
    let junit = file(args.junit.as_ref(), "--junit", &named)?;
    if let Some(path) = args.junit.as_ref().filter(|path| sink.is(path)) {
        let path = names::shown(path);
        return Err(usage(format!(
            "{path}: is the --output and --junit at once; give another file"
        )));
    }
    let mut inputs: Vec<(&str, Vec<Input>)> = named
        .iter()
        .map(|group| {
            let runs = group.files.iter().map(|file| input::read(file));
            Ok((group.name.as_str(), runs.collect::<Result<_, Error>>()?))
        })
        .collect::<Result<_, Error>>()?;
    if details.as_drive() {
        in_drives_time(&mut inputs)?;
    }
    let groups: Vec<Group<'_>> = inputs
        .iter()
        .map(|(name, runs)| Group {
            name: (*name).to_owned(),
            runs: runs.iter().map(|input| of(input, details.low)).collect(),
        })
        .collect();
    let comparison = compare(&groups);
    write(&mut sink, args, &comparison)?;
    let people = match sink.is_standard() && args.format != CompareFormat::Text {
        true => Stream::Err,
        false => Stream::Out,
    };
    judge(args, &comparison, junit, people)
}

/// Those of slowed drives become records of the drives they stand for; the others are in real
/// time already.
fn in_drives_time(inputs: &mut [(&str, Vec<Input>)]) -> Result<(), Error> {
    let all = || inputs.iter().flat_map(|(_, runs)| runs);
    if let (false, Some(first)) = (all().any(Input::is_slowed), all().next()) {
        record_output::has_drives_time(&first.record.head.devices)?;
    }
    for (_, runs) in inputs {
        let runs_now = std::mem::take(runs).into_iter();
        let converted = runs_now.map(|input| match input.is_slowed() {
            true => input.in_drives_time(),
            false => Ok(input),
        });
        *runs = converted.collect::<Result<_, _>>()?;
    }
    Ok(())
}

fn of(input: &Input, low: Option<f64>) -> Run<'_> {
    Run {
        name: input.name.clone(),
        record: &input.record,
        options: match low {
            Some(low) => JudgeOptions { low },
            None => JudgeOptions::of(&input.record),
        },
    }
}

/// A file to write: opened before any work, and none of the records.
fn file(path: Option<&PathBuf>, option: &str, named: &[Named]) -> Result<Option<Sink>, Error> {
    let Some(path) = path else { return Ok(None) };
    if path.as_os_str() == "-" {
        return Err(usage(format!(
            "{option} isn't written to standard output; give a file"
        )));
    }
    let sink = Sink::file(path)?;
    match named.iter().flat_map(|g| &g.files).find(|f| sink.is(f)) {
        Some(file) => Err(usage(format!(
            "{}: is a record and the {option} at once; give another file",
            names::shown(file)
        ))),
        None => Ok(Some(sink)),
    }
}

fn write(sink: &mut Sink, args: &CompareArgs, comparison: &Comparison) -> Result<(), Error> {
    let mut style = Stream::Out.style();
    style.colour &= sink.is_standard();
    sink.write(|to| {
        let text = match args.format {
            CompareFormat::Text => shown::terminal(comparison, &style),
            CompareFormat::Markdown => shown::markdown(comparison),
            CompareFormat::Json => shown::json(comparison)?,
        };
        to.write_all(text.as_bytes())
    })
}

/// Returns the exit code that the conditions give. One that holds counts for more than one
/// without a result.
fn judge(
    args: &CompareArgs,
    comparison: &Comparison,
    junit: Option<Sink>,
    people: Stream,
) -> Result<Exit, Error> {
    let conditions = args.fail_on.iter();
    let results: Vec<_> = conditions.map(|one| (*one, one.of(comparison))).collect();
    if let Some(mut junit) = junit {
        junit.write(|to| to.write_all(shown::junit(comparison, &results).as_bytes()))?;
    }
    let holds = |outcome: &Outcome| matches!(outcome, Outcome::Holds { .. });
    let held = results.iter().any(|(_, outcome)| holds(outcome));
    let mut unknown = None;
    for (condition, outcome) in &results {
        let result = shown::outcome(comparison, condition, outcome);
        let sentence = format!("--fail-on '{condition}' {result}");
        match outcome {
            Outcome::Unknown { .. } if !held => unknown = unknown.or(Some(sentence)),
            _ => people.print(&(sentence + "\n")),
        }
    }
    match unknown {
        Some(why) => Err(Error::Unqualified(why)),
        None if held => Ok(Exit::ConditionHeld),
        None => Ok(Exit::Done),
    }
}
