//! Which certificate authorities are trusted, and why a certificate is refused.
//!
//! The public authorities are built in. A person can add authorities with `SSL_CERT_FILE`, for
//! example that of a company. The variable can't remove an authority or switch the check off.

use std::fs;
use std::sync::{Arc, OnceLock};

use rustls::crypto::ring;
use rustls::pki_types::UnixTime;
use rustls::{CertificateError, Error as TlsError};
use ureq::Error;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

/// The variable with a PEM file of additional authorities.
const ROOTS_VARIABLE: &str = "SSL_CERT_FILE";

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// The additional authorities of this process.
#[derive(Debug)]
enum AddedRoots {
    /// The variable is not set.
    None,
    Certificates(Vec<Certificate<'static>>),
    /// Why the file adds nothing.
    Unusable(String),
}

impl AddedRoots {
    /// Reads the file once per process.
    fn of_process() -> &'static Self {
        static ROOTS: OnceLock<AddedRoots> = OnceLock::new();
        ROOTS.get_or_init(|| {
            #[expect(clippy::disallowed_methods, reason = "other programs use this variable, too")]
            let file = std::env::var_os(ROOTS_VARIABLE).filter(|file| !file.is_empty());
            let Some(file) = file else { return Self::None };
            let shown = file.to_string_lossy().into_owned();
            match fs::read(file) {
                Ok(text) => Self::parse(&shown, &text),
                Err(error) => Self::Unusable(format!("`{shown}` can't be read: {error}")),
            }
        })
    }

    fn parse(file: &str, text: &[u8]) -> Self {
        let certificates: Vec<Certificate<'static>> = parse_pem(text)
            .filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            })
            .collect();
        if certificates.is_empty() {
            return Self::Unusable(format!("`{file}` contains no certificate in PEM format"));
        }
        Self::Certificates(certificates)
    }

    /// What a person can do if an authority is not trusted.
    fn remedy(&self) -> String {
        match self {
            Self::None => format!(
                "if it is an authority of your own, set `{ROOTS_VARIABLE}` to a PEM file with its \
                 certificate"
            ),
            Self::Certificates(_) => {
                format!("the file in `{ROOTS_VARIABLE}` does not contain that authority; add it")
            }
            Self::Unusable(why) => format!("`{ROOTS_VARIABLE}` adds no authority: {why}"),
        }
    }
}

/// The TLS settings of every agent of this process.
pub(crate) fn tls_config() -> TlsConfig {
    static CONFIG: OnceLock<TlsConfig> = OnceLock::new();
    let build = || {
        let public = TLS_SERVER_ROOT_CERTS.iter().map(|root| Certificate::from_der(root));
        let added = match AddedRoots::of_process() {
            AddedRoots::Certificates(added) => added.as_slice(),
            AddedRoots::None | AddedRoots::Unusable(_) => &[],
        };
        let roots: Vec<_> = public.chain(added.iter().cloned()).collect();
        TlsConfig::builder()
            .root_certs(RootCerts::from(roots))
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .build()
    };
    CONFIG.get_or_init(build).clone()
}

/// Why no secure connection to a host was made, and what to do; `None` for other errors.
pub fn describe_tls_failure(error: &Error, host: &str) -> Option<String> {
    let failure = match error {
        Error::Rustls(failure) => failure,
        Error::Io(error) => error.get_ref().and_then(|inner| inner.downcast_ref())?,
        Error::Tls(why) => return Some(format!("no secure connection to `{host}`: {why}")),
        _ => return None,
    };
    Some(match failure {
        TlsError::InvalidCertificate(refused) => {
            describe_certificate(refused, host, AddedRoots::of_process())
        }
        failure => format!(
            "no secure connection to `{host}`: {failure}; check that the server speaks TLS on this \
             port"
        ),
    })
}

