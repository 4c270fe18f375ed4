//! `jackline mcp wrap`: the guard before an MCP server.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use jackline_host::environment::{named_variable, set_variable};
use jackline_mcp::{Address, Behind, Encryption, Ends, Opening, Wrap, wrap};
use jackline_runtime::Runtime;
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::args::WrapArgs;
use crate::exit::Exit;
use crate::terminal::{definitions, fail, here, store};

pub(super) fn run(args: &WrapArgs) -> Exit {
    stand_before(args).map_or_else(|exit| exit, |()| Exit::Fine)
}

fn stand_before(args: &WrapArgs) -> Result<(), Exit> {
    let (session, parent) = super::sessions(args.session.as_ref(), args.parent.as_ref())?;
    if let Some(file) = &args.definition
        && !file.is_file()
    {
        let text = format!("no definition `{}`; check the path after -d", file.display());
        return Err(fail(Exit::Usage, text));
    }
    let server = behind(args)?;
    let store = store()?;
    let (session_directory, state_home) = (store.directory(&session), store.home().to_owned());
    let definitions = definitions(args.definition.clone(), &store);
    let workspace = here();
    let output_bytes_max = super::io(&definitions, &workspace).output.max_bytes;
    let mut runtime = Runtime::new(store, definitions, workspace.clone());
    if let Ok(jackline) = std::env::current_exe() {
        runtime = runtime.with_verifier(jackline.clone()).with_notifier(jackline);
    }
    let opening = Opening { session, parent, workspace: workspace.display().to_string() };
    let wrapped = Wrap {
        server,
        timeout: Duration::from_secs(args.timeout),
        output_bytes_max: usize::try_from(output_bytes_max).unwrap_or(usize::MAX),
        opening,
        session_directory,
        state_home,
    };
    let ends = ends().map_err(|error| fail(Exit::Broken, format!("no streams: {error}")))?;
    wrap(wrapped, runtime, ends).map_err(|error| fail(Exit::Usage, error))
}

/// What the proxy stands before.
fn behind(args: &WrapArgs) -> Result<Behind, Exit> {
    let bad = |error| fail(Exit::Usage, error);
    let encryption = if args.insecure_http { Encryption::Waived } else { Encryption::Demanded };
    let mut address = match (&args.url, &args.url_env) {
        (Some(url), _) => Address::parse(url, encryption).map_err(bad)?,
        (None, Some(variable)) => {
            let unset = "the variable that `--url-env` names is not set";
            let url = named_variable(variable).ok_or_else(|| fail(Exit::Usage, unset))?;
            Address::parse(&url, encryption).map_err(bad)?.in_secret()
        }
        (None, None) => return Ok(Behind::Command(args.server.clone())),
    };
    for header in &args.header {
        let Some((name, value)) = header.split_once(':') else {
            return Err(fail(Exit::Usage, "`--header` is written as `Name: value`"));
        };
        address = address.with_header(name, value).map_err(bad)?;
    }
    for header in &args.header_env {
        let Some((name, variable)) = header.split_once('=') else {
            return Err(fail(Exit::Usage, "`--header-env` is written as `Name=VARIABLE`"));
        };
        let Some(value) = set_variable(variable) else {
            // Who gives a token instead of a name must not find it in a log.
            let text = format!("the variable that is named for the header `{name}` is not set");
            return Err(fail(Exit::Usage, text));
        };
        // Clients fill in nothing for what their own variables do not say: such a header is not
        // sent. Its name is checked all the same.
        let is_empty = value.trim().is_empty();
        let with = address.clone().with_header(name, &value).map_err(bad)?;
        address = if is_empty { address } else { with };
    }
    Ok(Behind::Url(address))
}

/// The streams of this process, without buffers of their own.
fn ends() -> io::Result<Ends> {
    let file = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
    Ok(Ends {
        input: file(io::stdin().as_fd())?,
        output: file(io::stdout().as_fd())?,
        errors: file(io::stderr().as_fd())?,
        stop: Box::new(signals()?),
    })
}

/// Something that can be read from once a signal wants this to end.
fn signals() -> io::Result<impl Read + Send> {
    let (read, write) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        pipe::register(signal, write.try_clone()?)?;
    }
    // Its end would be taken for no signal at all.
    drop(write);
    Ok(read)
}
