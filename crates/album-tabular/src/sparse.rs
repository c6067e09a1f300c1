//! Compressed sparse rows: the crate's only sparse matrix type.

/// A sparse matrix stored row by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Csr {
    columns: usize,
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

impl Csr {
    /// An empty matrix of `columns` columns, to which rows are appended.
    pub fn new(columns: usize) -> Self {
        Csr { columns, starts: vec![0], indices: Vec::new(), values: Vec::new() }
    }

    /// Like [`Csr::new`], with room for `rows` rows and `nonzeros` entries.
    pub fn with_capacity(columns: usize, rows: usize, nonzeros: usize) -> Self {
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        Csr { columns, starts, indices: Vec::with_capacity(nonzeros), values: Vec::with_capacity(nonzeros) }
    }

    /// Removes all rows but keeps their memory.
    pub fn clear(&mut self) {
        self.starts.truncate(1);
        self.indices.clear();
        self.values.clear();
    }

    /// Adds one entry to the row under construction.
    pub fn push(&mut self, column: usize, value: f64) {
        debug_assert!(column < self.columns);
        self.indices.push(column as u32);
        self.values.push(value);
    }

    /// Closes the row under construction.
    pub fn end_row(&mut self) {
        self.starts.push(self.indices.len());
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of stored entries.
    pub fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// The entries of row `i` as (column, value).
    pub fn row(&self, i: usize) -> impl ExactSizeIterator<Item = (usize, f64)> + Clone + '_ {
        let range = self.starts[i]..self.starts[i + 1];
        self.indices[range.clone()].iter().zip(&self.values[range]).map(|(&j, &x)| (j as usize, x))
    }

    /// The inner product of row `i` with `x`.
    pub fn row_dot(&self, i: usize, x: &[f64]) -> f64 {
        self.row(i).map(|(j, a)| a * x[j]).sum()
    }

    /// `y = A x`.
    pub fn multiply(&self, x: &[f64]) -> Vec<f64> {
        (0..self.rows()).map(|i| self.row_dot(i, x)).collect()
    }

    /// `y = A' x`.
    pub fn multiply_transposed(&self, x: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; self.columns];
        for (i, &xi) in x.iter().enumerate() {
            if xi != 0.0 {
                for (j, a) in self.row(i) {
                    y[j] += a * xi;
                }
            }
        }
        y
    }
}

/// A row under construction as a dense scratch vector: entries of the same column add up, zeros are dropped.
#[derive(Debug)]
pub(crate) struct RowBuilder {
    value: Vec<f64>,
    /// The row in which each column was last used, so that nothing needs to be cleared between rows.
    stamp: Vec<u32>,
    row: u32,
    touched: Vec<u32>,
}

impl RowBuilder {
    pub(crate) fn new(columns: usize) -> Self {
        RowBuilder { value: vec![0.0; columns], stamp: vec![0; columns], row: 1, touched: Vec::new() }
    }

    pub(crate) fn add(&mut self, column: usize, value: f64) {
        if value == 0.0 {
            return;
        }
        if self.stamp[column] == self.row {
            self.value[column] += value;
        } else {
            self.stamp[column] = self.row;
            self.value[column] = value;
            self.touched.push(column as u32);
        }
    }

    /// Appends the row to `matrix`, columns ascending, and leaves the builder empty.
    pub(crate) fn finish(&mut self, matrix: &mut Csr) {
        self.touched.sort_unstable();
        self.finish_unsorted(matrix);
    }

    /// The same with the columns in order of insertion.
    pub(crate) fn finish_unsorted(&mut self, matrix: &mut Csr) {
        for &j in &self.touched {
            let j = j as usize;
            matrix.push(j, self.value[j]);
        }
        self.touched.clear();
        self.row = self.row.wrapping_add(1);
        if self.row == 0 {
            // After 2^32 rows the stamps start over.
            self.stamp.fill(0);
            self.row = 1;
        }
        matrix.end_row();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_agree_with_the_dense_matrix() {
        // [1 0 2; 0 0 0; 0 3 -1]
        let mut a = Csr::new(3);
        let mut row = RowBuilder::new(3);
        row.add(2, 1.5);
        row.add(0, 1.0);
        row.add(2, 0.5);
        row.finish(&mut a);
        row.finish(&mut a);
        row.add(1, 3.0);
        row.add(2, -1.0);
        row.finish(&mut a);
        assert_eq!(a.nonzeros(), 4);
        assert_eq!(a.multiply(&[1.0, 2.0, 3.0]), vec![7.0, 0.0, 3.0]);
        assert_eq!(a.multiply_transposed(&[1.0, 5.0, 2.0]), vec![1.0, 6.0, 0.0]);
    }
}
