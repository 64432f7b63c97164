//! Random numbers that are the same in every version of every dependency:
//! a run in virtual time must be repeatable from its seed years later.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014). Any seed will do.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A generator; the same seed gives the same numbers.
    pub const fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0 ≤ x < 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in 0 ≤ x < `bound`; 0 for a bound of 0. The bias of the
    /// multiplication is below 2⁻⁴⁰ for the sizes of drives.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// A bell with mean 0 and standard deviation 1 that never leaves ±3 (the sum of three uniform
    /// numbers). So a time scaled by `1 + x × jitter` stays positive for every jitter below a
    /// third.
    pub fn bell(&mut self) -> f64 {
        2.0 * (self.unit() + self.unit() + self.unit() - 1.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_published_numbers() {
        // The reference implementation's output for the seed 1234567.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn has_the_moments_it_promises() {
        let mut rng = Rng::new(1);
        let n = 100_000;
        let bells: Vec<f64> = (0..n).map(|_| rng.bell()).collect();
        let mean = bells.iter().sum::<f64>() / f64::from(n);
        let variance = bells.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.02);
        assert!(bells.iter().all(|x| x.abs() <= 3.0));
        let waits = (0..n).map(|_| rng.exponential()).sum::<f64>() / f64::from(n);
        assert!((waits - 1.0).abs() < 0.02);
        assert!((0..n).all(|_| rng.below(7) < 7));
    }
}
