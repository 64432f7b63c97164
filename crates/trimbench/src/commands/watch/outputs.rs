//! The files that updates go into, and the figures for Prometheus.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use diagnose::watch::drives::Drives;
use diagnose::watch::metrics::Metrics;
use diagnose::watch::recording::Recording;
use diagnose::watch::trims::LastTrims;
use diagnose::watch::{Targets, Update};
use linux::SysRoot;
use prometheus_client::registry::Registry;
use record::{Line, RecordWriter};

use crate::commands::watch::args::WatchArgs;
use crate::console::Stream;
use crate::exit::{Error, usage};
use crate::metrics::{self, Server, write_textfile};
use crate::output::{Output, Sink};

/// A record is handed to its file about so often: more than that a kill can't take away.
const FLUSHED_S: f64 = 1.0;

/// All that updates are written to.
pub(super) struct Outputs {
    json: Option<Sink>,
    record: Option<Recorded>,
    figures: Option<Figures>,
}

struct Recorded {
    path: PathBuf,
    recording: Recording,
    writer: RecordWriter<File>,
    flushed_s: f64,
}

struct Figures {
    metrics: Metrics,
    registry: Arc<Registry>,
    textfile: Option<PathBuf>,
}

impl Outputs {
    /// Opens all of them, so that one that can't be written is known at once.
    pub(super) fn open(args: &WatchArgs, watched: &Targets) -> Result<Outputs, Error> {
        let json = Sink::named(&args.json)?;
        let output = args.output.as_deref().map(Output::open).transpose()?;
        if let (Some(path), Some(json)) = (&args.output, &json)
            && json.is(path)
        {
            return Err(usage(
                "--json and --output name the same file; give another",
            ));
        }
        let figures = figures(args, watched)?;
        let record = match (output, &args.output) {
            (Some(output), Some(path)) => Some(Recorded::begin(output, path, args, watched)?),
            _ => None,
        };
        Ok(Outputs {
            json,
            record,
            figures,
        })
    }

    /// Writes an update.
    pub(super) fn add(&mut self, update: &Update) -> Result<(), Error> {
        if let Some(sink) = &mut self.json {
            sink.write(|to| {
                serde_json::to_writer(&mut *to, update)?;
                to.write_all(b"\n")
            })?;
        }
        if let Some(record) = &mut self.record {
            record.add(update)?;
        }
        if let Some(figures) = &mut self.figures {
            figures.metrics.add(update);
            if let Some(path) = &figures.textfile {
                write_textfile(path, &figures.registry)?;
            }
        }
        Ok(())
    }

    /// Ends the record.
    pub(super) fn finish(self) -> Result<(), Error> {
        self.record.map_or(Ok(()), Recorded::finish)
    }
}

impl Recorded {
    fn begin(
        output: Output,
        path: &Path,
        args: &WatchArgs,
        watched: &Targets,
    ) -> Result<Recorded, Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_s = now.map_or(0.0, |since| since.as_secs_f64());
        let run = linux::host::invocation(now_s);
        let interval_ms = args.interval.as_secs_f64() * 1e3;
        let host = linux::host::describe();
        let recording = Recording::new(watched, host, Some(run), now_s, interval_ms);
        let mut recorded = Recorded {
            path: path.to_path_buf(),
            writer: output.record()?,
            recording,
            flushed_s: 0.0,
        };
        let head = recorded.recording.head();
        recorded.write(&head)?;
        Ok(recorded)
    }

    fn add(&mut self, update: &Update) -> Result<(), Error> {
        // A last update that is far shorter than the others would be no interval of theirs.
        if update.seconds < Duration::from_millis(1).as_secs_f64() {
            return Ok(());
        }
        let line = self.recording.interval(update);
        self.write(&line)?;
        if update.at_s - self.flushed_s >= FLUSHED_S {
            self.flushed_s = update.at_s;
            let flushed = self.writer.flush();
            flushed.map_err(Error::unwritten(&self.path))?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), Error> {
        let end = self.recording.end();
        self.write(&end)?;
        let finished = self.writer.finish().map(drop);
        finished.map_err(Error::unwritten(&self.path))
    }

    fn write(&mut self, line: &Line) -> Result<(), Error> {
        let written = self.writer.write(line);
        written.map_err(Error::unwritten(&self.path))
    }
}

/// Drives are asked for the record of their life, and last trims are read, so often.
const ASKED: Duration = Duration::from_secs(300);

/// Asks the drives and reads the last trims now and then, beside the updates: a drive that hangs takes
/// seconds to answer.
fn ask_the_drives(drives: Drives, trims: LastTrims, watched: Targets) {
    thread::spawn(move || {
        let sys = SysRoot::host();
        loop {
            metrics::trims::read(&trims);
            drives.ask(&sys, &watched);
            thread::sleep(ASKED);
        }
    });
}

fn figures(args: &WatchArgs, watched: &Targets) -> Result<Option<Figures>, Error> {
    let Some(place) = &args.prometheus else {
        return Ok(None);
    };
    if place.parse::<u16>().is_ok() {
        return Err(usage(format!(
            "--prometheus {place}: a port needs a colon: --prometheus :{place} (a file of that name: ./{place})"
        )));
    }
    let (metrics, mut registry) = Metrics::new();
    let (drives, trims) = (Drives::new(&mut registry), LastTrims::new(&mut registry));
    ask_the_drives(drives, trims, watched.clone());
    let registry = Arc::new(registry);
    let textfile = is_file(place).then(|| PathBuf::from(place));
    match &textfile {
        None => {
            let server = Server::bind(place)?;
            if args.quiet
                && let Ok(address) = server.address()
            {
                Stream::Err.print(&format!("figures at http://{address}/metrics\n"));
            }
            server.serve(Arc::clone(&registry));
        }
        Some(path) => write_textfile(path, &registry).map_err(|error| match error {
            // Nothing was begun.
            Error::OutputWrite { path, source } => Error::OutputOpen { path, source },
            other => other,
        })?,
    }
    Ok(Some(Figures {
        metrics,
        registry,
        textfile,
    }))
}

/// Returns whether the place for the figures is a file, and no address.
fn is_file(place: &str) -> bool {
    place.contains('/') || !place.contains(':')
}
