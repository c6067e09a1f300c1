//! One GET request, on a thread of its own: whoever waits for it can lose patience, or hear a signal.

use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use ureq::http::{HeaderMap, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Error, Proxy};

const CERTIFICATES: &str = "; the certificates are those of the system (on Linux the package ca-certificates, or the \
                            file that SSL_CERT_FILE names)";

/// What is asked for beyond the address.
pub struct Rest {
    /// Only the bytes from here on.
    pub from: u64,
    /// But the whole file if it is not the one with this ETag or date any more.
    pub unless_changed: Option<String>,
}

/// What the server says before the content.
#[derive(Debug)]
pub struct Head {
    pub status: u16,
    /// Bytes of content that follow.
    pub length: Option<u64>,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub content_type: String,
    pub range: Option<ContentRange>,
}

/// Which bytes of the whole file follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContentRange {
    /// `None` if none do.
    pub start: Option<u64>,
    pub total: Option<u64>,
}

/// What a request brings, in this order: a head, bytes, the end; or what went wrong.
pub enum Message {
    Head(Box<Head>),
    Bytes(Vec<u8>),
    End,
    /// Trying again may help.
    Broken(String),
    /// Trying again will not help.
    Hopeless(String),
}

/// Starts a request. Dropping the receiver ends it.
pub fn get(url: &str, rest: Option<Rest>, patience: Duration) -> Receiver<Message> {
    // A few chunks ahead: network and disk need not wait for each other.
    let (sender, receiver) = sync_channel(8);
    let url = url.to_owned();
    std::thread::spawn(move || {
        let last = match request(&agent(patience), &url, rest) {
            Ok(response) => deliver(response, &sender),
            Err(error) => Some(explain(&error)),
        };
        if let Some(message) = last {
            let _ = sender.send(message); // nobody may be listening any more
        }
    });
    receiver
}

fn agent(patience: Duration) -> Agent {
    // The certificates that the system trusts: behind a proxy that opens connections they are the only right ones.
    // If there are none, only http works; the error of https says where they are looked for.
    let certificates = rustls_native_certs::load_native_certs().certs;
    let certificates = certificates.iter().map(|found| Certificate::from_der(found).to_owned());
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // Whoever waits has lost patience by then; this ends the thread.
        .timeout_connect(Some(2 * patience))
        .timeout_per_read(Some(2 * patience))
        .user_agent(concat!("album/", env!("CARGO_PKG_VERSION")))
        .tls_config(
            TlsConfig::builder()
                .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .root_certs(RootCerts::Specific(Arc::new(certificates.collect())))
                .build(),
        )
        .build();
    config.into()
}

fn request(agent: &Agent, url: &str, rest: Option<Rest>) -> Result<Response<Body>, Error> {
    let mut request = agent.get(url).header("Accept-Encoding", "identity");
    if let Some(rest) = rest {
        request = request.header("Range", format!("bytes={}-", rest.from));
        if let Some(validator) = rest.unless_changed {
            request = request.header("If-Range", validator);
        }
    }
    request.call()
}

/// Passes on what comes; the last message is returned, or nothing if nobody listens.
fn deliver(response: Response<Body>, sender: &SyncSender<Message>) -> Option<Message> {
    let head = Head::of(response.status().as_u16(), response.headers());
    sender.send(Message::Head(Box::new(head))).ok()?;
    let mut body = response.into_body().into_reader();
    loop {
        let mut chunk = vec![0; 128 << 10];
        match body.read(&mut chunk) {
            Ok(0) => return Some(Message::End),
            Ok(n) => {
                chunk.truncate(n);
                sender.send(Message::Bytes(chunk)).ok()?;
            }
            Err(error) => return Some(Message::Broken(format!("the connection broke: {error}"))),
        }
    }
}

impl Head {
    fn of(status: u16, headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).map(|v| v.trim().to_owned());
        Head {
            status,
            length: text("content-length").and_then(|v| v.parse().ok()),
            etag: text("etag"),
            last_modified: text("last-modified"),
            content_type: text("content-type").unwrap_or_default(),
            range: text("content-range").and_then(|v| ContentRange::parse(&v)),
        }
    }
}

impl ContentRange {
    /// Reads `bytes 5-9/10`, `bytes 5-9/*` or `bytes */10`.
    fn parse(text: &str) -> Option<Self> {
        let (range, total) = text.strip_prefix("bytes")?.trim().split_once('/')?;
        let start = match range {
            "*" => None,
            _ => Some(range.split_once('-')?.0.parse().ok()?),
        };
        let total = if total == "*" { None } else { Some(total.parse().ok()?) };
        Some(ContentRange { start, total })
    }
}

fn explain(error: &Error) -> Message {
    match error {
        Error::Rustls(e) => Message::Hopeless(format!("no secure connection: {e}{CERTIFICATES}")),
        // Certificates that are not trusted arrive as an input error.
        Error::Io(e) if e.kind() == std::io::ErrorKind::InvalidData => {
            Message::Hopeless(format!("no secure connection: {e}{CERTIFICATES}"))
        }
        Error::BadUri(e) => Message::Hopeless(format!("not an address: {e}")),
        Error::Http(e) => Message::Hopeless(format!("not an address: {e}")),
        Error::InvalidProxyUrl => Message::Hopeless(
            "the proxy in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is not an address of the form http://HOST:PORT".into(),
        ),
        Error::TooManyRedirects => Message::Hopeless("redirected more than 10 times".into()),
        other => {
            let proxy = Proxy::try_from_env().map(|proxy| format!(", with {} as the proxy", proxy.host()));
            Message::Broken(format!("no answer: {other}{}", proxy.unwrap_or_default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges() {
        let range = |start, total| Some(ContentRange { start, total });
        assert_eq!(ContentRange::parse("bytes 5-9/10"), range(Some(5), Some(10)));
        assert_eq!(ContentRange::parse("bytes 5-9/*"), range(Some(5), None));
        assert_eq!(ContentRange::parse("bytes */10"), range(None, Some(10)));
        for bad in ["", "bytes", "bytes 5/10", "bytes -9/10", "lines 5-9/10", "bytes 5-9/ten"] {
            assert_eq!(ContentRange::parse(bad), None, "{bad}");
        }
    }
}
