//! `trimbench fit` beside the truth: the figures that a simulated drive was made of,
//! and those that a ladder finds on it.

use ssd::card::Sure;
use ssd::{Card, profiles};

use crate::drive::{Drive, Fallible};
use crate::row;
use crate::table;

const MIB: f64 = (1_u64 << 20) as f64;

/// 24 discards of the largest size: of a few, btrfs makes fewer and larger ones.
const LADDER: &str = "--set space=3G --set sizes=1M,16M,128M --set name=fitted";

/// A profile, how many times slower it runs, and whether the fit can find a and b there. It runs
/// slower so that the drive is measured and not this machine: a busy one adds some 10 ms to a
/// discard of 128 MiB.
const PROFILES: [(&str, &str, bool); 6] = [
    ("samsung-870-evo-2tb", "50", true),
    ("crucial-t500-2tb", "50", true),
    ("samsung-980-pro-1tb", "50", false),
    ("ideal", "1", false),
    ("ocz-vertex-2", "2", true),
    ("emc-xtremio-10tb", "4", true),
];

const SYSTEMS: [&str; 4] = ["raw", "ext4", "xfs", "btrfs"];

/// A ladder on each profile and file system.
pub fn ladders() -> Fallible<()> {
    let mut rows = vec![row![
        "profile",
        "on",
        "S at",
        "true us",
        "fitted us",
        "off",
        "95 %",
        "a true us",
        "a fitted",
        "off",
        "95 %",
        "b true us/MiB",
        "b fitted",
        "off",
        "95 %",
        "queue, phi",
        "as it must be",
    ]];
    for (profile, slower, tellable) in PROFILES {
        for system in SYSTEMS {
            let fitted = climb(profile, slower, system)?;
            let truth = profiles::by_name(profile).ok_or("no such profile")?;
            rows.extend(fitted.rows(truth, profile, system, tellable)?);
            // Who stops it in between has what was done.
            if let Some(row) = rows.last() {
                eprintln!("{}", row.join("  "));
            }
        }
    }
    table::print("trimbench fit, told in the drive's own time", &rows);
    Ok(())
}

/// The results of a ladder.
struct Fitted {
    card: Card,
    /// The ladder's ends.
    ends: Vec<End>,
    /// How sure a and b are, as printed.
    sure: [String; 2],
}

struct End {
    mib: f64,
    us: f64,
    /// Whether it is only a bound.
    bound: bool,
    sure: String,
}

fn climb(profile: &str, slower: &str, system: &str) -> Fallible<Fitted> {
    let options = format!(
        "--profile {profile} --size 6G --slower {slower} --set write.latency=0 \
         --set write.per_mib=0ns/MiB"
    );
    let fs = Some((system, "discard")).filter(|_| system != "raw");
    let drive = Drive::up(&options, fs)?;
    let (text, card) = drive.fit(LADDER, fs.is_none())?;
    let sure = |name: &str| {
        let row = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        row.map_or_else(String::new, range)
    };
    Ok(Fitted {
        card,
        ends: ends(&text)?,
        sure: [sure("a, each"), sure("b, each")],
    })
}

/// The confidence in a row, `493 µs to 584 µs`; nothing where it isn't known.
fn range(row: &str) -> String {
    let words: Vec<&str> = row.split_whitespace().collect();
    let to = words
        .windows(5)
        .find(|five| five[2] == "to" && five[0].parse::<f64>().is_ok());
    to.map_or_else(String::new, |five| five.join(" "))
}

/// The first and the last rung of the table that was printed.
fn ends(text: &str) -> Fallible<Vec<End>> {
    let rows = text.lines().skip_while(|l| !l.contains("95 % confidence"));
    let rows: Vec<&str> = rows.skip(1).take_while(|l| !l.trim().is_empty()).collect();
    let ends = [rows.first(), rows.last()];
    ends.into_iter().flatten().map(|row| end(row)).collect()
}

