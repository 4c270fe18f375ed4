//! Wraps remote MCP servers of Claude Code.
//!
//! `"type": "http", "url": U, "headers": { "A": V }` becomes `"type": "stdio", "command":
//! "jackline", "args": ["mcp", "wrap", "--url", U, "--header-env", "A=JACKLINE_HEADER_1"], "env": {
//! "JACKLINE_HEADER_1": V }`. The keys change and the values stay where they are, so a secret never
//! appears on a command line. An address that may contain a secret is passed in a variable too.

use jsonc_parser::ast::{Object, ObjectProp, StringLit};
use jsonc_parser::common::Ranged as _;

use super::{
    ProgramServer, ServerDecision, ServerEdit, TextCut, UnchangedReason, WrapOptions, after_comma,
    byte_range, is_separator, is_space, key_separator, quoted, text_part,
};
use jackline_clients::settings_text::SettingsError;

/// The values of `type` for the transport that the proxy supports. Unwrapping restores the first
/// one unless another one was recorded.
const HTTP_TYPES: [&str; 2] = ["http", "streamable-http"];

/// Keys for features that the client supports only for remote servers, and what they do.
const CLIENT_FEATURES: [(&str, &str); 4] = [
    ("headersHelper", "makes the client run a program for its headers"),
    ("oauth", "makes the client log in"),
    ("tools", "has tool rules that the client applies only to remote servers"),
    ("toolPermissions", "has tool rules that the client applies only to remote servers"),
];

/// The variable with the address.
const URL_VARIABLE: &str = "JACKLINE_URL";

/// A shorter part of a path is more likely a word than a token.
const TOKEN_CHARS_MIN: usize = 16;

/// The variables with the values of the headers, followed by a number.
const HEADER_VARIABLE_PREFIX: &str = "JACKLINE_HEADER_";

/// A remote server that can be wrapped.
struct RemoteMcpServer<'v, 'a> {
    kind: &'v StringLit<'a>,
    url: (&'v ObjectProp<'a>, &'v StringLit<'a>),
    headers: Option<(&'v ObjectProp<'a>, &'v Object<'a>)>,
}

impl<'v, 'a> RemoteMcpServer<'v, 'a> {
    /// Parses a remote server, or explains why it can't be wrapped.
    fn of(text: &str, server: &'v Object<'a>) -> Result<Self, String> {
        let no = |why: &str| Err(why.to_owned());
        let Some(url) = server.get("url") else { return no("is a remote server without a `url`") };
        let Some(kind) = server.get_string("type") else {
            return no("has a `url` but no `type`, so the client can't use it either");
        };
        if !HTTP_TYPES.contains(&kind.value.as_ref()) {
            let kind = &kind.value;
            return Err(format!(
                "is of type `{kind}`, but `jackline mcp wrap` supports only `http`"
            ));
        }
        if let Some((_, why)) = CLIENT_FEATURES.iter().find(|(key, _)| server.get(key).is_some()) {
            return Err(format!("{why}, which does not work through the guard"));
        }
        if ["command", "args", "env"].iter().any(|key| server.get(key).is_some()) {
            return no("has a `url` and also keys that start a program");
        }
        let Some(address) = url.value.as_string_lit() else {
            return no("has a `url` that is not a text");
        };
        let headers = match server.get("headers") {
            None => None,
            Some(property) => match property.value.as_object() {
                Some(headers) => Some((property, headers)),
                None => return no("has `headers` that are not an object of names and texts"),
            },
        };
        let spoken = Self { kind, url: (url, address), headers };
        spoken.check_restorable(text)?;
        Ok(spoken)
    }

    /// Checks that wrapping can be undone exactly.
    fn check_restorable(&self, text: &str) -> Result<(), String> {
        let headers = self.properties();
        let names = headers.iter().map(|property| property.name.as_str());
        let mut lower: Vec<String> = names.map(str::to_ascii_lowercase).collect();
        lower.sort_unstable();
        if lower.windows(2).any(|pair| matches!(pair, [one, other] if one == other)) {
            return Err("has the same header twice".to_owned());
        }
        let has_text = |property: &&ObjectProp<'_>| {
            property.value.as_string_lit().is_some_and(|it| !it.value.is_empty())
        };
        if !headers.iter().all(has_text) {
            return Err("has a header whose value is empty or not a text".to_owned());
        }
        let own = [Some(self.url.0), self.headers.map(|(property, _)| property)];
        let keys = own.into_iter().flatten().chain(headers.iter().copied());
        let is_plain = |property: &ObjectProp<'_>| {
            let name = property.name.as_str();
            text_part(text, &byte_range(property.name.range())).is_ok_and(|raw| raw == quoted(name))
        };
        if !keys.into_iter().all(is_plain) {
            return Err("has keys with JSON escapes, which unwrapping could not restore".to_owned());
        }
        if self.may_hold_secret() && self.headers.is_some() && headers.is_empty() {
            return Err("has empty `headers`; remove them".to_owned());
        }
        Ok(())
    }

    fn properties(&self) -> Vec<&'v ObjectProp<'a>> {
        self.headers.map(|(_, headers)| headers.properties.iter().collect()).unwrap_or_default()
    }

    /// Whether its address may contain a secret.
    fn may_hold_secret(&self) -> bool {
        may_hold_secret(&self.url.1.value)
    }
}

