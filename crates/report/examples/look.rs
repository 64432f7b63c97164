//! Prints the tests' synthetic runs, to be looked at:
//! `cargo run -p trimbench-report --example look -- [WIDTH] [plain] [ascii]`.

#[path = "../tests/common/mod.rs"]
mod common;

use report::terminal::{self, Style};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let style = Style {
        colour: !words.iter().any(|word| word == "plain"),
        width: words
            .iter()
            .find_map(|word| word.parse().ok())
            .unwrap_or(80),
        unicode: !words.iter().any(|word| word == "ascii"),
    };
    for run in [common::T500, common::SHORT] {
        let (record, verdict) = (run.record(), run.verdict());
        println!("{}", terminal::set_up(&record.head, &style));
        println!("{}", terminal::verdict(&verdict, &record, &style));
        println!("{}", terminal::timeline(&record, &verdict, &style));
    }
}
