//! The connections of a download.

use super::{Event, FetchError, Options, Record, part::Part};
use crate::http;
use std::io::{self, ErrorKind, Read};
use ureq::Agent;

/// A download fails after this many consecutive attempts without a new byte.
const ATTEMPTS: u32 = 5;

pub struct Transfer<'a> {
    pub url: &'a str,
    /// The address without credentials.
    pub shown: &'a str,
    pub part: &'a mut Part,
    pub options: Options,
    pub report: &'a mut dyn FnMut(Event),
}

impl Transfer<'_> {
    /// Reconnects until the file is complete.
    pub fn run(&mut self) -> Result<(), FetchError> {
        let agent = self.agent();
        let (mut most, mut failed) = (self.part.have, 0);
        loop {
            let reason = match self.attempt(&agent) {
                Err(FetchError::Server(_, reason)) => reason,
                other => return other,
            };
            if self.part.have > most {
                (most, failed) = (self.part.have, 0);
            }
            failed += 1;
            if failed == ATTEMPTS {
                let part = self.part.path.display();
                let left = match self.part.validator() {
                    Some(_) => format!("{} bytes are in {part}, the same call resumes", self.part.have),
                    None => "nothing was kept".to_owned(),
                };
                return Err(self.server(format!("{reason}; {failed} attempts without progress; {left}")));
            }
            (self.report)(Event::Note(format!("{reason}; trying again")));
            // 0.5, 1, 2 and 4 seconds with the default patience.
            std::thread::sleep(self.options.patience / 60 * 2_u32.pow(failed - 1));
        }
    }

    /// One request and its response; [`FetchError::Server`] if a retry may help.
    fn attempt(&mut self, agent: &Agent) -> Result<(), FetchError> {
        let have = self.part.have;
        let validator = self.part.validator().filter(|_| self.part.origin.url == self.shown);
        let resumes = validator.is_some();
        if resumes && self.part.origin.size == Some(have) {
            return Ok(()); // an earlier process was killed between the last byte and the check
        }
        let mut request = agent.get(self.url).header("Accept-Encoding", "identity");
        if let Some(validator) = validator {
            request = request.header("Range", format!("bytes={have}-")).header("If-Range", validator);
        }
        let response = request.call().map_err(|e| self.server(format!("no answer: {e}")))?;
        let status = response.status();
        let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.trim().to_owned());
        // `bytes 5-9/10` or `bytes 5-9/*`
        let range = header("content-range").unwrap_or_default();
        let range = range.strip_prefix("bytes ").and_then(|range| range.split_once('/'));
        let size = range.map_or_else(|| header("content-length"), |(_, total)| Some(total.to_owned()));
        let size = size.and_then(|size| size.parse().ok());
        let (url, etag, last_modified) = (self.shown.to_owned(), header("etag"), header("last-modified"));
        let date = header("date");
        let now = Record { url, size, etag, last_modified, ..Record::default() };
        let rest = status == 206 && range.is_some_and(|(bytes, _)| bytes.starts_with(&format!("{have}-")));
        let mut body = response.into_body().into_reader();
        match status.as_u16() {
            200 => {
                self.make_room(size)?;
                let mut first = Vec::new();
                Read::by_ref(&mut body).take(20).read_to_end(&mut first).map_err(|e| self.broken(&e))?;
                if !first.starts_with(b"PK\x03\x04") {
                    // A captive portal's log-in page must not overwrite the part.
                    let found = format!("begins with `{}`, expected a zip file", first.escape_ascii());
                    return Err(FetchError::Content(self.shown.to_owned(), found));
                }
                self.part.restart(Record { date, ..now })?;
                self.part.write(&first)?;
            }
            206 if resumes && rest && now == Record { date: None, ..self.part.origin.clone() } => {
                self.make_room(size)?;
            }
            206 | 416 if resumes => {
                self.part.restart(Record::default())?;
                return Err(self.server("the file on the server has changed; starting over".to_owned()));
            }
            408 | 425 | 429 | 500..=599 => return Err(self.server(format!("the server answered {status}"))),
            _ => {
                return Err(FetchError::Refused(
                    self.shown.to_owned(),
                    format!("the server answered {status}"),
                ));
            }
        }
        let mut buffer = vec![0; 128 << 10];
        // Accept no byte beyond the announced length.
        let size = self.part.origin.size;
        while size.is_none_or(|size| self.part.have < size) {
            (self.report)(Event::Received(self.part.have, size));
            match body.read(&mut buffer).map_err(|e| self.broken(&e))? {
                0 if size.is_none() => break,
                0 => return Err(self.broken(&"it ended early")),
                arrived => self.part.write(&buffer[..arrived])?,
            }
            if size.is_none() && self.part.have > self.options.limit {
                self.part.restart(Record::default())?;
                let found = format!("more than {} bytes and no announced length", self.options.limit);
                return Err(FetchError::Content(self.shown.to_owned(), found));
            }
        }
        Ok(())
    }

    fn server(&self, reason: String) -> FetchError {
        FetchError::Server(self.shown.to_owned(), reason)
    }

    fn broken(&self, reason: &dyn std::fmt::Display) -> FetchError {
        self.server(format!("the connection broke after {} bytes: {reason}", self.part.have))
    }

    /// Refuses a file that is too large for the disk.
    fn make_room(&self, size: Option<u64>) -> Result<(), FetchError> {
        let folder = self.part.path.parent().unwrap_or(&self.part.path);
        match (size, album_base::disk::free(folder)) {
            (Some(size), Some(free)) if size > free.saturating_add(self.part.have) => {
                let message = format!("{} needs {size} bytes, but only {free} are left", self.shown);
                Err(FetchError::io(folder)(io::Error::new(ErrorKind::StorageFull, message)))
            }
            _ => Ok(()),
        }
    }

    fn agent(&self) -> Agent {
        let patience = self.options.patience;
        http::config(patience).timeout_per_read(Some(patience)).build().into()
    }
}
