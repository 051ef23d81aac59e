//! TLS to the database: rustls with ring, which needs no C library of the system.
//!
//! The roots are those of the operating system, so that an authority which its administrator
//! installs is trusted without a new release of phalanx.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::DatabaseError;
use super::url::{CertificateCheck, StoreUrl};
use sys::fs;

const ROOTS_LIMIT: u64 = 16 << 20;

/// Returns a connector that checks certificates as the address demands.
pub(super) fn connector(url: &StoreUrl) -> Result<MakeRustlsConnect, DatabaseError> {
    let provider = Arc::new(ring::default_provider());
    let fail = |reason: String| DatabaseError::Tls { place: url.place(), reason };
    let chain = if *url.check() == CertificateCheck::None {
        None
    } else {
        let roots = Arc::new(roots(url).map_err(fail)?);
        let built =
            WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
        Some(built.map_err(|e| fail(e.to_string()))?)
    };
    let verifier = ServerVerifier {
        chain,
        checks_name: *url.check() == CertificateCheck::ChainAndName,
        provider: Arc::clone(&provider),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| fail(e.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn roots(url: &StoreUrl) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    let Some(path) = url.roots() else {
        let found = rustls_native_certs::load_native_certs();
        if store.add_parsable_certificates(found.certs).0 == 0 {
            let why = found.errors.first().map(|e| format!(" ({e})")).unwrap_or_default();
            return Err(format!("this system has no trusted certificates{why}"));
        }
        return Ok(store);
    };
    let shown = path.display();
    let pem = fs::read(path, ROOTS_LIMIT).map_err(|e| e.to_string())?;
    let pem = pem.ok_or_else(|| format!("{shown} does not exist"))?;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|e| format!("{shown}: {e}"))?;
        store.add(certificate).map_err(|e| format!("{shown}: {e}"))?;
    }
    if store.is_empty() {
        return Err(format!("{shown} holds no certificate"));
    }
    Ok(store)
}

/// Checks the server's certificate as far as `sslmode` demands.
#[derive(Debug)]
struct ServerVerifier {
    /// `None` accepts every certificate.
    chain: Option<Arc<WebPkiServerVerifier>>,
    checks_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp, now) {
            // The name is checked last, so everything else was in order.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
