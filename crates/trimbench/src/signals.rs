//! Ctrl-C and its kin: the first asks a run to end, the second ends it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use crate::exit::{Error, usage};

/// The signal that was caught first.
static CAUGHT: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// Returns the exit code after a signal: 128 and the number of the signal that was caught, so 130
/// for SIGINT, 143 for SIGTERM, 129 for SIGHUP. It is 130 without any.
pub(crate) fn exit_code() -> u8 {
    let caught = CAUGHT
        .get()
        .map_or(0, |caught| caught.load(Ordering::Relaxed));
    match u8::try_from(caught) {
        Ok(signal) if signal > 0 => 128 | signal,
        _ => 130,
    }
}

/// A flag that the first signal sets. The second ends the process at once, with
/// 128 and its number as exit code; what that leaves behind the next start removes.
///
/// Signals that the process was started to ignore stay ignored. `nohup` wants that of SIGHUP, and
/// a shell without job control of SIGINT for its background processes.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Error> {
    caught().map_err(|error| usage(format!("signals can't be caught: {error}")))
}

fn caught() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let caught = CAUGHT.get_or_init(Arc::default);
    let ignored = Ignored::now();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if ignored.has(signal) {
            continue;
        }
        // In this order: the second signal finds the flag that the first has set.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        flag::register_usize(signal, Arc::clone(caught), signal as usize)?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Lets a write beyond the largest size of a file (`ulimit -f`) fail as any other can. Otherwise
/// the signal that comes with it would end the process, with work half done.
pub(crate) fn outlive_large_files() {
    if !Ignored::now().has(SIGXFSZ) {
        // Caught, and nobody looks at the flag. Programs that are started have it as ever.
        let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    }
}

/// The signals that this process ignores: a bit for each, from the lowest on.
struct Ignored(u64);

impl Ignored {
    /// None where it isn't known.
    fn now() -> Ignored {
        let status = std::fs::read("/proc/self/status").unwrap_or_default();
        Ignored::of(&String::from_utf8_lossy(&status)).unwrap_or(Ignored(0))
    }

    /// As `/proc/PID/status` tells it.
    fn of(status: &str) -> Option<Ignored> {
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(mask.trim(), 16).ok().map(Ignored)
    }

    fn has(&self, signal: i32) -> bool {
        // They are counted from 1.
        let bit = u32::try_from(signal - 1).ok();
        bit.and_then(|bit| self.0.checked_shr(bit))
            .is_some_and(|from| from & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read() {
        let status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000001001001\n\
                      SigCgt:\tffffffffffffffff\n";
        let ignored = Ignored::of(status).unwrap();
        assert!(ignored.has(SIGHUP) && ignored.has(SIGXFSZ));
        assert!(!ignored.has(SIGINT) && !ignored.has(SIGTERM));
        let of = |mask: &str| Ignored::of(&format!("SigIgn:\t{mask}\n"));
        assert!(of("2").unwrap().has(SIGINT));
        assert!(of("8000000000000000").unwrap().has(64));
        assert!(!of("ffffffffffffffff").unwrap().has(0));
        assert!(!of("ffffffffffffffff").unwrap().has(65));
        assert!(of("").is_none() && of("none").is_none());
        assert!(Ignored::of("Name:\tx\n").is_none());
    }
}
