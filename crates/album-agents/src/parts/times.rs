//! Times of the rows of a batch.

use album_nn::Var;

/// Times in double precision, one per row, computed from numbers on the tape.
#[derive(Clone, Copy)]
pub struct Times<'t, 'f> {
    /// The column of numbers, one per row.
    pub drawn: Var<'t>,
    /// The function from a number to its time.
    pub time: &'f dyn Fn(f64) -> f64,
}

impl<'t> Times<'t, '_> {
    /// A constant matrix whose rows `write` computes from their times.
    pub fn rows(&self, cols: usize, write: impl Fn(f64, &mut [f32])) -> Var<'t> {
        self.rows_with(self.drawn, cols, |t, _, row| write(t, row))
    }

    /// The same, with access to the rows of another value.
    pub fn rows_with(&self, other: Var<'t>, cols: usize, write: impl Fn(f64, &[f32], &mut [f32])) -> Var<'t> {
        let fill = |[drawn, other]: [&[f32]; 2], out: &mut [f32]| {
            for (&drawn, row) in drawn.iter().zip(out.chunks_exact_mut(cols)) {
                write((self.time)(drawn.into()), other, row);
            }
        };
        self.drawn.tape().constant_of([self.drawn, other], self.drawn.rows(), cols, fill)
    }

    /// A column of a function of the times.
    pub fn column(&self, f: impl Fn(f64) -> f64) -> Var<'t> {
        self.rows(1, |t, row| row[0] = f(t) as f32)
    }
}