/// Why a certificate is refused, and what to do.
fn describe_certificate(refused: &CertificateError, host: &str, added: &AddedRoots) -> String {
    match refused {
        CertificateError::Expired => expired(host, ""),
        CertificateError::ExpiredContext { time, not_after } => {
            expired(host, &format!(" {} ago", days_between(*not_after, *time)))
        }
        CertificateError::NotValidYet => not_valid_yet(host, ""),
        CertificateError::NotValidYetContext { time, not_before } => {
            not_valid_yet(host, &format!("; it starts in {}", days_between(*time, *not_before)))
        }
        CertificateError::NotValidForName => wrong_host(host, "another host"),
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<String> = presented.iter().take(NAMES_MAX).map(|it| shown(it)).collect();
            wrong_host(
                host,
                &if names.is_empty() { "no host".to_owned() } else { names.join(", ") },
            )
        }
        CertificateError::UnknownIssuer => format!(
            "the certificate of `{host}` is signed by an authority that is not trusted; {}",
            added.remedy()
        ),
        CertificateError::Revoked => {
            format!("the certificate of `{host}` was revoked; install a new one on the server")
        }
        other => format!(
            "the certificate of `{host}` is not valid: {other}; install a valid one on the server"
        ),
    }
}

/// How many names of a certificate are shown.
const NAMES_MAX: usize = 3;

/// A name in a certificate, which the server chose.
fn shown(name: &str) -> String {
    let plain = name.strip_prefix("DnsName(\"").and_then(|rest| rest.strip_suffix("\")"));
    let plain = plain.unwrap_or(name).chars().filter(|letter| !letter.is_control());
    format!("`{}`", plain.take(100).collect::<String>())
}

fn expired(host: &str, when: &str) -> String {
    format!(
        "the certificate of `{host}` expired{when}; install a new one on the server, or correct \
         the clock of this machine"
    )
}

fn not_valid_yet(host: &str, when: &str) -> String {
    format!(
        "the certificate of `{host}` is not valid yet{when}; wait, or correct the clock of this \
         machine"
    )
}

fn wrong_host(host: &str, names: &str) -> String {
    format!(
        "the certificate is for {names} and not for `{host}`; use a name of the certificate in the \
         address, or install a certificate for `{host}` on the server"
    )
}

fn days_between(from: UnixTime, to: UnixTime) -> String {
    match to.as_secs().saturating_sub(from.as_secs()) / DAY_SECONDS {
        0 => "less than a day".to_owned(),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_adds_nothing_and_says_why() {
        for text in ["", "no PEM", "-----BEGIN CERTIFICATE-----\n"] {
            let added = AddedRoots::parse("ca.pem", text.as_bytes());
            assert!(added.remedy().contains("`ca.pem` contains no certificate"), "{added:?}");
        }
    }

    #[test]
    fn each_refusal_names_the_host_the_reason_and_a_remedy() {
        let at = |days: u64| {
            UnixTime::since_unix_epoch(std::time::Duration::from_secs(days * DAY_SECONDS))
        };
        let of = |refused| describe_certificate(&refused, "models.example", &AddedRoots::None);
        let expired = of(CertificateError::ExpiredContext { time: at(12), not_after: at(10) });
        assert!(expired.starts_with("the certificate of `models.example` expired 2 days ago; "));
        let early = of(CertificateError::NotValidYetContext { time: at(1), not_before: at(2) });
        assert!(early.contains("is not valid yet; it starts in 1 day; "), "{early}");
        let unknown = of(CertificateError::UnknownIssuer);
        assert!(unknown.contains("not trusted; ") && unknown.contains("`SSL_CERT_FILE`"));
        let other = of(CertificateError::BadSignature);
        assert!(other.contains("`models.example` is not valid"), "{other}");
    }

    #[test]
    fn names_in_a_certificate_can_not_control_the_terminal() {
        assert_eq!(shown("DnsName(\"a.example\")"), "`a.example`");
        assert_eq!(shown("a\u{1b}[2Jb"), "`a[2Jb`");
    }
}
