//! Borrowed matrices with their shape.

/// A borrowed matrix: a flat row-major slice with its shape.
///
/// ```
/// use album_data::View;
/// let view = View::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3);
/// assert_eq!((view.rows(), view.cols()), (2, 3));
/// assert_eq!(view.row(1), [4.0, 5.0, 6.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
}

impl<'a> View<'a> {
    /// # Panics
    ///
    /// If the number of elements is not `rows` times `cols`.
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "{} numbers are not {rows} rows of {cols}", data.len());
        Self { data, rows, cols }
    }

    /// All numbers, row by row.
    pub fn data(&self) -> &'a [f32] {
        self.data
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// One row.
    pub fn row(&self, row: usize) -> &'a [f32] {
        &self.data[row * self.cols..][..self.cols]
    }

    /// Every row in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [f32]> + Clone + use<'a> {
        let (data, cols) = (self.data, self.cols);
        (0..self.rows).map(move |row| &data[row * cols..][..cols])
    }

    /// A range of rows.
    pub fn range(&self, rows: std::ops::Range<usize>) -> Self {
        let data = &self.data[rows.start * self.cols..rows.end * self.cols];
        Self { data, rows: rows.len(), cols: self.cols }
    }
}
