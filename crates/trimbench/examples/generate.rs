//! Writes the man pages from the argument definitions, the tables of keys and `man/`, and the
//! scripts of the shells' completions: `make man`.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs, io, process};

use clap::CommandFactory;
use clap_complete::env::Shells;
use clap_mangen::Man;
use record::units::settings::Key;
use trimbench::cli::Cli;
use trimbench::completions::VARIABLE;

/// The shells, and the names under which each looks for its script.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "trimbench.bash"),
    ("zsh", "_trimbench"),
    ("fish", "trimbench.fish"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let Some(target) = env::args_os().nth(1) else {
        eprintln!("usage: generate DIRECTORY");
        process::exit(2);
    };
    let (man, completions) = (
        PathBuf::from(&target).join("man"),
        PathBuf::from(&target).join("completions"),
    );
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;

    clap_mangen::generate_to(Cli::command(), &man)?;
    fs::write(man.join("trimbench.1"), first_page()?)?;
    let scenario = bench::scenario::by_name("drop-table")?;
    let keys = bench::scenario::keys::all();
    let keys = keys.iter().map(|(path, key)| (&**path, *key));
    let page = include_str!("../man/trimbench-scenario.5");
    let page = filled(page, scenario.text, keys);
    fs::write(man.join("trimbench-scenario.5"), page)?;
    let card = ssd::profiles::by_name("ideal").ok_or("no profile 'ideal'")?;
    let keys = ssd::card::KEYS.iter().map(|key| (key.name, key));
    let page = filled(
        include_str!("../man/trimbench-card.5"),
        &card.to_string(),
        keys,
    );
    fs::write(man.join("trimbench-card.5"), page)?;
    let page = include_str!("../man/trimbench-record.5");
    fs::write(man.join("trimbench-record.5"), page)?;

    let shells = Shells::builtins();
    for (shell, name) in SHELLS {
        let mut script = Vec::new();
        let found = shells.completer(shell).ok_or(shell)?;
        found.write_registration(VARIABLE, "trimbench", "trimbench", "trimbench", &mut script)?;
        if shell == "zsh" {
            // zsh loads the file as the function that it calls at once.
            script.extend(b"\n_clap_dynamic_completer_trimbench \"$@\"\n");
        }
        fs::write(completions.join(name), script)?;
    }
    println!("{}\n{}", man.display(), completions.display());
    Ok(())
}

/// The page of the program itself, which opens with examples.
fn first_page() -> io::Result<Vec<u8>> {
    let page = Man::new(Cli::command());
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    text.extend(include_bytes!("../man/examples.roff"));
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    page.render_subcommands_section(&mut text)?;
    page.render_version_section(&mut text)?;
    Ok(text)
}

/// A page of section 5 with its example and its keys.
fn filled<'a>(page: &str, example: &str, keys: impl Iterator<Item = (&'a str, &'a Key)>) -> String {
    let mut list = String::new();
    for (path, key) in keys {
        let default = key.default.map(|text| format!(" [default: {text}]"));
        let about: Vec<&str> = key.about.lines().map(str::trim).collect();
        let about = format!("{}{}", about.join(" "), default.unwrap_or_default());
        list += &format!(".TP\n.B {}\n{}\n", roff(path), roff(&about));
    }
    let example = example.lines().filter(|line| !line.starts_with('#'));
    let example: Vec<String> = example.map(roff).collect();
    page.replace("@EXAMPLE@", example.join("\n").trim_start())
        .replace("@KEYS@\n", &list)
}

/// A line as roff shows it.
fn roff(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line,
    }
}
