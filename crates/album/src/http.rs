//! HTTP settings shared by all of album.

use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::typestate::AgentScope;

/// Trusts the system's certificates, waits up to `patience` for a connection and for the start of a response,
/// and leaves status codes to the caller.
pub(crate) fn config(patience: Duration) -> ConfigBuilder<AgentScope> {
    // Behind an intercepting proxy only the system's certificates are valid.
    let certificates = rustls_native_certs::load_native_certs().certs;
    let certificates = certificates.iter().map(|found| Certificate::from_der(found).to_owned()).collect();
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::Specific(Arc::new(certificates)));
    Agent::config_builder()
        .http_status_as_error(false)
        .tls_config(tls.build())
        .timeout_connect(Some(patience))
        .timeout_recv_response(Some(patience))
        .user_agent(concat!("album/", env!("CARGO_PKG_VERSION")))
}
