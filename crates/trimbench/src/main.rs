//! trimbench: see the library half for all of it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    trimbench::main()
}
