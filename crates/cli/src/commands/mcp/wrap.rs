//! `jackline mcp wrap`: a proxy that guards an MCP server.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use jackline_host::environment::{named_variable, set_variable};
use jackline_mcp::{
    Encryption, McpSessionOpening, ProxySetup, ProxyStreams, ServerAddress, ServerTarget, wrap,
};
use jackline_runtime::Runtime;
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::args::WrapArgs;
use crate::commands::check_definition_file;
use crate::exit::ExitKind;
use crate::terminal::{current_directory, fail, machine_definitions, open_store};

pub(super) fn run(args: &WrapArgs) -> ExitKind {
    run_wrapped(args).map_or_else(|exit| exit, |()| ExitKind::Success)
}

fn run_wrapped(args: &WrapArgs) -> Result<(), ExitKind> {
    let (session, parent) = super::session_ids(args.session.as_ref(), args.parent.as_ref())?;
    check_definition_file(args.definition.as_deref())
        .map_err(|text| fail(ExitKind::Usage, text))?;
    let server = wrapped_server(args)?;
    let store = open_store()?;
    let (session_directory, state_home) = (store.directory(&session), store.home().to_owned());
    let definitions = machine_definitions(args.definition.clone(), &store);
    let workspace = current_directory();
    let output_bytes_max = super::io_limits(&definitions, &workspace).output.max_bytes;
    let mut runtime = Runtime::new(store, definitions, workspace.clone()).with_held_sessions();
    if let Ok(jackline) = std::env::current_exe() {
        runtime = runtime.with_verifier(jackline.clone()).with_notifier(jackline);
    }
    let opening = McpSessionOpening { session, parent, workspace: workspace.display().to_string() };
    let wrapped = ProxySetup {
        server,
        timeout: Duration::from_secs(args.timeout),
        output_bytes_max: usize::try_from(output_bytes_max).unwrap_or(usize::MAX),
        opening,
        session_directory,
        state_home,
    };
    let ends = process_streams().map_err(|error| {
        fail(ExitKind::Broken, format!("can't open the standard streams: {error}"))
    })?;
    wrap(wrapped, runtime, ends).map_err(|error| fail(ExitKind::Usage, error))
}

/// The server that the proxy guards.
fn wrapped_server(args: &WrapArgs) -> Result<ServerTarget, ExitKind> {
    let invalid = |error| fail(ExitKind::Usage, error);
    let encryption = if args.insecure_http { Encryption::Optional } else { Encryption::Required };
    let mut address = match (&args.url, &args.url_env) {
        (Some(url), _) => ServerAddress::parse(url, encryption).map_err(invalid)?,
        (None, Some(variable)) => {
            let unset = "the environment variable from `--url-env` is not set";
            let url = named_variable(variable).ok_or_else(|| fail(ExitKind::Usage, unset))?;
            ServerAddress::parse(&url, encryption).map_err(invalid)?.with_secret_path()
        }
        (None, None) => return Ok(ServerTarget::Command(args.server.clone())),
    };
    for header in &args.header {
        let Some((name, value)) = header.split_once(':') else {
            return Err(fail(ExitKind::Usage, "invalid `--header`: write it as `Name: value`"));
        };
        address = address.with_header(name, value).map_err(invalid)?;
    }
    for header in &args.header_env {
        let Some((name, variable)) = header.split_once('=') else {
            return Err(fail(
                ExitKind::Usage,
                "invalid `--header-env`: write it as `Name=VARIABLE`",
            ));
        };
        let Some(value) = set_variable(variable) else {
            // The variable name is not shown, because the user may have passed a token instead.
            let text = format!("the environment variable for the header `{name}` is not set");
            return Err(fail(ExitKind::Usage, text));
        };
        // Clients set a variable to nothing if their own variable is unset. Then the header is not
        // sent, but its name is still checked.
        let is_empty = value.trim().is_empty();
        let with = address.clone().with_header(name, &value).map_err(invalid)?;
        address = if is_empty { address } else { with };
    }
    Ok(ServerTarget::Url(address))
}

/// The standard streams of this process, without buffers.
fn process_streams() -> io::Result<ProxyStreams> {
    let file = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
    Ok(ProxyStreams {
        input: file(io::stdin().as_fd())?,
        output: file(io::stdout().as_fd())?,
        errors: file(io::stderr().as_fd())?,
        stop: Box::new(signal_stream()?),
    })
}

/// A stream that becomes readable when a signal asks the process to end.
fn signal_stream() -> io::Result<impl Read + Send> {
    let (read, write) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        pipe::register(signal, write.try_clone()?)?;
    }
    // Only the signal handlers may hold the write end.
    drop(write);
    Ok(read)
}
