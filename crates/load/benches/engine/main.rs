//! Measures the engine's cost: processor time per I/O, ours beside a bare loop and fio.
//!
//! Run by `make bench`, or `cargo bench -p trimbench-load --bench engine -- --help`. Every tool
//! does the same 4 KiB random reads (or no-operations) at the same depth and batch. The tools take
//! turns, round after round, so that a drift of the machine meets all of them. Medians, with the
//! range beside them.

mod case;
mod child;
mod external;
mod options;
mod ours;
mod place;
mod table;

use std::process::ExitCode;

use case::{Case, Measured, Tool};
use options::Options;
use place::Places;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(told) = child::asked(&args) {
        return match told {
            Ok(line) => {
                println!("{line}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let options = match Options::from_args(args.into_iter()) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(what) => {
            eprintln!("{what}\n\n{}", options::HELP);
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("engine benchmark: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let places = Places::make(options)?;
    let mut rows = Vec::new();
    for case in case::ALL.iter().filter(|case| options.wants(case)) {
        let Some(place) = places.of(case) else {
            continue;
        };
        let tools = case::tools(case, options);
        let mut measured: Vec<Vec<Measured>> = vec![Vec::new(); tools.len()];
        let mut failed = Vec::new();
        for repeat in 0..options.repeats {
            for i in 0..tools.len() {
                // Another one begins each time.
                let i = (i + repeat) % tools.len();
                if failed.contains(&i) {
                    continue;
                }
                match measure(&tools[i], case, place, options) {
                    Ok(one) => measured[i].push(one),
                    Err(error) => {
                        eprintln!("{}: without {}: {error}", case.name, tools[i].name());
                        failed.push(i);
                    }
                }
            }
        }
        let of_case: Vec<_> = tools
            .iter()
            .zip(&measured)
            .filter(|(_, measured)| !measured.is_empty())
            .map(|(tool, measured)| table::Row::new(case.name, tool.name(), measured))
            .collect();
        table::print(&of_case);
        rows.extend(of_case);
    }
    table::write_json(&rows, &options.json)?;
    println!("\nfigures: {}", options.json.display());
    Ok(())
}

fn measure(
    tool: &Tool,
    case: &Case,
    place: &place::Place,
    options: &Options,
) -> Result<Measured, String> {
    match tool {
        Tool::Ours | Tool::Libaio | Tool::Bare => child::run(tool, case, place, options.seconds),
        Tool::FioDefaults => external::fio(case, place, options.seconds, false),
        Tool::FioTuned => external::fio(case, place, options.seconds, true),
        Tool::TIoUring(path) => external::t_io_uring(path, case, place, options.seconds),
    }
}
