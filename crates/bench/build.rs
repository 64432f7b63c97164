//! Makes every file of `scenarios/` a part of the program, so that adding one
//! needs no code.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../scenarios");
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut files: Vec<_> = fs::read_dir(&directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let mut code = String::from("static SHIPPED: &[Shipped] = &[\n");
    for path in &files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        code += &format!(
            "    Shipped {{ name: {name:?}, text: include_str!({:?}) }},\n",
            path.display().to_string()
        );
    }
    code += "];\n";
    fs::write(
        Path::new(&env::var("OUT_DIR")?).join("shipped_scenarios.rs"),
        code,
    )?;
    Ok(())
}
