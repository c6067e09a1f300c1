//! Random numbers: named streams of one master seed.

use std::f64::consts::TAU;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Separates these keys from any other use of the same seed.
const DOMAIN: [u8; 16] = *b"album rng stream";

/// The random stream `name` of the master seed `seed`.
///
/// Streams of different names are independent: drawing more from one never changes another. The generator is
/// counter-based, and its position is one number (`get_word_pos`, `set_word_pos`). The numbers are stable:
/// the same seed and name give the same stream in every version and on every machine.
///
/// The key is the seed, the 64-bit FNV-1a hash of the name's UTF-8 bytes (both
/// little-endian) and a constant.
///
/// ```
/// use rand::Rng;
/// let mut noise = album_base::rng::stream(7, "noise");
/// let mut again = album_base::rng::stream(7, "noise");
/// assert_eq!(noise.next_u64(), again.next_u64());
/// ```
pub fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&fnv1a(name.as_bytes()).to_le_bytes());
    key[16..].copy_from_slice(&DOMAIN);
    ChaCha8Rng::from_seed(key)
}

/// A uniform number below `n`, without modulo bias.
///
/// The high half of a random 64-bit number times `n`. The lowest `2^64 mod n` low halves are redrawn, which
/// leaves equally many for each result.
///
/// # Panics
///
/// If `n` is 0.
pub fn below(rng: &mut ChaCha8Rng, n: u64) -> u64 {
    let surplus = n.wrapping_neg() % n;
    loop {
        let wide = u128::from(rng.next_u64()) * u128::from(n);
        if wide as u64 >= surplus {
            return (wide >> 64) as u64;
        }
    }
}

/// A uniform number in [0, 1), one of 2^53.
pub fn unit(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (0.5f64).powi(53)
}

/// A uniform number in [0, 1) in single precision.
pub fn unit_f32(rng: &mut ChaCha8Rng) -> f32 {
    rounded(unit(rng))
}

/// Rounds to the nearest number below 1: one in 33 million numbers of [0, 1) is nearer to 1 itself.
fn rounded(u: f64) -> f32 {
    (u as f32).min(1.0f32.next_down())
}

/// Two independent standard normal numbers (Box-Muller), from two 64-bit numbers of the stream. Their last
/// digits depend on the platform's logarithm and sine.
pub fn normal_pair(rng: &mut ChaCha8Rng) -> [f64; 2] {
    let radius = (-2.0 * (1.0 - unit(rng)).ln()).sqrt();
    let (sin, cos) = (TAU * unit(rng)).sin_cos();
    [radius * cos, radius * sin]
}

/// The 64-bit FNV-1a hash; the standard library's may change.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn known_hashes() {
        // From the reference implementation of FNV.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    /// These numbers must never change: results identified by their seed depend on them. They were computed
    /// by another implementation of ChaCha8.
    #[test]
    fn streams_are_stable() {
        let first = |seed, name| {
            let mut stream = stream(seed, name);
            [stream.next_u64(), stream.next_u64()]
        };
        assert_eq!(first(0, "init"), [0x293d_b401_1121_dd44, 0x8823_bd0d_e955_7c93]);
        assert_eq!(first(1, "init"), [0x81f6_bf58_af61_837c, 0xce48_2acd_0f05_24cd]);
        assert_eq!(first(u64::MAX, "sampler"), [0x63ce_4e25_c676_d59c, 0xd580_9e7a_c762_f66b]);
        assert_eq!(first(0, ""), [0x5d48_3597_c4da_8d90, 0x2679_5f3e_45df_45e9]);
    }

    #[test]
    fn a_position_can_be_stored() {
        let mut stream = stream(3, "noise");
        for _ in 0..1000 {
            stream.next_u32();
        }
        let position = stream.get_word_pos();
        let expected = stream.next_u64();
        let mut resumed = super::stream(3, "noise");
        resumed.set_word_pos(position);
        assert_eq!(resumed.next_u64(), expected);
    }

    #[test]
    fn surplus_draws_are_redrawn() {
        // With n = 3 * 2^62 a quarter of all draws is surplus; without redrawing, multiples of three would
        // occur twice as often as the others.
        let mut rng = stream(0, "test");
        let n = 3 << 62;
        let multiples = (0..30_000).filter(|_| below(&mut rng, n).is_multiple_of(3)).count();
        assert!((9_600..10_400).contains(&multiples), "{multiples}");
    }

    #[test]
    fn uniform_numbers_stay_below_one_in_single_precision() {
        assert_eq!(1.0f64.next_down() as f32, 1.0);
        assert!(rounded(1.0f64.next_down()) < 1.0);
        assert_eq!((rounded(0.0), rounded(0.25), rounded(0.999)), (0.0, 0.25, 0.999));
    }

    #[test]
    fn normal_numbers() {
        let mut rng = stream(0, "test");
        let draws: Vec<f64> = (0..100_000).flat_map(|_| normal_pair(&mut rng)).collect();
        let moment = |power: i32| draws.iter().map(|x| x.powi(power)).sum::<f64>() / draws.len() as f64;
        assert!(moment(1).abs() < 0.01 && (moment(2) - 1.0).abs() < 0.02 && (moment(4) - 3.0).abs() < 0.1);
        assert!(draws.iter().all(|x| x.is_finite()));
    }
}
