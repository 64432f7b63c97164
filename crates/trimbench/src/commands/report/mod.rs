//! `trimbench report`.

pub(crate) mod args;

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bench::scenario::Judging;
use judge::JudgeOptions;
use record::units::names;
use record::units::settings::Section;
use report::csv::Run;
use report::terminal::Style;

use crate::commands::report::args::ReportArgs;
use crate::console::{self, Stream};
use crate::exit::{Error, Exit, usage};
use crate::input::{self, Input};
use crate::output::{Sink, make_directory};
use crate::record_output::Format;
use crate::record_output::{self, Shown};

/// Carries out the command. One record that can't be read doesn't keep the others back.
pub(crate) fn run(args: &ReportArgs) -> Result<Exit, Error> {
    let judging = Judging::of(&args.set).map_err(Error::Usage)?;
    let several = args.runs.len() > 1;
    let mut to = Destination::of(args)?;
    if let Some(directory) = &args.svg {
        make_directory(directory)?;
    }
    let mut names = Names::default();
    let mut written = 0;
    let mut exit = Exit::Done;
    for path in &args.runs {
        let name = names.of(path);
        let shown = to
            .refuse_itself(path)
            .and_then(|()| input::read(path))
            .and_then(|input| match judging.as_drive() {
                true => input.in_drives_time(),
                false => Ok(input),
            })
            .and_then(|input| {
                let run = match (several && args.format.joins(), written) {
                    (false, _) => Run::Only,
                    (true, 0) => Run::First(&input.name),
                    (true, _) => Run::Next(&input.name),
                };
                show(args, judging.low, &input, run, &name, &mut to)
            });
        match shown {
            Ok(()) => written += 1,
            Err(error) if several => {
                exit = error.exit();
                console::error(&error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(exit)
}

fn show(
    args: &ReportArgs,
    low: Option<f64>,
    input: &Input,
    run: Run<'_>,
    name: &str,
    to: &mut Destination,
) -> Result<(), Error> {
    let verdict = match low {
        Some(low) => record_output::verdict_with(&input.record, &JudgeOptions { low }),
        None => record_output::verdict(&input.record),
    };
    let shown = Shown {
        record: &input.record,
        verdict: &verdict,
    };
    let style = to.style();
    to.write(name, args.format, |to| {
        if args.quiet {
            let name = match run {
                Run::Only => String::new(),
                Run::First(name) | Run::Next(name) => format!("{name}: "),
            };
            let line = format!("{name}{}\n", verdict.summary);
            return to.write_all(names::harmless(&line).as_bytes());
        }
        shown.write(args.format, run, &style, to)
    })?;
    if let Some(directory) = &args.svg {
        let prefix = (args.runs.len() > 1).then_some(name);
        pictures(&shown, directory, prefix)?;
    }
    Ok(())
}

/// Writes the charts, each into a file of its own.
fn pictures(shown: &Shown<'_>, directory: &Path, prefix: Option<&str>) -> Result<(), Error> {
    let all = report::svg::pictures(shown.record, shown.verdict);
    for picture in all {
        let file = match prefix {
            Some(run) => format!("{run}-{}.svg", picture.name),
            None => format!("{}.svg", picture.name),
        };
        Sink::file(&directory.join(file))?.write(|to| to.write_all(picture.svg.as_bytes()))?;
    }
    Ok(())
}

/// Where the text goes.
enum Destination {
    Sink(Sink),
    Directory(PathBuf),
}

impl Destination {
    fn of(args: &ReportArgs) -> Result<Destination, Error> {
        let kind = args.format.ending();
        let several = args.runs.len() > 1 && !args.format.joins();
        match &args.output {
            Some(path) if is_directory(path) => {
                make_directory(path)?;
                Ok(Destination::Directory(path.clone()))
            }
            _ if several => Err(usage(format!(
                "several runs need a file each as {kind}: give --output a directory, e.g. \
                 --output {kind}/"
            ))),
            Some(path) if path.as_os_str() != "-" => Ok(Destination::Sink(Sink::file(path)?)),
            _ => {
                record_output::refuse_on_terminal(args.format)?;
                Ok(Destination::Sink(Sink::standard()))
            }
        }
    }

    /// A record that would be overwritten by its own report.
    fn refuse_itself(&self, run: &Path) -> Result<(), Error> {
        match self {
            Destination::Sink(sink) if sink.is(run) => Err(usage(format!(
                "{}: is the record and the --output at once; give another file",
                names::shown(run)
            ))),
            _ => Ok(()),
        }
    }

    fn style(&self) -> Style {
        let mut style = Stream::Out.style();
        style.colour &= matches!(self, Destination::Sink(sink) if sink.is_standard());
        style
    }

    /// Writes the text of one run.
    fn write(
        &mut self,
        name: &str,
        format: Format,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        match self {
            Destination::Sink(sink) => sink.write(text),
            Destination::Directory(directory) => {
                let file = directory.join(format!("{name}.{}", format.ending()));
                Sink::file(&file)?.write(text)
            }
        }
    }
}

fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Names for files of what is made of a record, each once.
#[derive(Default)]
struct Names {
    used: HashSet<String>,
}

impl Names {
    fn of(&mut self, path: &Path) -> String {
        let stem = match path.file_name() {
            Some(name) if name != "-" => input::stem(path),
            _ => "record".to_owned(),
        };
        let numbered = (2..).map(|n| format!("{stem}-{n}"));
        let mut names = std::iter::once(stem.clone()).chain(numbered);
        let free = names.find(|name| !self.used.contains(name));
        let name = free.unwrap_or_default();
        self.used.insert(name.clone());
        name
    }
}
