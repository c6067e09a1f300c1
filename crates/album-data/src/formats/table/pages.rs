//! Checks the pages of a Parquet column against the sizes in the file's footer.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// Refuses pages that hold more than the footer says.
pub(super) struct Guard {
    pages: Box<dyn PageReader>,
    values: u64,
    bytes: u64,
    dictionary: bool,
}

impl Guard {
    /// Allows at most `values` values and `bytes` uncompressed bytes.
    pub(super) fn new(pages: Box<dyn PageReader>, values: u64, bytes: u64) -> Self {
        Self { pages, values, bytes, dictionary: false }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let refuse = |problem: &str| Err(ParquetError::General(problem.to_owned()));
        let bytes = page.buffer().len() as u64;
        if bytes > self.bytes {
            return refuse("pages hold more bytes than the table of contents says");
        }
        self.bytes -= bytes;
        match page {
            Page::DictionaryPage { .. } => self.dictionary = true,
            Page::DataPage { encoding, num_values, .. } | Page::DataPageV2 { encoding, num_values, .. } => {
                let coded = matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
                if coded && !self.dictionary {
                    return refuse("a page refers to a dictionary that is missing");
                }
                if u64::from(*num_values) > self.values {
                    return refuse("pages hold more values than the table of contents says");
                }
                self.values -= u64::from(*num_values);
            }
        }
        Ok(())
    }
}

impl Iterator for Guard {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Guard {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}
