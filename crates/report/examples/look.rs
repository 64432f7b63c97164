//! Prints the tests' synthetic runs, or recorded ones, to be looked at:
//! `cargo run -p trimbench-report --example look -- [WIDTH] [plain] [ascii] [RECORD…]`.

#[path = "../tests/common/mod.rs"]
mod common;

use judge::{JudgeOptions, Verdict, judge};
use record::RecordReader;
use record::RunRecord;
use report::terminal::{self, Style};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut style = Style {
        colour: true,
        width: 80,
        unicode: true,
    };
    let mut records = Vec::new();
    for word in std::env::args().skip(1) {
        match (word.as_str(), word.parse()) {
            (_, Ok(width)) => style.width = width,
            ("plain", _) => style.colour = false,
            ("ascii", _) => style.unicode = false,
            _ => records.push(RecordReader::read(std::fs::File::open(word)?)?),
        }
    }
    for record in &records {
        show(record, &judge(record, &JudgeOptions::default()), &style);
    }
    if records.is_empty() {
        for run in [common::T500, common::SHORT] {
            show(&run.record(), &run.verdict(), &style);
        }
    }
    Ok(())
}

fn show(record: &RunRecord, verdict: &Verdict, style: &Style) {
    println!("{}", terminal::set_up(&record.head, style));
    println!("{}", terminal::verdict(verdict, record, style));
    println!("{}", terminal::timeline(record, verdict, style));
}