/// Whether an address may contain a secret: a query, a fragment, a user name or password, a
/// variable that the client fills in, or a part of the path that looks like a token.
fn may_hold_secret(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let mut path = rest.split('/').skip(1);
    address.contains(['?', '#', '@']) || address.contains("${") || path.any(looks_like_token)
}

/// Whether a part of a path is long and mixes letters and digits, as few words do.
fn looks_like_token(segment: &str) -> bool {
    let mut letters = segment.chars();
    segment.len() >= TOKEN_CHARS_MIN
        && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
        && segment.contains(|letter: char| letter.is_ascii_alphabetic())
        && segment.contains(|letter: char| letter.is_ascii_digit())
}

pub(super) fn wrap_remote_server(
    text: &str,
    name: &str,
    server: &Object<'_>,
    how: WrapOptions<'_>,
) -> Result<ServerDecision, SettingsError> {
    let unchanged = |why| Ok(ServerDecision::Keep(UnchangedReason::Invalid(why)));
    let spoken = match RemoteMcpServer::of(text, server) {
        Ok(spoken) => spoken,
        Err(why) => return unchanged(why),
    };
    let headers = spoken.properties();
    let header_values = headers.iter().map(|property| {
        let value = property.value.as_string_lit().map_or("", |value| value.value.as_ref());
        (property.name.as_str(), value)
    });
    let header_values: Vec<(&str, &str)> = header_values.collect();
    let address = &spoken.url.1.value;
    let address = (!address.contains("${")).then_some(address.as_ref());
    if let Err(why) = (how.can_connect)(address, &header_values) {
        return unchanged(format!("can't be reached by `jackline mcp wrap`: {why}"));
    }
    if !how.remote.includes(name) {
        return Ok(ServerDecision::Keep(UnchangedReason::Remote));
    }
    let kind = text_part(text, &byte_range(spoken.kind.range()))?;
    let cuts = wrap_cuts(text, server, &spoken, how.program)?;
    let usual = quoted(HTTP_TYPES[0]);
    let kind = (kind != usual).then(|| kind.to_owned());
    Ok(ServerDecision::Change(ServerEdit { cuts, kind, has_no_header: headers.is_empty() }))
}

fn wrap_cuts(
    text: &str,
    server: &Object<'_>,
    spoken: &RemoteMcpServer<'_, '_>,
    program: &str,
) -> Result<Vec<TextCut>, SettingsError> {
    let (url, address) = spoken.url;
    let written = text_part(text, &byte_range(address.range()))?;
    let gap = key_separator(text, server)?;
    let mut words = vec![quoted("mcp"), quoted("wrap")];
    let mut behind = String::new();
    let mut cuts = vec![
        TextCut { range: byte_range(spoken.kind.range()), replacement: quoted("stdio") },
        TextCut { range: byte_range(url.name.range()), replacement: quoted("command") },
    ];
    if spoken.may_hold_secret() {
        words.extend([quoted("--url-env"), quoted(URL_VARIABLE)]);
        let variable = format!("\"{URL_VARIABLE}\": {written}");
        match spoken.properties().first().map(|first| first.range().start) {
            None => behind = format!(",{gap}\"env\": {{ {variable} }}"),
            Some(first) => {
                let inner = spoken.headers.map_or(first, |(_, headers)| headers.range.start + 1);
                let lead = text_part(text, &(inner..first))?;
                let gap = if is_space(lead) && !lead.is_empty() { lead } else { " " };
                cuts.push(TextCut {
                    range: first..first,
                    replacement: format!("{variable},{gap}"),
                });
            }
        }
    } else {
        words.extend([quoted("--url"), written.to_owned()]);
    }
    for (at, header) in (1..).zip(spoken.properties()) {
        let variable = format!("{HEADER_VARIABLE_PREFIX}{at}");
        words.push(quoted("--header-env"));
        words.push(quoted(&format!("{}={variable}", header.name.as_str())));
        cuts.push(TextCut {
            range: byte_range(header.name.range()),
            replacement: quoted(&variable),
        });
    }
    if let Some((property, _)) = spoken.headers {
        cuts.push(TextCut { range: byte_range(property.name.range()), replacement: quoted("env") });
    }
    let with = format!("{},{gap}\"args\": [{}]{behind}", quoted(program), words.join(", "));
    cuts.push(TextCut { range: byte_range(address.range()), replacement: with });
    Ok(cuts)
}

/// A remote server that we wrapped.
pub(super) struct WrappedRemoteServer<'v, 'a> {
    kind: Option<&'v StringLit<'a>>,
    /// The position of its first key, before which a key can be inserted.
    first: usize,
    command: (&'v ObjectProp<'a>, &'v StringLit<'a>),
    args: &'v ObjectProp<'a>,
    env: Option<(&'v ObjectProp<'a>, &'v Object<'a>)>,
    /// The address, if it is in `args`; otherwise it is in a variable.
    url: Option<&'v StringLit<'a>>,
    /// The names of the headers, and the variables with their values.
    headers: Vec<(&'v str, &'v str)>,
}

