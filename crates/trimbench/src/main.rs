//! trimbench: see the library half for all of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    trimbench::main()
}
