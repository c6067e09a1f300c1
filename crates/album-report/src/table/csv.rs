//! CSV output of tables.

use super::Table;
use album_base::text as base;
use album_plot::text;

impl Table {
    /// The table as CSV (RFC 4180 quoting, `\n` line ends), numbers in full precision.
    ///
    /// Caption, rules, ranks and statuses are not part of CSV.
    pub fn to_csv(&self) -> String {
        if self.columns() == 0 {
            return String::new();
        }
        let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let field = |column: usize| match row.get(column) {
                Some(cell) => {
                    cell.exact.clone().unwrap_or_else(|| base::cell(&text::plain(&cell.text)).into_owned())
                }
                None => String::new(),
            };
            if writer.write_record((0..self.columns()).map(field)).is_err() {
                break; // Cannot happen: writing to memory succeeds, and all rows have equal length.
            }
        }
        String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
    }
}
