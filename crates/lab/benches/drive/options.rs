//! The options of the benchmark.

use std::path::PathBuf;

use crate::case::Case;

pub(crate) const HELP: &str = "\
Compares a simulated drive that costs nothing with nbdkit's memory behind nbdfuse.

  --repeats N     runs of each drive in each case [5]
  --seconds S     length of a run [1]
  --size-mib N    size of the drives, both in memory [1024]
  --case NAME     only the cases whose name contains this (may be given again)
  --no-nbdkit     without nbdkit
  --json FILE     where the figures go [target/bench/lab.json]

Needs root, /dev/fuse, loop devices and fio.";

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) repeats: usize,
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
    cases: Vec<String>,
    pub(crate) nbdkit: bool,
    pub(crate) json: PathBuf,
}

impl Options {
    /// `None`: help was asked for.
    pub(crate) fn from_args(args: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let mut options = Options {
            repeats: 5,
            seconds: 1.0,
            bytes: 1 << 30,
            cases: Vec::new(),
            nbdkit: true,
            json: PathBuf::from(root).join("target/bench/lab.json"),
        };
        let mut args = args;
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("{arg} needs a value"));
            let bad = |value: &str| format!("{arg} can't be {value}");
            match arg.as_str() {
                "--help" | "-h" => return Ok(None),
                // Given by `cargo bench`.
                "--bench" => {}
                "--no-nbdkit" => options.nbdkit = false,
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
                    let mib: Option<u64> = text.parse().ok().filter(|n| (64..=1 << 20).contains(n));
                    options.bytes = mib.ok_or_else(|| bad(&text))? << 20;
                }
                "--case" => options.cases.push(value()?),
                "--json" => options.json = value()?.into(),
                other => return Err(format!("unknown option {other}")),
            }
        }
        Ok(Some(options))
    }

    pub(crate) fn wants(&self, case: &Case) -> bool {
        let mut named = self.cases.iter();
        self.cases.is_empty() || named.any(|part| case.name.contains(part.as_str()))
    }
}
