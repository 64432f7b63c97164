//! Makes every file of `scenarios/` a part of the program, so that adding one
//! needs no code.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// The scenarios, from this crate's directory.
const SCENARIOS: &str = "scenarios";

fn main() -> Result<(), Box<dyn Error>> {
    let directory = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(SCENARIOS);
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut files: Vec<_> = fs::read_dir(&directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let mut code = String::from("static SHIPPED: &[Shipped] = &[\n");
    for path in &files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        // No absolute path: debug information has a checksum of this code, and builds in two folders
        // have to give the same bytes.
        let file = format!("/{SCENARIOS}/{name}.toml");
        code += &format!(
            "    Shipped {{ name: {name:?}, text: include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {file:?})) }},\n",
        );
    }
    code += "];\n";
    fs::write(
        Path::new(&env::var("OUT_DIR")?).join("shipped_scenarios.rs"),
        code,
    )?;
    Ok(())
}
