//! `trimbench why --record`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use diagnose::why::recorder::Recorder;
use diagnose::why::recorder::server::Server;
use linux::SysRoot;
use record::units::names::shown;
use signal_hook::consts::SIGUSR1;

use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::signals;

/// The recorder answers and stops after this time at most.
const NAP: Duration = Duration::from_millis(250);

/// Runs the recorder until a signal stops it.
pub(super) fn run(directory: &Path) -> Result<Exit, Error> {
    let failed = |error: io::Error| usage(format!("signals can't be caught: {error}"));
    let stop = signals::stop_flag()?;
    let requested = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGUSR1, Arc::clone(&requested)).map_err(failed)?;
    let server = Server::open(directory).map_err(|error| usage(error.to_string()))?;
    if let Err((call, error)) = linux::memory::never_wait_for_writeback() {
        let lack = match call {
            "mlockall" => "memory is not locked",
            _ => "the kernel may write other memory back for it",
        };
        Stream::Err.print(&format!(
            "trimbench: {lack} ({call}: {error}); under memory pressure the recorder may wait for \
             the disk\n"
        ));
    }
    let mut recorder = Recorder::begin(SysRoot::host());
    // So the code of an answer is in memory when a disk stalls.
    let _ = recorder.write(f64::INFINITY, &mut io::sink());
    Stream::Err.print(&format!(
        "trimbench: recording; ask with `trimbench why --since 5m`, or with SIGUSR1 for a file in \
         {}\n",
        shown(directory)
    ));
    let mut answered = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let until = Instant::now() + recorder.look();
        if answered.elapsed() >= NAP / 2 {
            answered = Instant::now();
            server.answer(&mut recorder);
        }
        if requested.swap(false, Ordering::Relaxed) {
            let said = match keep(directory, &mut recorder) {
                Ok(path) => format!(
                    "trimbench: wrote {0}; read it with `trimbench why --recording {0}`\n",
                    shown(&path)
                ),
                Err(error) => format!(
                    "trimbench: no recording was written to {}: {error}\n",
                    shown(directory)
                ),
            };
            Stream::Err.print(&said);
        }
        std::thread::sleep(until.saturating_duration_since(Instant::now()).min(NAP));
    }
    // It was told to.
    Ok(Exit::Done)
}

/// Writes a file with all that was kept. Nobody sees it before it is whole.
fn keep(directory: &Path, recorder: &mut Recorder) -> io::Result<PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let name = format!("{}.recording", now.map_or(0, |since| since.as_secs()));
    let path = directory.join(&name);
    linux::files::replace_with(&path, 0o600, |file| recorder.write(0.0, file))?;
    Ok(path)
}
