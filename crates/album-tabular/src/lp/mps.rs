//! Export as a free-format MPS file, which every LP solver reads.

use super::LinearProgram;
use std::io::{self, Write};

impl LinearProgram {
    /// Writes the program as MPS. `column` and `row` name variables and rows; names must be unique and free of spaces.
    pub fn write_mps(
        &self,
        out: &mut dyn Write,
        name: &str,
        column: &dyn Fn(usize) -> String,
        row: &dyn Fn(usize) -> String,
    ) -> io::Result<()> {
        writeln!(out, "NAME {name}\nROWS\n N cost")?;
        for i in 0..self.matrix.rows() {
            let kind = match (self.row_lower[i], self.row_upper[i]) {
                (lower, upper) if lower == upper => 'E',
                (f64::NEG_INFINITY, f64::INFINITY) => 'N',
                (f64::NEG_INFINITY, _) => 'L',
                _ => 'G',
            };
            writeln!(out, " {kind} {}", row(i))?;
        }
        writeln!(out, "COLUMNS")?;
        // MPS lists the matrix by columns.
        let mut by_column: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.objective.len()];
        for i in 0..self.matrix.rows() {
            self.matrix.row(i).for_each(|(j, value)| by_column[j].push((i, value)));
        }
        for (j, entries) in by_column.iter().enumerate() {
            let name = column(j);
            writeln!(out, " {name} cost {:e}", self.objective[j])?;
            for &(i, value) in entries {
                writeln!(out, " {name} {} {value:e}", row(i))?;
            }
        }
        writeln!(out, "RHS")?;
        for i in 0..self.matrix.rows() {
            // A ranged row is a `G` row, whose right-hand side is the lower end.
            let bound = if self.row_lower[i].is_finite() { self.row_lower[i] } else { self.row_upper[i] };
            if bound.is_finite() && bound != 0.0 {
                writeln!(out, " RHS {} {bound:e}", row(i))?;
            }
        }
        let ranged = |i: &usize| {
            self.row_lower[*i].is_finite()
                && self.row_upper[*i].is_finite()
                && self.row_lower[*i] != self.row_upper[*i]
        };
        if let Some(first) = (0..self.matrix.rows()).find(ranged) {
            writeln!(out, "RANGES")?;
            for i in (first..self.matrix.rows()).filter(ranged) {
                writeln!(out, " RNG {} {:e}", row(i), self.row_upper[i] - self.row_lower[i])?;
            }
        }
        writeln!(out, "BOUNDS")?;
        for j in 0..self.objective.len() {
            let (lower, upper) = (self.lower[j], self.upper[j]);
            let name = column(j);
            match (lower.is_finite(), upper.is_finite()) {
                (false, false) => writeln!(out, " FR BND {name}")?,
                (true, true) if lower == upper => writeln!(out, " FX BND {name} {lower:e}")?,
                _ => {
                    if lower.is_finite() {
                        writeln!(out, " LO BND {name} {lower:e}")?;
                    } else {
                        writeln!(out, " MI BND {name}")?;
                    }
                    if upper.is_finite() {
                        writeln!(out, " UP BND {name} {upper:e}")?;
                    }
                }
            }
        }
        writeln!(out, "ENDATA")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_program_is_written_as_expected() {
        let mut program = LinearProgram::new(vec![1.0, -0.1]);
        program.upper[1] = 4.0;
        program.push_row(f64::NEG_INFINITY, 2.5, [(0, 1.0), (1, -1.0)]);
        program.push_row(3.0, 3.0, [(1, 2.0)]);
        program.push_row(-1.0, 1.0, [(0, 0.5)]);
        let mut text = Vec::new();
        program.write_mps(&mut text, "TEST", &|j| format!("x{j}"), &|i| format!("r{i}")).unwrap();
        let expected = "\
NAME TEST\nROWS\n N cost\n L r0\n E r1\n G r2\nCOLUMNS\n x0 cost 1e0\n x0 r0 1e0\n x0 r2 5e-1\n x1 cost -1e-1\n x1 r0 -1e0\n x1 r1 2e0\n\
RHS\n RHS r0 2.5e0\n RHS r1 3e0\n RHS r2 -1e0\nRANGES\n RNG r2 2e0\nBOUNDS\n FR BND x0\n MI BND x1\n UP BND x1 4e0\nENDATA\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