fn end(row: &str) -> Fallible<End> {
    let bound = row.contains("≤");
    let words: Vec<&str> = row.split_whitespace().filter(|w| *w != "≤").collect();
    let [size, size_unit, time, time_unit, ..] = words[..] else {
        return Err(format!("a rung should be in {row:?}").into());
    };
    let mib = match size_unit {
        "B" => 1.0 / MIB,
        "KiB" => 1.0 / 1024.0,
        "GiB" => 1024.0,
        _ => 1.0,
    };
    let us = match time_unit {
        "s" => 1e6,
        "ms" => 1e3,
        _ => 1.0,
    };
    Ok(End {
        mib: size.parse::<f64>()? * mib,
        us: time.parse::<f64>()? * us,
        bound,
        sure: range(row),
    })
}

impl Fitted {
    fn rows(
        &self,
        truth: &Card,
        profile: &str,
        system: &str,
        tellable: bool,
    ) -> Fallible<Vec<Vec<String>>> {
        let costs = |card: &Card| {
            let discard = card.figures().discard.as_ref().ok_or("it has no TRIM")?;
            let (a, b) = (
                discard.a.as_nanos() as f64 / 1e3,
                discard.b.as_nanos() / 1e3,
            );
            Ok::<_, &'static str>((a, b, discard.queue, discard.phi()))
        };
        let (a, b, ..) = costs(truth)?;
        let (got_a, got_b, queue, phi) = costs(&self.card)?;
        let known = |key: &str| {
            let note = self.card.note(key);
            note.is_some_and(|note| matches!(note.sure, Sure::Derived | Sure::Measured))
        };
        let told = [known("discard.a"), known("discard.b")];
        // A cost that is next to nothing of the whole is right as such.
        let whole = |mib: f64| a + b * mib;
        let near = |got: f64, is: f64, share: f64, next_to: f64| {
            (got - is).abs() <= share * is + 0.05 * next_to
        };
        let next_to = if b == 0.0 { whole(128.0) / 128.0 } else { 0.0 };
        let right = [near(got_a, a, 0.15, 0.0), near(got_b, b, 0.15, next_to)];
        // What ext4 discards beside may cost a drive less: then it says that it can't tell.
        let tellable = tellable && self.ends.iter().all(|end| !end.bound);
        let mut rows = Vec::new();
        for (i, end) in self.ends.iter().enumerate() {
            let is = whole(end.mib);
            let s_right = if end.bound {
                end.us >= is
            } else {
                near(end.us, is, 0.1, 0.0)
            };
            let as_it_must = s_right && (0..2).all(|i| if told[i] { right[i] } else { !tellable });
            let first = i == 0;
            let only = |text: String| if first { text } else { String::new() };
            rows.push(row![
                only(profile.to_owned()),
                only(system.to_owned()),
                format!("{:.2} MiB", end.mib),
                format!("{is:.1}"),
                format!("{}{:.1}", if end.bound { "≤ " } else { "" }, end.us),
                if end.bound {
                    "bound".to_owned()
                } else {
                    off(end.us, is)
                },
                end.sure.clone(),
                only(format!("{a:.1}")),
                only(shown(got_a, told[0])),
                only(if told[0] {
                    off(got_a, a)
                } else {
                    "not told".into()
                }),
                only(self.sure[0].clone()),
                only(format!("{b:.3}")),
                only(shown(got_b, told[1])),
                only(if told[1] {
                    off(got_b, b)
                } else {
                    "not told".into()
                }),
                only(self.sure[1].clone()),
                only(format!("{queue:?}, {phi}")),
                if as_it_must { "yes" } else { "NO" },
            ]);
        }
        Ok(rows)
    }
}

/// Formats a figure of a card, in brackets if the fit couldn't find it and the card has a default
/// in its place.
fn shown(value: f64, told: bool) -> String {
    if told {
        format!("{value:.2}")
    } else {
        format!("({value:.2})")
    }
}

fn off(got: f64, is: f64) -> String {
    match is > 0.0 {
        true => format!("{:+.1} %", (got / is - 1.0) * 100.0),
        false => "–".to_owned(),
    }
}