impl<'v, 'a> WrappedRemoteServer<'v, 'a> {
    /// Parses a wrapped server. Returns nothing if any part is not in our format.
    pub(super) fn of(text: &str, started: &'v ProgramServer<'v, 'a>) -> Option<Self> {
        let [mcp, wrap, option, url, rest @ ..] = started.words.as_slice() else { return None };
        let (Some((args, _)), Some(command)) = (started.args, started.server.get("command")) else {
            return None;
        };
        let url = match option.value.as_ref() {
            "--url" => Some(*url),
            "--url-env" if url.value == URL_VARIABLE => None,
            _ => return None,
        };
        let pairs = rest.chunks(2).map(|pair| match pair {
            [option, header] if option.value == "--header-env" => header.value.split_once('='),
            _ => None,
        });
        let headers = pairs.collect::<Option<Vec<(&str, &str)>>>()?;
        let env = match started.server.get("env") {
            None => None,
            Some(property) => match property.value.as_object() {
                Some(env) => Some((property, env)),
                None => return None,
            },
        };
        let first = started.server.properties.first().map(|property| property.range().start);
        let wrapped = Self {
            kind: started.server.get_string("type"),
            first: first.unwrap_or(command.range().start),
            command: (command, started.command),
            args,
            env,
            url,
            headers,
        };
        let follows = text_part(text, &(command.range().end..args.range().start));
        let is_ours = mcp.value == "mcp"
            && wrap.value == "wrap"
            && follows.is_ok_and(is_separator)
            && started.server.get("headers").is_none()
            && wrapped.has_all_variables();
        is_ours.then_some(wrapped)
    }

    /// Whether its variables are exactly those that the arguments name.
    fn has_all_variables(&self) -> bool {
        let expected = self.headers.iter().map(|(_, variable)| *variable);
        let mut expected: Vec<&str> =
            self.url.is_none().then_some(URL_VARIABLE).into_iter().chain(expected).collect();
        let env = self.env.iter().flat_map(|(_, env)| &env.properties);
        let texts = env.filter(|property| property.value.as_string_lit().is_some());
        let mut present: Vec<&str> = texts.map(|property| property.name.as_str()).collect();
        let all = self.env.map_or(0, |(_, env)| env.properties.len());
        expected.sort_unstable();
        present.sort_unstable();
        all == present.len() && expected == present
    }

    /// The cuts that restore the server; nothing if its text was rearranged too much.
    pub(super) fn unwrap_cuts(
        self,
        text: &str,
        kind: Option<&str>,
    ) -> Result<Option<Vec<TextCut>>, SettingsError> {
        let kind = kind.map_or_else(|| quoted(HTTP_TYPES[0]), ToOwned::to_owned);
        let mut cuts = vec![match self.kind {
            Some(word) => TextCut { range: byte_range(word.range()), replacement: kind },
            None => TextCut {
                range: self.first..self.first,
                replacement: format!("\"type\": {kind}, "),
            },
        }];
        let (command, program) = self.command;
        let mut end = self.args.range().end;
        let mut headers = self.env;
        let address = match (self.url, self.env) {
            (Some(url), _) => byte_range(url.range()),
            (None, None) => return Ok(None),
            (None, Some((property, env))) => {
                let Some(variable) =
                    env.properties.iter().find(|it| it.name.as_str() == URL_VARIABLE)
                else {
                    return Ok(None);
                };
                let is_first =
                    env.properties.first().is_some_and(|first| first.range() == variable.range());
                match env.properties.get(1) {
                    // The variable is the only one, so we added the whole `env`.
                    None => {
                        let follows = text_part(text, &(end..property.range().start));
                        if !follows.is_ok_and(is_separator) {
                            return Ok(None);
                        }
                        end = property.range().end;
                        headers = None;
                    }
                    Some(next) if is_first => {
                        let begin = variable.range().start;
                        let past = after_comma(text, &(variable.range().end..next.range().start))?;
                        cuts.push(TextCut { range: begin..past, replacement: String::new() });
                    }
                    Some(_) => return Ok(None),
                }
                byte_range(variable.value.range())
            }
        };
        let written = text_part(text, &address)?.to_owned();
        cuts.push(TextCut { range: byte_range(command.name.range()), replacement: quoted("url") });
        cuts.push(TextCut { range: byte_range(program.range()), replacement: written });
        cuts.push(TextCut { range: command.range().end..end, replacement: String::new() });
        if let Some((property, env)) = headers {
            cuts.push(TextCut {
                range: byte_range(property.name.range()),
                replacement: quoted("headers"),
            });
            for variable in &env.properties {
                let own = variable.name.as_str();
                if let Some((name, _)) = self.headers.iter().find(|(_, variable)| *variable == own)
                {
                    cuts.push(TextCut {
                        range: byte_range(variable.name.range()),
                        replacement: quoted(name),
                    });
                }
            }
        }
        Ok(Some(cuts))
    }
}
