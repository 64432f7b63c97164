//! A run of `trimbench run` on the mounted file system.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;

use rustix::fs::{MemfdFlags, memfd_create};
use units::names::shown;

use super::Turn;
use crate::log::Figures;
use crate::programs::Trouble;
use crate::step::Step;
use crate::verdict::RunFigures;

impl Turn<'_> {
    /// Readers beside a deletion, judged by `trimbench run`.
    pub(super) fn run(&mut self, step: Step) -> Result<Figures, Trouble> {
        if self.files {
            self.without_files()?;
        }
        self.settle()?;
        // A file without a name, so that nothing stays wherever this ends.
        let failed = Trouble::of("can't keep a verdict in memory");
        let memory = memfd_create("trimbench-verdict", MemfdFlags::CLOEXEC);
        let mut json = File::from(memory.map_err(|errno| failed(errno.into()))?);
        let path = format!("/proc/{}/fd/{}", std::process::id(), json.as_raw_fd());
        let mut words = self.run_words(&path);
        let trimbench = shown(&self.programs.trimbench);
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
        let run = serde_json::from_str(&text)
            .ok()
            .as_ref()
            .and_then(RunFigures::of);
        let none = || Trouble::Failed("trimbench run wrote no verdict".to_owned());
        Ok(Figures {
            run: Some(Box::new(run.ok_or_else(none)?)),
            ..figures
        })
    }

    fn run_words(&self, json: &str) -> Vec<OsString> {
        let [settle, baseline, recovery, drain] = self.plan.run_times(&self.now.cell);
        let time = |time: std::time::Duration| OsString::from(format!("{}s", time.as_secs()));
        let bytes = |bytes: u64| OsString::from(bytes.to_string());
        vec![
            self.programs.trimbench.clone().into(),
            "run".into(),
            self.stage.mount_point().into(),
            "--size".into(),
            bytes(self.plan.cell_bytes()),
            "--set".into(),
            format!("foreground.size={}", self.plan.foreground_bytes()).into(),
            "--settle".into(),
            time(settle),
            "--baseline".into(),
            time(baseline),
            "--recovery".into(),
            time(recovery),
            "--set".into(),
            format!("phases.drain-limit={}s", drain.as_secs()).into(),
            "--quiet".into(),
            "--json".into(),
            json.into(),
        ]
    }
}
