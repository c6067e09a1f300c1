//! Limits on what a file may request.

/// Limits that are checked before memory is allocated for what a file claims.
///
/// The defaults admit every dataset of a million rows with a wide margin.
///
/// ```
/// use album_data::Limits;
/// let small = Limits { max_array_bytes: 1 << 20, ..Limits::default() };
/// assert_eq!(small.max_entries, 1024);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Number of arrays in an archive. Default 1024.
    pub max_entries: u64,
    /// Number of columns of a table. Default 16,384.
    pub max_columns: u64,
    /// Bytes of one row of a CSV file. Default 16 MiB.
    pub max_row_bytes: u64,
    /// Bytes of the archive's table of contents. Default 1 MiB.
    pub max_directory_bytes: u64,
    /// Bytes of one array's text header. Default 10,000, the limit of `np.load`.
    pub max_header_bytes: u64,
    /// Axes of one array. Default 64, the limit of NumPy 2.
    pub max_rank: usize,
    /// Decompressed bytes of one array, including its header. Default 8 GiB.
    pub max_array_bytes: u64,
    /// Decompressed bytes of all arrays of an archive. Default 32 GiB.
    pub max_total_bytes: u64,
    /// Maximum compression ratio. Default 200. A column of flags compresses by up to 1000 in valid files, so
    /// the ratio only applies to arrays larger than [`ratio_free_bytes`](Self::ratio_free_bytes).
    pub max_ratio: u64,
    /// Arrays up to this many decompressed bytes may have any ratio. Default 256 MiB.
    pub ratio_free_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_entries: 1024,
            max_columns: 1 << 14,
            max_row_bytes: 16 << 20,
            max_directory_bytes: 1 << 20,
            max_header_bytes: 10_000,
            max_rank: 64,
            max_array_bytes: 8 << 30,
            max_total_bytes: 32 << 30,
            max_ratio: 200,
            ratio_free_bytes: 256 << 20,
        }
    }
}
