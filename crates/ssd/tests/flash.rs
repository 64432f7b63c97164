//! Write amplification beside the published models.
//!
//! Desnoyers 2012: greedy and FIFO cleaning under uniform random writes. Frankie 2012: with
//! discards, the same drive behaves as one with more spare space.

#![allow(clippy::unwrap_used)]

use ssd::Rng;
use ssd::flash::{Cleaning, Flash, Geometry};

/// Pages in a block.
const NP: u32 = 64;
/// Host's pages: enough that the open block doesn't matter.
const PAGES: u32 = 131_072;

/// The principal branch of Lambert's W for −1/e ≤ x < 0, by Halley's method.
fn lambert_w(x: f64) -> f64 {
    let mut w = x;
    for _ in 0..200 {
        let e = w.exp();
        let f = w * e - x;
        w -= f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0));
    }
    w
}

fn greedy(alpha: f64) -> f64 {
    let np = f64::from(NP);
    let c = 1.0 + 1.0 / (2.0 * np);
    let x0 = 0.5 - np / alpha * lambert_w(-c * alpha * (-c * alpha).exp());
    np / (np - (x0 - 1.0))
}

fn fifo(alpha: f64) -> f64 {
    alpha / (alpha + lambert_w(-alpha * (-alpha).exp()))
}

/// Simulated write amplification; `q` of the requests discard a random page in use.
fn simulated(spare: f64, cleaning: Cleaning, q: f64) -> f64 {
    let geometry = Geometry {
        page_bytes: 4096,
        pages_in_block: NP,
        spare,
        cleaning,
    };
    let mut flash = Flash::new(geometry, u64::from(PAGES) * 4096);
    let mut rng = Rng::new(5);
    let mut used: Vec<u32> = (0..PAGES).collect();
    // Each page's place among those in use.
    let mut at: Vec<u32> = used.clone();
    (0..PAGES).for_each(|page| flash.write_page(page));
    let mut before = flash.stats();
    let requests = 12 * PAGES;
    for request in 0..requests {
        if request == requests / 2 {
            before = flash.stats();
        }
        if q > 0.0 && rng.unit() < q && !used.is_empty() {
            let i = rng.below(used.len() as u64) as usize;
            let page = used.swap_remove(i);
            at[page as usize] = u32::MAX;
            if let Some(&moved) = used.get(i) {
                at[moved as usize] = i as u32;
            }
            flash.trim_page(page);
        } else {
            let page = rng.below(u64::from(PAGES)) as u32;
            if at[page as usize] == u32::MAX {
                at[page as usize] = used.len() as u32;
                used.push(page);
            }
            flash.write_page(page);
        }
    }
    assert_eq!(flash.used_pages(), used.len() as u64);
    if q > 0.0 {
        // The share in use that Frankie gives: (1 − 2q)/(1 − q).
        let share = used.len() as f64 / f64::from(PAGES);
        let expected = (1.0 - 2.0 * q) / (1.0 - q);
        near("in use", share, expected);
    }
    flash.stats().since(before).write_amplification().unwrap()
}

#[track_caller]
fn near(what: &str, got: f64, expected: f64) {
    let off = (got / expected - 1.0) * 100.0;
    println!("{what:<28}{got:>8.3}{expected:>8.3}{off:>+8.2} %");
    assert!(off.abs() <= 2.0, "{what}: {got}, expected {expected}");
}

#[test]
fn greedy_and_fifo_cleaning_amplify_as_desnoyers_computes() {
    for spare in [0.07, 0.15, 0.30, 1.00] {
        let name = format!("greedy, spare {:.0} %", spare * 100.0);
        near(
            &name,
            simulated(spare, Cleaning::Greedy, 0.0),
            greedy(1.0 + spare),
        );
        let name = format!("fifo, spare {:.0} %", spare * 100.0);
        near(
            &name,
            simulated(spare, Cleaning::Fifo, 0.0),
            fifo(1.0 + spare),
        );
    }
}

#[test]
fn discards_are_worth_spare_space_as_frankie_computes() {
    for q in [0.05, 0.10, 0.20, 0.40] {
        let share = (1.0 - 2.0 * q) / (1.0 - q);
        let name = format!("greedy, {:.0} % discards", q * 100.0);
        near(
            &name,
            simulated(0.07, Cleaning::Greedy, q),
            greedy(1.07 / share),
        );
    }
}

/// Overwrites random pages of a drive's first eighth; returns the time for each, in µs, and the
/// write amplification meanwhile.
fn overwrite(drive: &mut ssd::Drive, writes: u32) -> (f64, f64) {
    let mut rng = Rng::new(9);
    let before = drive.flash().unwrap();
    let mut took = std::time::Duration::ZERO;
    for _ in 0..writes {
        let at = rng.below(drive.capacity() / 8 / PAGE) * PAGE;
        // It begins when the last one has completed.
        let write = ssd::Command::Write(at..at + PAGE);
        drive.submit(ssd::Time::ZERO, write).unwrap();
        let mut done = Vec::new();
        while let Some(next) = drive.next_event() {
            drive.advance(next, &mut done);
        }
        let write = done.last().unwrap();
        took += write.completed.since(write.submitted);
    }
    let flash = drive.flash().unwrap().since(before);
    let micros = took.as_secs_f64() * 1e6;
    (
        micros / f64::from(writes),
        flash.write_amplification().unwrap(),
    )
}

const PAGE: u64 = 16 << 10;

#[test]
fn a_worn_in_drive_writes_as_slowly_as_it_moves_pages_until_it_is_trimmed() {
    let card = ssd::profiles::by_name("ocz-vertex-2").unwrap().clone();
    let card = ["flash.geometry=16k 64 7% fifo", "write.latency=1us"]
        .iter()
        .fold(card, |card, change| card.with(change).unwrap());
    let mut drive = ssd::Drive::new(card.figures().clone(), 1 << 28, 1);
    let fresh = drive.clone();
    drive.age(0.9);
    // Until every block was written by this workload.
    overwrite(&mut drive, 8_000);
    let (aged, amplified) = overwrite(&mut drive, 8_000);
    assert!(amplified > 3.0, "{amplified}");
    let (new, one) = overwrite(&mut fresh.clone(), 8_000);
    assert!(one < 1.05, "{one}");
    assert!(
        (aged / new - amplified).abs() < 0.05 * amplified,
        "{aged} {new} {amplified}"
    );

    let mut no_trim = drive.clone();
    let free = drive.capacity() / 8..drive.capacity();
    let discard = ssd::Command::Discard(vec![free]);
    drive.submit(ssd::Time::ZERO, discard).unwrap();
    overwrite(&mut drive, 8_000);
    let (trimmed, one) = overwrite(&mut drive, 8_000);
    assert!(
        one < 1.05 && (trimmed / new - 1.0).abs() < 0.05,
        "{trimmed} {new} {one}"
    );
    let (still, _) = overwrite(&mut no_trim, 8_000);
    assert!((still / aged - 1.0).abs() < 0.05, "{still} {aged}");
}
