//! How many files may be open at once.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process have as many files open as it may allow itself. Returns how many
/// that is; `None` where there is no limit.
pub fn allow_most_open() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match limit.current == limit.maximum || setrlimit(Resource::Nofile, raised).is_ok() {
        true => limit.maximum,
        false => limit.current,
    }
}
