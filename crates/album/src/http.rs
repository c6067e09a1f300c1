//! HTTP as all of album speaks it.

use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::typestate::AgentScope;

/// Trusts the system's certificates, waits so long for a connection and for the beginning of an answer, and leaves it to
/// the caller what a status means.
pub(crate) fn config(patience: Duration) -> ConfigBuilder<AgentScope> {
    // Behind a proxy that opens connections the system's certificates are the only right ones.
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
