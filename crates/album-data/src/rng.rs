//! Random numbers: named streams of one master seed.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Separates these keys from any other use of the same seed.
const DOMAIN: [u8; 16] = *b"album rng stream";

/// The random stream `name` of the master seed `seed`.
///
/// Streams of different names are independent, so that drawing more from one
/// never changes another. The generator is counter-based: where it stands is
/// one number (`get_word_pos`, `set_word_pos`). The numbers are stable: the same
/// seed and name give the same stream in every version and on every machine.
///
/// The key is the seed, the 64-bit FNV-1a hash of the name's UTF-8 bytes (both
/// little-endian) and a constant.
///
/// ```
/// use rand::Rng;
/// let mut noise = album_data::rng::stream(7, "noise");
/// let mut again = album_data::rng::stream(7, "noise");
/// assert_eq!(noise.next_u64(), again.next_u64());
/// ```
pub fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&fnv1a(name.as_bytes()).to_le_bytes());
    key[16..].copy_from_slice(&DOMAIN);
    ChaCha8Rng::from_seed(key)
}

/// The 64-bit FNV-1a hash. Not the standard library's, which may change.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
