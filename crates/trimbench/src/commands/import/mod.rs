//! `trimbench import`.

pub(crate) mod args;
mod texts;

use std::io::{BufReader, Read};
use std::path::Path;

use formats::{First, Kind, Options, fio, iostat};
use judge::Verdict;
use record::units::names;
use record::units::settings::Section;
use record::{EventKind, RunRecord};
use report::csv::Run;
use report::terminal;

use crate::commands::import::args::{Details, FirstReport, ImportArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::output::{Output, Sink};
use crate::record_output::Format;
use crate::record_output::{self, Shown};
use texts::{Text, Texts, foreign, unfit};

/// Longest text that is read as a whole: fio's JSON, notes.
const LONGEST: u64 = 256 << 20;

/// Carries out the command.
pub(crate) fn run(args: &ImportArgs) -> Result<Exit, Error> {
    record_output::refuse_on_terminal(args.format)?;
    let output = args.output.as_deref().map(open).transpose()?;
    if let Some(output) = &output
        && let Some(path) = args.paths.iter().find(|path| output.is(path))
    {
        return Err(usage(format!(
            "{}: is to be imported and the --output at once; give another file",
            names::shown(path)
        )));
    }
    let details = Details::of(&args.set).map_err(Error::Usage)?;
    let mut texts = Texts::default();
    for path in &args.paths {
        texts.add(path)?;
    }
    if !args.quiet {
        for text in &texts.found {
            Stream::Err.print(&format!("{}: {}\n", text.name, text.kind));
        }
        for left_out in &texts.left_out {
            Stream::Err.print(&names::harmless(&format!("{left_out}\n")));
        }
    }
    let material = Material::read(texts.found)?;
    let record = material.record(args, &details)?;
    record_output::refuse_unknown_actors(&args.fail_on, &record.head)?;
    let mut verdict = record_output::verdict(&record);
    let checked = args.fail_on.iter().map(|one| one.check(&verdict));
    verdict.conditions = checked.collect();
    show(args, &record, &verdict)?;
    if let Some(output) = output {
        output.whole_record(&record)?;
    }
    record_output::ending(&verdict)
}

fn open(path: &Path) -> Result<Output, Error> {
    if path.as_os_str() == "-" {
        return Err(usage(
            "--output: a record isn't written to standard output; give a file",
        ));
    }
    Output::open(path)
}

fn show(args: &ImportArgs, record: &RunRecord, verdict: &Verdict) -> Result<(), Error> {
    if args.quiet {
        let summary = names::harmless(&verdict.summary);
        Stream::Out.print(&format!("{summary}\n"));
        Stream::Out.print(&terminal::conditions(verdict, &Stream::Out.style()));
        return Ok(());
    }
    // Tables of figures have no place for what is to be known of them.
    if matches!(args.format, Format::Csv | Format::CsvDevices) {
        let events = record.events.iter();
        let warnings = events.filter(|event| event.kind == EventKind::Warning);
        for detail in warnings.filter_map(|event| event.detail.as_ref()) {
            Stream::Err.print(&names::harmless(&format!("{detail}\n")));
        }
    }
    let shown = Shown { record, verdict };
    let style = Stream::Out.style();
    Sink::standard().write(|to| shown.write(args.format, Run::Only, &style, to))
}

/// The content of the files.
#[derive(Default)]
struct Material {
    iostat: Option<(String, iostat::Log)>,
    /// The notes of a script and fio's normal output, by the first one's name.
    notes: Option<(String, String)>,
    output: Option<fio::Output>,
    /// Logs by their names, and what one of them is called.
    series: Vec<fio::FioSeries>,
}

impl Material {
    fn read(texts: Vec<Text>) -> Result<Material, Error> {
        let mut all = Material::default();
        let mut logs = Vec::new();
        let mut progress = Vec::new();
        for text in texts {
            match text.kind {
                Kind::Iostat | Kind::Sadf => {
                    if let Some((one, _)) = all.iostat {
                        let other = text.name;
                        return Err(usage(format!(
                            "{one} and {other} are both an iostat log: import one at a time"
                        )));
                    }
                    let log = iostat::Log::read(BufReader::new(text.read));
                    let log = log.map_err(|e| unfit(&text.name, e))?;
                    all.iostat = Some((text.name, log));
                }
                Kind::Notes | Kind::FioText => {
                    let notes = whole(&text.name, text.read)?;
                    let all = all.notes.get_or_insert((text.name, String::new()));
                    all.1 += &notes;
                }
                Kind::FioJson => {
                    let printed = fio::Output::parse_all(&whole(&text.name, text.read)?);
                    let mut printed = printed.map_err(|e| unfit(&text.name, e))?;
                    progress.extend(fio::progress(&printed));
                    let last = printed.pop().unwrap_or_default();
                    match &mut all.output {
                        Some(before) => before.jobs.extend(last.jobs),
                        None => all.output = Some(last),
                    }
                }
                _ => logs.push(fio::Input {
                    name: text.name,
                    text: BufReader::new(text.read),
                }),
            }
        }
        all.series = match logs.is_empty() {
            true => progress,
            false => fio::series(logs, all.output.as_ref()).map_err(|e| usage(e.to_string()))?,
        };
        Ok(all)
    }

    fn record(self, args: &ImportArgs, details: &Details) -> Result<RunRecord, Error> {
        let record = self.made(args, details)?;
        let end_s = record.intervals.end_s();
        let within = |at: &formats::Moment| (0.0..end_s).contains(&at.in_record(&record));
        if !args.at.as_ref().is_none_or(within) {
            let covers = record::units::seconds(end_s);
            return Err(usage(format!(
                "--at: the record covers {covers} from its begin, and that is not in it"
            )));
        }
        Ok(record)
    }

    fn made(self, args: &ImportArgs, details: &Details) -> Result<RunRecord, Error> {
        let options = options(args, details);
        let Some((name, log)) = &self.iostat else {
            self.refuse_iostats_options(args, details)?;
            let record = match (self.series.is_empty(), &self.output) {
                (true, Some(output)) => fio::totals(output),
                (true, None) => return Err(self.notes_alone()),
                (false, _) => fio::record(&self.series, &options),
            };
            return record.map_err(|e| unfit("fio's logs", e));
        };
        let notes = self.notes.map(|notes| iostat::Notes::parse(&notes.1));
        formats::together(log, notes.as_ref(), &options, self.series).map_err(|e| unfit(name, e))
    }

    /// Neither what a script wrote down nor fio's normal output makes a record.
    fn notes_alone(&self) -> Error {
        let (name, text) = self.notes.clone().unwrap_or_default();
        match formats::Foreign::in_text(&text).filter(|_| !iostat::Notes::is_one(&text)) {
            Some(tool) => unfit(&name, foreign(tool)),
            None => usage("notes alone make no record; give what iostat or fio wrote, too"),
        }
    }

    /// Options that would do nothing.
    fn refuse_iostats_options(&self, args: &ImportArgs, details: &Details) -> Result<(), Error> {
        for (given, name) in [
            (!args.members.is_empty(), "--members"),
            (details.device.is_some(), "--set device"),
            (details.first_report.is_some(), "--set first-report"),
        ] {
            if given {
                return Err(usage(format!(
                    "{name}: is of an iostat log, and there is none among these files"
                )));
            }
        }
        Ok(())
    }
}

/// The options of the texts, as the user gave them.
fn options(args: &ImportArgs, details: &Details) -> Options {
    Options {
        interval_s: details.interval.map(|interval| interval.as_secs_f64()),
        first: match details.first_report {
            None => First::Tell,
            Some(FirstReport::Keep) => First::Keep,
            Some(FirstReport::Drop) => First::Drop,
        },
        members: args.members.clone(),
        devices: (details.device.iter().flatten())
            .map(|name| name.trim_start_matches("/dev/").to_owned())
            .collect(),
        deletion: args.at,
    }
}

/// A text of which all is needed at once.
fn whole(name: &str, from: Box<dyn Read>) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let read = from.take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|source| crate::input::InputError::unreadable(name, source))?;
    if bytes.len() as u64 > LONGEST {
        return Err(unfit(name, "is longer than 256 MiB"));
    }
    Ok(formats::plain(&String::from_utf8_lossy(&bytes)))
}
