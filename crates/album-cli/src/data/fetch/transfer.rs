//! A download, over as many connections as it takes.

use super::http::{self, Head, Message, Rest};
use super::part::{Origin, Part};
use super::progress::{Progress, amount};
use album::Error as Failure;
use album_base::disk;
use album_train::StopFlag;
use indicatif::DecimalBytes;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Attempts in a row that bring nothing new before it is given up; two are enough if they take twice the patience.
const ATTEMPTS: u32 = 5;

/// How soon a signal is heard.
const TICK: Duration = Duration::from_millis(50);

/// How every zip file begins that has something in it.
const ZIP: &[u8] = b"PK\x03\x04";

pub struct Transfer<'a> {
    pub url: &'a str,
    pub part: &'a mut Part,
    pub stop: &'a StopFlag,
    /// How long a connection may be silent.
    pub patience: Duration,
    pub progress: &'a mut Progress,
}

/// How a connection ended.
enum End {
    /// Everything is there.
    Whole,
    /// Not so, for this reason; trying again may help.
    Broken(String),
}

impl Transfer<'_> {
    /// Connects until everything is there.
    pub fn run(&mut self) -> Result<(), Failure> {
        let mut most = self.part.length();
        let mut failed = 0;
        let mut since = Instant::now();
        loop {
            let reason = match self.connect()? {
                End::Whole => return Ok(()),
                End::Broken(reason) => reason,
            };
            if self.part.length() > most {
                most = self.part.length();
                failed = 0;
                since = Instant::now();
            }
            failed += 1;
            if failed == ATTEMPTS || (failed > 1 && since.elapsed() > 2 * self.patience) {
                return Err(Failure::Tool(format!(
                    "{}: {reason}. Given up after {failed} attempts without progress; {}. \
                     --from names another address of the same files",
                    self.url,
                    self.state()
                )));
            }
            // Half a second, one, two and four with the usual patience.
            let pause = self.patience / 60 * 2_u32.pow(failed - 1);
            self.progress.say(&format!("{}: {reason}; trying again", self.url));
            self.sleep(pause)?;
        }
    }

    /// What there is and what to do with it, for the end of a message.
    fn state(&self) -> String {
        let (origin, path) = (self.part.origin(), self.part.path().display());
        match self.part.length() {
            0 => "nothing has arrived, and the same command tries again".to_owned(),
            have if origin.url == self.url => format!(
                "{} are in {path}, and the same command goes on from there",
                amount(have, origin.length)
            ),
            have => format!(
                "nothing has arrived, and the same command tries again; {} from {} stay in {path}",
                amount(have, origin.length),
                origin.url
            ),
        }
    }

    /// One request and its answer.
    fn connect(&mut self) -> Result<End, Failure> {
        let origin = self.part.origin();
        let have = self.part.length();
        let goes_on = have > 0 && origin.url == self.url && origin.length.is_none_or(|length| have <= length);
        if goes_on && origin.length == Some(have) {
            return Ok(End::Whole); // ended between the last byte and the check
        }
        let rest =
            goes_on.then(|| Rest { from: have, unless_changed: origin.validator().map(str::to_owned) });
        let messages = http::get(self.url, rest, self.patience);
        let head = match self.next(&messages)? {
            Message::Head(head) => head,
            Message::Broken(reason) => return Ok(End::Broken(reason)),
            Message::Hopeless(reason) => return Err(self.refused(&reason)),
            Message::Bytes(_) | Message::End => return Ok(End::Broken("no answer".to_owned())),
        };
        match head.status {
            200 => self.whole(&head, &messages),
            206 if goes_on => {
                if let Some(change) = self.change(&head) {
                    self.part.forget()?;
                    return Ok(End::Broken(change));
                }
                self.make_room(head.length, 0)?;
                self.part.splice()?;
                self.body(Vec::new(), &messages)
            }
            416 if goes_on => match (head.range.and_then(|range| range.total), self.part.origin().length) {
                (Some(total), None) if total == have => Ok(End::Whole),
                (total, said) => {
                    self.part.forget()?;
                    let bytes =
                        |n: Option<u64>| n.map_or("an unknown length".to_owned(), |n| format!("{n} bytes"));
                    Ok(End::Broken(format!(
                        "the file has {} now, the server says, and had {} before; starting over",
                        bytes(total),
                        bytes(said)
                    )))
                }
            },
            408 | 425 | 429 | 500..=599 => Ok(End::Broken(format!("the server answered {}", status(&head)))),
            404 | 410 => Err(self.refused(&format!(
                "the server answered {}: it does not have {}",
                status(&head),
                self.part.file()
            ))),
            _ => Err(self.refused(&format!("the server answered {}", status(&head)))),
        }
    }

    fn refused(&self, reason: &str) -> Failure {
        Failure::Tool(format!(
            "{}: {reason}. --from names another address of the same files: a mirror",
            self.url
        ))
    }

    /// Why the rest of a file is not the rest of the one that has begun, if it is not.
    fn change(&self, head: &Head) -> Option<String> {
        let before = self.part.origin();
        let differ = |a: &Option<String>, b: &Option<String>| matches!((a, b), (Some(a), Some(b)) if a != b);
        let total = head.range.and_then(|range| range.total);
        if differ(&before.etag, &head.etag) || differ(&before.last_modified, &head.last_modified) {
            Some("the file on the server has changed, starting over".to_owned())
        } else if matches!((before.length, total), (Some(a), Some(b)) if a != b) {
            Some("the file on the server has another length now, starting over".to_owned())
        } else if head.range.and_then(|range| range.start) != Some(self.part.length()) {
            Some("the server sent other bytes than it was asked for, starting over".to_owned())
        } else {
            None
        }
    }

    /// Takes the file from its beginning. What is there is dropped only once something like a data file arrives.
    fn whole(&mut self, head: &Head, messages: &Receiver<Message>) -> Result<End, Failure> {
        self.make_room(head.length, self.part.length())?;
        let first = match self.next(messages)? {
            Message::Bytes(bytes) => bytes,
            Message::Broken(reason) | Message::Hopeless(reason) => return Ok(End::Broken(reason)),
            Message::End | Message::Head(_) if head.length.is_some_and(|length| length > 0) => {
                return Ok(End::Broken("the connection ended before the first byte".to_owned()));
            }
            Message::End | Message::Head(_) => Vec::new(),
        };
        if !first.starts_with(ZIP) && (first.is_empty() || !ZIP.starts_with(&first)) {
            return Err(Failure::Load(format!(
                "{}: found {}, expected a zip file; is the address right? --from names another",
                self.url,
                describe(&first, head)
            )));
        }
        if self.part.length() > 0 {
            self.progress.say(&format!(
                "{}: dropping the {} that were there, which {}",
                self.part.file(),
                DecimalBytes(self.part.length()),
                if self.part.origin().url == self.url {
                    "this server does not go on with".to_owned()
                } else {
                    format!("came from {}", self.part.origin().url)
                }
            ));
        }
        self.part.restart(Origin {
            url: self.url.to_owned(),
            etag: head.etag.clone(),
            last_modified: head.last_modified.clone(),
            length: head.length,
            ..Origin::default()
        })?;
        self.body(first, messages)
    }

    /// Appends what has come and what comes.
    fn body(&mut self, first: Vec<u8>, messages: &Receiver<Message>) -> Result<End, Failure> {
        let length = self.part.origin().length;
        self.progress.start(self.url, self.part.length(), length);
        self.part.write(&first)?;
        loop {
            match self.next(messages)? {
                Message::Bytes(bytes) => {
                    self.part.write(&bytes)?;
                    self.progress.at(self.part.length());
                }
                Message::Broken(reason) | Message::Hopeless(reason) => {
                    return Ok(End::Broken(format!("{reason}, at {}", amount(self.part.length(), length))));
                }
                Message::End | Message::Head(_) => break,
            }
        }
        match length {
            Some(length) if self.part.length() < length => Ok(End::Broken(format!(
                "the connection ended at {}",
                amount(self.part.length(), Some(length))
            ))),
            Some(length) if self.part.length() > length => {
                self.part.forget()?;
                Ok(End::Broken(format!("more than the announced {length} bytes arrived, starting over")))
            }
            _ => Ok(End::Whole),
        }
    }

    /// Refuses what does not fit on the disk, of which `freed` bytes will be dropped.
    fn make_room(&self, needed: Option<u64>, freed: u64) -> Result<(), Failure> {
        let folder = self.part.path().parent();
        let (Some(needed), Some(free)) = (needed, folder.and_then(disk::free)) else { return Ok(()) };
        if needed <= free.saturating_add(freed) {
            return Ok(());
        }
        Err(Failure::Tool(format!(
            "{} needs {} more, but {} has only {} left; make room, or put it elsewhere with --out",
            self.part.file(),
            DecimalBytes(needed),
            folder.unwrap_or(self.part.path()).display(),
            DecimalBytes(free)
        )))
    }

    /// The next message, unless a signal comes; silence counts as a broken connection.
    fn next(&self, messages: &Receiver<Message>) -> Result<Message, Failure> {
        let since = Instant::now();
        loop {
            self.check_stop()?;
            match messages.recv_timeout(TICK) {
                Ok(message) => return Ok(message),
                Err(RecvTimeoutError::Timeout) if since.elapsed() < self.patience => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Ok(Message::Broken(format!(
                        "the server was silent for {} s",
                        self.patience.as_secs_f64()
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(Message::Broken("no answer".to_owned())),
            }
        }
    }

    fn sleep(&self, pause: Duration) -> Result<(), Failure> {
        let since = Instant::now();
        while since.elapsed() < pause {
            self.check_stop()?;
            std::thread::sleep(TICK.min(pause.saturating_sub(since.elapsed())));
        }
        Ok(())
    }

    fn check_stop(&self) -> Result<(), Failure> {
        if self.stop.is_set() { Err(Failure::Stopped(format!("stopped; {}", self.state()))) } else { Ok(()) }
    }
}

fn status(head: &Head) -> String {
    let reason = ureq::http::StatusCode::from_u16(head.status).ok().and_then(|code| code.canonical_reason());
    format!("{} {}", head.status, reason.unwrap_or_default()).trim_end().to_owned()
}

/// What arrived instead of a zip file.
fn describe(first: &[u8], head: &Head) -> String {
    let size = match head.length {
        Some(1) => "one byte".to_owned(),
        Some(length) => format!("{length} bytes"),
        None => "unknown length".to_owned(),
    };
    let start = first.trim_ascii_start();
    let begins = |tag: &[u8]| start.get(..tag.len()).is_some_and(|s| s.eq_ignore_ascii_case(tag));
    if first.is_empty() {
        "nothing".to_owned()
    } else if begins(b"<!doctype html") || begins(b"<html") || head.content_type.starts_with("text/html") {
        format!("an HTML page of {size}")
    } else {
        format!("content of {size} that begins with `{}`", first[..first.len().min(20)].escape_ascii())
    }
}
