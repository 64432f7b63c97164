//! Our own tools, each run in a process of its own. The kernel splits a process's time into user
//! and system by its whole life (`cputime_adjust`), so an earlier run would colour a later one.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use load::actor::{Engine, Op};

use crate::case::{self, Case, Measured, Tool, Where};
use crate::ours;
use crate::place::Place;

/// The first argument of such a process.
const ONE: &str = "--one";

/// Runs a tool in a process of its own.
pub(crate) fn run(
    tool: &Tool,
    case: &Case,
    place: &Place,
    seconds: f64,
) -> Result<Measured, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args([ONE, tool.name(), case.name])
        .arg(&place.path)
        .args([place.len.to_string(), seconds.to_string()])
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let told = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = told.split_whitespace().flat_map(str::parse).collect();
    match numbers[..] {
        [user_us, system_us, iops] => Ok(Measured {
            user_us,
            system_us,
            iops,
        }),
        _ => Err(format!("it told {told:?}")),
    }
}

/// In such a process: does what it is asked and tells the figures. `None` in any other.
pub(crate) fn asked(args: &[String]) -> Option<Result<String, String>> {
    match args {
        [one, tool, case, path, len, seconds] if one == ONE => {
            Some(work(tool, case, path, len, seconds))
        }
        _ => None,
    }
}

fn work(tool: &str, case: &str, path: &str, len: &str, seconds: &str) -> Result<String, String> {
    let bad = |error: &dyn std::fmt::Display| error.to_string();
    let case = case::ALL
        .iter()
        .find(|one| one.name == case)
        .ok_or("no such case")?;
    let mut place = Place {
        path: path.into(),
        file: None,
        len: len.parse().map_err(|error| bad(&error))?,
    };
    if case.place != Where::Nowhere {
        let file = load::target::open(Path::new(path), Op::Read, true);
        place.file = Some(Arc::new(file.map_err(|error| bad(&error))?));
    }
    let seconds = seconds.parse().map_err(|error| bad(&error))?;
    let measured = if tool == Tool::Bare.name() {
        ours::bare(case, &place, seconds)?
    } else {
        let engine = match case.place {
            Where::Nowhere => Engine::Null,
            _ if tool == Tool::Libaio.name() => Engine::Libaio,
            _ => Engine::IoUring,
        };
        ours::full(case, &place, seconds, engine)?
    };
    let Measured {
        user_us,
        system_us,
        iops,
    } = measured;
    Ok(format!("{user_us} {system_us} {iops}"))
}
