//! Tests of models and remote MCP servers over TLS, with a certificate authority of their own.

use std::time::Duration;

use jackline_model::scripted::{ModelScript, ScriptStep, ScriptedModel};
use serde_json::json;

use crate::mcp_http::McpHttpServer;
use crate::mcp_support::{WrapProcess, result_text};
use crate::run_support::{REPORT_COMPLETION, TaskDirectory};
use crate::support::{CliOutput, CliWorld, JACKLINE, run_with_input};
use crate::tls_front::{CertificateKind, TestAuthority};

const EMPTY: &str = "version: 1\nname: test/tls\nmode: enforce\n";

/// Each refused certificate, with the text that explains it.
const REFUSED: [(CertificateKind, &str, &str); 3] = [
    (CertificateKind::Expired, "the certificate of `localhost` expired ", "install a new one"),
    (
        CertificateKind::OtherHost,
        "the certificate is for `other.example` and not for `localhost`",
        "use a name of the certificate in the address",
    ),
    (
        CertificateKind::UnknownIssuer,
        "the certificate of `localhost` is signed by an authority that is not trusted",
        "the file in `SSL_CERT_FILE` does not contain that authority",
    ),
];

fn port_of(url: &str) -> u16 {
    url.trim_end_matches("/mcp").rsplit(':').next().unwrap().parse().unwrap()
}

/// Calls a tool through `mcp wrap --url` over TLS, and returns the answer.
fn call_over_tls(
    kind: CertificateKind,
    roots: impl FnOnce(&TestAuthority, &CliWorld) -> Option<std::path::PathBuf>,
) -> (serde_json::Value, usize) {
    let (world, authority) = (CliWorld::new(EMPTY), TestAuthority::new());
    let server = McpHttpServer::start(|_| None);
    let port = authority.start_front(kind, port_of(&server.url));
    let mut command = world.command(JACKLINE);
    command.args(["mcp", "wrap", "--url", &format!("https://localhost:{port}/mcp")]);
    if let Some(roots) = roots(&authority, &world) {
        command.env("SSL_CERT_FILE", roots);
    }
    let mut proxy = WrapProcess::spawn(&mut command);
    let answer = proxy.call_tool(1, "echo", r#"{"text":"a"}"#);
    proxy.disconnect();
    (answer, server.tool_call_count())
}

#[test]
fn an_mcp_server_with_a_certificate_of_an_added_authority_works() {
    let (answer, calls) = call_over_tls(CertificateKind::Valid, |authority, world| {
        Some(authority.write_roots(world))
    });
    assert_eq!((result_text(&answer, 0), calls), ("said", 1), "{answer}");
}

#[test]
fn an_mcp_server_with_a_bad_certificate_gets_no_call_and_the_reason_is_reported() {
    for (kind, reason, remedy) in REFUSED {
        let (answer, calls) =
            call_over_tls(kind, |authority, world| Some(authority.write_roots(world)));
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!((&answer["error"]["data"]["kind"], calls), (&json!("server_unreachable"), 0));
        assert!(message.contains(reason) && message.contains(remedy), "{kind:?}: {message}");
    }
}

#[test]
fn an_authority_that_was_not_added_is_refused_with_the_variable_that_adds_it() {
    let (answer, calls) = call_over_tls(CertificateKind::Valid, |_, _| None);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("set `SSL_CERT_FILE` to a PEM file"), "{message}");
    assert_eq!(calls, 0);
    let (answer, _) = call_over_tls(CertificateKind::Valid, |_, world| {
        Some(world.workspace().join("jackline.yaml"))
    });
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("contains no certificate in PEM format"), "{message}");
}

/// Runs a task with a model over TLS.
fn run_over_tls(kind: CertificateKind) -> (CliOutput, usize) {
    let (world, authority) = (CliWorld::new(""), TestAuthority::new());
    let steps = vec![ScriptStep::call("write_file", json!({ "path": "a", "content": "x" }))];
    let server = ScriptedModel::start(ModelScript::new(steps), Duration::from_mins(2)).unwrap();
    let port = authority.start_front(kind, port_of(&server.url()));
    let model = format!(
        "provider: anthropic, model: some-model, url: \"https://localhost:{port}/v1\", \
         key_env: A_KEY, timeout_seconds: 20"
    );
    let task = TaskDirectory::with_models(&world, REPORT_COMPLETION, &[model]);
    let mut command = task.run_command(&["--json", "--no-wait"]);
    command.arg(&task.directory).env("A_KEY", "key");
    command.env("SSL_CERT_FILE", authority.write_roots(&world));
    let run = run_with_input(&mut command, b"");
    (run, server.requests().len())
}

#[test]
fn a_model_with_a_certificate_of_an_added_authority_works() {
    let (run, requests) = run_over_tls(CertificateKind::Valid);
    assert!(requests > 0, "{run:?}");
}

#[test]
fn a_model_with_a_bad_certificate_gets_no_request_and_the_reason_is_reported() {
    for (kind, reason, remedy) in REFUSED {
        let (run, requests) = run_over_tls(kind);
        let text = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(requests, 0);
        assert!(text.contains(reason) && text.contains(remedy), "{kind:?}: {text}");
    }
}
