//! A TLS server on the loopback address that passes everything on to a server without TLS, and the
//! certificate authority that signs its certificates.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

use crate::support::CliWorld;

/// How long each side waits for the other before it looks at the other direction.
const READ_WAIT: Duration = Duration::from_millis(5);

/// How long a connection may be silent.
const SILENT_READS_MAX: usize = 4000;

/// The kinds of certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CertificateKind {
    Valid,
    Expired,
    OtherHost,
    UnknownIssuer,
}

/// A certificate authority that a test makes.
pub(crate) struct TestAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    other: CertifiedIssuer<'static, KeyPair>,
}

fn new_issuer(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

impl TestAuthority {
    pub(crate) fn new() -> Self {
        Self { issuer: new_issuer("authority of a test"), other: new_issuer("another authority") }
    }

    /// Writes the certificate of the authority, for `SSL_CERT_FILE`.
    pub(crate) fn write_roots(&self, world: &CliWorld) -> PathBuf {
        let path = world.root().join("ca.pem");
        fs::write(&path, self.issuer.pem()).unwrap();
        path
    }

    fn server_config(&self, kind: CertificateKind) -> ServerConfig {
        let host = if kind == CertificateKind::OtherHost { "other.example" } else { "localhost" };
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        if kind == CertificateKind::Expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2020, 2, 1);
        }
        let key = KeyPair::generate().unwrap();
        let by = if kind == CertificateKind::UnknownIssuer { &self.other } else { &self.issuer };
        let certificate = params.signed_by(&key, by).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap()
    }

    /// Starts a TLS server in front of the server on a port. Returns its port.
    pub(crate) fn start_front(&self, kind: CertificateKind, behind: u16) -> u16 {
        let config = Arc::new(self.server_config(kind));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let config = Arc::clone(&config);
                let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", behind)));
                std::thread::spawn(move || pass_on(config, client, server.unwrap()));
            }
        });
        port
    }
}

/// Passes bytes on in both directions until one side has ended.
fn pass_on(config: Arc<ServerConfig>, client: TcpStream, mut server: TcpStream) {
    for side in [&client, &server] {
        side.set_read_timeout(Some(READ_WAIT)).unwrap();
    }
    let connection = ServerConnection::new(config).unwrap();
    let mut secure = rustls::StreamOwned::new(connection, client);
    let mut bytes = [0; 16 << 10];
    for _ in 0..SILENT_READS_MAX {
        match secure.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => server.write_all(&bytes[..read]).unwrap(),
            Err(error) if is_timeout(&error) => {}
            Err(_) => break,
        }
        match server.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) if secure.write_all(&bytes[..read]).is_ok() => {}
            Err(error) if is_timeout(&error) => {}
            Ok(_) | Err(_) => break,
        }
    }
    secure.conn.send_close_notify();
    let _ = secure.flush();
    let _ = server.shutdown(Shutdown::Both);
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
