//! Equality and hash of a dataset's contents, independent of storage.

use super::{Dataset, of_rows};
use crate::action_space::ActionSpace;
use crate::column::sha256;
use album_base::hex::hex;
use sha2::{Digest, Sha256};

impl Dataset {
    /// SHA-256 of the contents as 64 hexadecimal digits: of the dimensions, the episode lengths, the SHA-256
    /// of each column, and the action space if it is not the box [-1, 1]. Equal data has an equal hash, from
    /// any file and on any machine. Takes about a second per gigabyte in memory; mapped columns keep theirs
    /// from their import.
    pub fn content_hash(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"album dataset 2");
        let mut count = |n: usize| hash.update((n as u64).to_le_bytes());
        count(self.observation_dim);
        count(self.action_dim);
        count(self.episodes.len());
        for episode in 0..self.episodes.len() {
            count(self.episodes.length(episode));
        }
        // A part of a column has a different hash than the whole, whose hash may be known.
        let whole = self.episodes.rows() * self.observation_dim == self.observations.len();
        for (column, width) in self.columns() {
            let slices =
                || (0..self.episodes.len()).map(|e| of_rows(column, &self.episodes.rows_of(e), width));
            hash.update(column.known_sha256().filter(|_| whole).unwrap_or_else(|| sha256(slices())));
        }
        match &self.action_space {
            unit if unit.is_unit() => {}
            ActionSpace::Continuous { low, high } => {
                hash.update(b"box");
                low.iter().chain(high).for_each(|x| hash.update(x.to_le_bytes()));
            }
            ActionSpace::Discrete { n } => {
                hash.update(b"discrete");
                hash.update((*n as u64).to_le_bytes());
            }
        }
        hex(&hash.finalize())
    }
}

/// Equal contents, at any rows.
impl PartialEq for Dataset {
    fn eq(&self, other: &Self) -> bool {
        let lengths =
            |data: &Self| (0..data.episodes.len()).map(|e| data.episodes.length(e)).collect::<Vec<_>>();
        let equal = |episode: usize| {
            self.columns().iter().zip(other.columns()).all(|(&(a, width), (b, _))| {
                of_rows(a, &self.episodes.rows_of(episode), width)
                    == of_rows(b, &other.episodes.rows_of(episode), width)
            })
        };
        [self.observation_dim, self.action_dim] == [other.observation_dim, other.action_dim]
            && self.action_space == other.action_space
            && lengths(self) == lengths(other)
            && (0..self.episodes.len()).all(equal)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rows;
    use super::*;

    #[test]
    fn the_hash_is_of_the_contents() {
        let data = Dataset::from_rows(rows()).unwrap();
        let hash = data.content_hash();
        assert_eq!(hash, data.clone().content_hash());
        // Must never change: checkpoints contain it. Computed by another program.
        assert_eq!(hash, "45bba9edf218e64512242ce2f8930755b6888f97ad8f5490f65b960c6b818cb8");
        let mut unused = rows();
        unused.actions[5] = 3.0;
        assert_eq!(Dataset::from_rows(unused).unwrap().content_hash(), hash);
        let mut other = rows();
        other.masks[0] = 0.0;
        assert_ne!(Dataset::from_rows(other).unwrap().content_hash(), hash);
        let mut other = rows();
        other.terminals[2] = false;
        other.actions[2] = 0.0;
        other.rewards[2] = 0.0;
        other.masks[2] = 1.0;
        assert_ne!(Dataset::from_rows(other).unwrap().content_hash(), hash);
    }
}
