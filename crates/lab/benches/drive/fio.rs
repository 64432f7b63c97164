//! The client of both: fio.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::case::Case;
use crate::options::Options;

/// Fills a drive with random data.
pub(crate) fn fill(device: &Path, bytes: u64) -> Result<(), String> {
    let size = format!("--size={bytes}");
    fio(
        device,
        &["--rw=write", "--bs=1M", "--ioengine=io_uring", &size],
    )?;
    Ok(())
}

/// How often per second it did what the case asks for.
pub(crate) fn per_second(case: &Case, device: &Path, options: &Options) -> Result<f64, String> {
    // fio's io_uring can't discard.
    let engine = if case.counted == "trim" {
        "sync"
    } else {
        "io_uring"
    };
    let told = fio(
        device,
        &[
            &format!("--rw={}", case.rw),
            &format!("--ioengine={engine}"),
            &format!("--bs={}", case.block),
            &format!("--iodepth={}", case.depth),
            &format!("--size={}", options.bytes),
            "--time_based",
            "--ramp_time=200ms",
            &format!("--runtime={}ms", (options.seconds * 1e3) as u64),
        ],
    )?;
    let rate = told["jobs"][0][case.counted]["iops"].as_f64();
    rate.filter(|rate| *rate > 0.0)
        .ok_or_else(|| "fio told no rate".to_owned())
}

fn fio(device: &Path, arguments: &[&str]) -> Result<Value, String> {
    let output = Command::new("fio")
        .args(["--name=client", "--direct=1", "--norandommap"])
        .args(["--output-format=json", "--allow_file_create=0"])
        .arg(format!("--filename={}", device.display()))
        .args(arguments)
        .output()
        .map_err(|error| format!("can't start fio: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("fio failed ({}): {}", output.status, said.trim()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // Warnings may come before the JSON.
    let json = text.find('{').map_or("", |at| &text[at..]);
    serde_json::from_str(json).map_err(|error| format!("fio's output: {error}"))
}
