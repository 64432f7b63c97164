//! fio, and its own benchmark of io_uring.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::case::{BLOCK, Case, Cpu, Measured, Where};
use crate::place::Place;

/// fio; processor time and count as its own JSON tells them, of the job alone.
pub(crate) fn fio(
    case: &Case,
    place: &Place,
    seconds: f64,
    tuned: bool,
) -> Result<Measured, String> {
    let mut command = Command::new("fio");
    command.args([
        "--name=reader",
        "--rw=randread",
        "--direct=1",
        "--time_based",
        "--output-format=json",
        "--allow_file_create=0",
    ]);
    command
        .arg(format!("--bs={BLOCK}"))
        .arg(format!("--iodepth={}", case.depth))
        .arg(format!("--runtime={}ms", (seconds * 1e3) as u64));
    if case.place == Where::Nowhere {
        command.args(["--ioengine=null", "--size=1g"]);
    } else {
        command
            .args(["--ioengine=io_uring", "--filename"])
            .arg(&place.path)
            .arg(format!("--size={}", place.len));
    }
    if tuned {
        command
            .args(["--norandommap", "--random_generator=lfsr", "--thread"])
            .arg(format!("--iodepth_batch_submit={}", case.batch))
            .arg(format!("--iodepth_batch_complete_min={}", case.batch))
            .arg(format!("--iodepth_batch_complete_max={}", case.depth));
        if case.place != Where::Nowhere {
            command.args(["--fixedbufs", "--registerfiles", "--nonvectored=1"]);
        }
    }
    let output = finish(&mut command, "fio")?;
    let text = String::from_utf8_lossy(&output.stdout);
    // Warnings may come before the JSON.
    let json = text.find('{').map_or("", |at| &text[at..]);
    let parsed: Value =
        serde_json::from_str(json).map_err(|error| format!("fio's output: {error}"))?;
    let job = &parsed["jobs"][0];
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let ios = number(&job["read"]["total_ios"]);
    let wall = Duration::from_secs_f64(number(&job["read"]["runtime"]) / 1e3);
    let share = |name: &str| wall.mul_f64(number(&job[name]).max(0.0) / 100.0);
    let cpu = Cpu {
        user: share("usr_cpu"),
        system: share("sys_cpu"),
    };
    Ok(Measured::new(cpu, ios, wall))
}

/// fio's `t/io_uring`: processor time of its whole process.
pub(crate) fn t_io_uring(
    path: &Path,
    case: &Case,
    place: &Place,
    seconds: f64,
) -> Result<Measured, String> {
    // It prints a line each second but the last.
    let runtime = (seconds.ceil() as u64).max(1) + 1;
    let mut command = Command::new(path);
    command
        .args(["-p0", "-B1", "-F1", "-X1", "-n1", "-R1"])
        .arg(format!("-b{BLOCK}"))
        .arg(format!("-d{}", case.depth))
        .arg(format!("-s{}", case.batch))
        .arg(format!("-c{}", case.batch))
        .arg(format!("-r{runtime}"));
    if case.place == Where::Nowhere {
        // It works on no file, but wants to open one.
        command.args(["-N1", "-O0", "/proc/self/exe"]);
    } else {
        command.arg("-O1").arg(&place.path);
    }
    let before = Cpu::children();
    let output = finish(&mut command, "t/io_uring")?;
    let cpu = Cpu::children().since(before);
    let text = String::from_utf8_lossy(&output.stdout);
    let rates: Vec<f64> = text.lines().filter_map(rate_of).collect();
    if rates.is_empty() {
        return Err(format!("t/io_uring told no rate:\n{text}"));
    }
    let iops = rates.iter().sum::<f64>() / rates.len() as f64;
    let wall = Duration::from_secs(runtime);
    Ok(Measured::new(cpu, iops * wall.as_secs_f64(), wall))
}

/// `IOPS=9.32M, BW=...`
fn rate_of(line: &str) -> Option<f64> {
    let figure = line.strip_prefix("IOPS=")?.split(',').next()?;
    let (digits, unit) = match figure.strip_suffix(['K', 'M']) {
        Some(digits) if figure.ends_with('M') => (digits, 1e6),
        Some(digits) => (digits, 1e3),
        None => (figure, 1.0),
    };
    digits.parse::<f64>().ok().map(|n| n * unit)
}

fn finish(command: &mut Command, name: &str) -> Result<Output, String> {
    let output = command
        .output()
        .map_err(|error| format!("can't start {name}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "{name} failed ({}): {}",
            output.status,
            said.trim()
        ));
    }
    Ok(output)
}
