//! The benchmark's options.

use std::path::PathBuf;

use crate::case::Case;

pub(crate) const HELP: &str = "\
Compares the processor time per I/O of our engine, a bare loop and fio.

  --repeats N     runs of each tool in each case [9]
  --seconds S     length of a run [1]
  --directory D   where the disk's file is made [.]
  --size-mib N    size of the files read [1024]
  --case NAME     only the cases whose name contains this (may be given again)
  --no-fio        without fio
  --json FILE     where the figures go [target/bench/engine.json]

T_IO_URING=PATH   also runs fio's t/io_uring
The loop cases need root.";

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) repeats: usize,
    pub(crate) seconds: f64,
    pub(crate) directory: PathBuf,
    pub(crate) size_bytes: u64,
    pub(crate) cases: Vec<String>,
    pub(crate) fio: bool,
    pub(crate) json: PathBuf,
}

impl Options {
    /// `None`: help was asked for.
    pub(crate) fn from_args(args: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let mut options = Options {
            repeats: 9,
            seconds: 1.0,
            directory: ".".into(),
            size_bytes: 1 << 30,
            cases: Vec::new(),
            fio: true,
            json: PathBuf::from(root).join("target/bench/engine.json"),
        };
        let mut args = args;
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            let bad = |value: &str| format!("{arg} can't be {value}");
            match arg.as_str() {
                "--help" | "-h" => return Ok(None),
                // Given by `cargo bench`.
                "--bench" => {}
                "--no-fio" => options.fio = false,
                "--repeats" => {
                    let text = value()?;
                    let n = text.parse().ok().filter(|n| *n > 0);
                    options.repeats = n.ok_or_else(|| bad(&text))?;
                }
                "--seconds" => {
                    let text = value()?;
                    let s = text.parse().ok().filter(|s| (0.1..=3600.0).contains(s));
                    options.seconds = s.ok_or_else(|| bad(&text))?;
                }
                "--size-mib" => {
                    let text = value()?;
                    let mib: Option<u64> = text.parse().ok().filter(|n| (1..=1 << 20).contains(n));
                    options.size_bytes = mib.ok_or_else(|| bad(&text))? << 20;
                }
                "--directory" => options.directory = value()?.into(),
                "--case" => options.cases.push(value()?),
                "--json" => options.json = value()?.into(),
                other => return Err(format!("unknown option {other}")),
            }
        }
        Ok(Some(options))
    }

    pub(crate) fn wants(&self, case: &Case) -> bool {
        self.cases.is_empty()
            || self
                .cases
                .iter()
                .any(|part| case.name.contains(part.as_str()))
    }
}
