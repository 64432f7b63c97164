//! A run of `trimbench run` on the mounted file system.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;

use record::units::names::shown;
use rustix::fs::{MemfdFlags, memfd_create};

use super::Turn;
use crate::Error;
use crate::suite::log::Figures;
use crate::suite::step::Step;
use crate::suite::verdict::RunFigures;

impl Turn<'_> {
    /// Readers beside a deletion, judged by `trimbench run`.
    pub(super) fn run(&mut self, step: Step) -> Result<Figures, Error> {
        if self.files {
            self.without_files()?;
        }
        self.settle()?;
        // A file without a name, so that nothing stays wherever this ends.
        let failed = Error::of("can't keep a verdict in memory");
        let memory = memfd_create("trimbench-verdict", MemfdFlags::CLOEXEC);
        let mut json = File::from(memory.map_err(|errno| failed(errno.into()))?);
        let path = format!("/proc/{}/fd/{}", std::process::id(), json.as_raw_fd());
        let mut words = self.run_words(&path);
        let trimbench = shown(self.trimbench);
        match step {
            Step::RunRmTrimbench => words.extend([
                "--delete".into(),
                format!("{trimbench} rm -f --quiet --set trash=false {{}}").into(),
            ]),
            Step::RunFstrim => words.extend(["--delete".into(), "fstrim".into()]),
            _ => {}
        }
        let figures = self.timed(&words)?;
        let mut text = String::new();
        json.rewind()
            .and_then(|()| json.read_to_string(&mut text))
            .map_err(failed)?;
        let verdict = serde_json::from_str(&text);
        let verdict = verdict.map_err(|_| Error::failed("trimbench run wrote no verdict"))?;
        Ok(Figures {
            run: Some(Box::new(RunFigures::of(verdict))),
            ..figures
        })
    }

    fn run_words(&self, json: &str) -> Vec<OsString> {
        let [settle, baseline, recovery, drain] = self.plan.run_times(&self.now.cell);
        let options = format!(
            "--size {} --set foreground.size={} --settle {settle}s --baseline {baseline}s \
             --recovery {recovery}s --set phases.drain-limit={drain}s --quiet --json {json}",
            self.plan.cell_bytes(),
            self.plan.foreground_bytes(),
        );
        let mut words: Vec<OsString> = vec![
            self.trimbench.into(),
            "run".into(),
            self.stage.mount_point().into(),
        ];
        words.extend(options.split(' ').map(OsString::from));
        words
    }
}
