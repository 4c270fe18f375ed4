//! Servers that Claude Code reaches by an address.
//!
//! `"type": "http", "url": U, "headers": { "A": V }` becomes `"type": "stdio", "command":
//! "jackline", "args": ["mcp", "wrap", "--url", U, "--header-env", "A=JACKLINE_HEADER_1"], "env":
//! { "JACKLINE_HEADER_1": V }`. Keys get other names, and values stay where they are: what is a
//! secret comes to no command line. An address that may hold one is named by a variable, too.

use jsonc_parser::ast::{Object, ObjectProp, StringLit};
use jsonc_parser::common::Ranged as _;

use super::{
    Altered, Cut, Left, Started, Step, Wrapping, gap, is_separator, is_space, past_comma, piece,
    quoted, span,
};
use jackline_clients::settings_text::SettingsError;

/// The words for the one kind that the proxy speaks. The first is what comes back where nobody
/// remembers another one.
const KINDS: [&str; 2] = ["http", "streamable-http"];

/// What the client does itself with a server that it speaks to, and with no program.
const CLIENTS: [(&str, &str); 4] = [
    ("headersHelper", "has the client ask a program for headers"),
    ("oauth", "has the client log in"),
    ("tools", "has rules for its tools that the client keeps only for servers elsewhere"),
    ("toolPermissions", "has rules for its tools that the client keeps only for servers elsewhere"),
];

/// The variable with the address.
const URL: &str = "JACKLINE_URL";

/// What is shorter in a path is rather a word than a token.
const TOKEN_CHARS_MIN: usize = 16;

/// The variables with the values of headers, each with its number.
const HEADER: &str = "JACKLINE_HEADER_";

/// A server elsewhere that the guard can stand before.
struct Spoken<'v, 'a> {
    kind: &'v StringLit<'a>,
    url: (&'v ObjectProp<'a>, &'v StringLit<'a>),
    headers: Option<(&'v ObjectProp<'a>, &'v Object<'a>)>,
}

impl<'v, 'a> Spoken<'v, 'a> {
    /// The server, or why the guard can't stand before it.
    fn of(text: &str, server: &'v Object<'a>) -> Result<Self, String> {
        let no = |why: &str| Err(why.to_owned());
        let Some(url) = server.get("url") else { return no("is elsewhere and has no `url`") };
        let Some(kind) = server.get_string("type") else {
            return no("has a `url` and no `type`, so the client does not know it either");
        };
        if !KINDS.contains(&kind.value.as_ref()) {
            let kind = &kind.value;
            return Err(format!("is of type `{kind}`, and `jackline mcp wrap` speaks only `http`"));
        }
        if let Some((_, why)) = CLIENTS.iter().find(|(key, _)| server.get(key).is_some()) {
            return Err(format!("{why}, which nobody does behind the guard"));
        }
        if ["command", "args", "env"].iter().any(|key| server.get(key).is_some()) {
            return no("has a `url`, and what starts a program besides");
        }
        let Some(address) = url.value.as_string_lit() else {
            return no("has a `url` that is no text");
        };
        let headers = match server.get("headers") {
            None => None,
            Some(property) => match property.value.as_object() {
                Some(headers) => Some((property, headers)),
                None => return no("has `headers` that are no object"),
            },
        };
        let spoken = Self { kind, url: (url, address), headers };
        spoken.check(text)?;
        Ok(spoken)
    }

    /// Whether all of it can go and come back.
    fn check(&self, text: &str) -> Result<(), String> {
        let headers = self.properties();
        let names = headers.iter().map(|property| property.name.as_str());
        let mut lower: Vec<String> = names.map(str::to_ascii_lowercase).collect();
        lower.sort_unstable();
        if lower.windows(2).any(|pair| matches!(pair, [one, other] if one == other)) {
            return Err("has a header twice".to_owned());
        }
        let has_text = |property: &&ObjectProp<'_>| {
            property.value.as_string_lit().is_some_and(|it| !it.value.is_empty())
        };
        if !headers.iter().all(has_text) {
            return Err("has a header without a text in it".to_owned());
        }
        let own = [Some(self.url.0), self.headers.map(|(property, _)| property)];
        let keys = own.into_iter().flatten().chain(headers.iter().copied());
        let is_plain = |property: &ObjectProp<'_>| {
            let name = property.name.as_str();
            piece(text, &span(property.name.range())).is_ok_and(|raw| raw == quoted(name))
        };
        if !keys.into_iter().all(is_plain) {
            return Err("has keys with escapes in them, which would not come back".to_owned());
        }
        if self.is_secret() && self.headers.is_some() && headers.is_empty() {
            return Err("has empty `headers`; take them out".to_owned());
        }
        Ok(())
    }

    fn properties(&self) -> Vec<&'v ObjectProp<'a>> {
        self.headers.map(|(_, headers)| headers.properties.iter().collect()).unwrap_or_default()
    }

    /// Whether its address may hold a secret.
    fn is_secret(&self) -> bool {
        may_hold_secret(&self.url.1.value)
    }
}

/// Whether an address may hold a secret: a query, a fragment, a name or password, a variable that
/// the client fills in, or a part of the path that looks like a token.
fn may_hold_secret(address: &str) -> bool {
    let place = address.split_once("://").map_or(address, |(_, place)| place);
    let mut path = place.split('/').skip(1);
    address.contains(['?', '#', '@']) || address.contains("${") || path.any(looks_like_token)
}

/// Whether it is long, and mixes letters with digits as few words do.
fn looks_like_token(segment: &str) -> bool {
    let mut letters = segment.chars();
    segment.len() >= TOKEN_CHARS_MIN
        && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
        && segment.contains(|letter: char| letter.is_ascii_alphabetic())
        && segment.contains(|letter: char| letter.is_ascii_digit())
}

pub(super) fn put(
    text: &str,
    name: &str,
    server: &Object<'_>,
    how: Wrapping<'_>,
) -> Result<Step, SettingsError> {
    let kept = |why| Ok(Step::Leave(Left::Kept(why)));
    let spoken = match Spoken::of(text, server) {
        Ok(spoken) => spoken,
        Err(why) => return kept(why),
    };
    let headers = spoken.properties();
    let said = headers.iter().map(|property| {
        let value = property.value.as_string_lit().map_or("", |value| value.value.as_ref());
        (property.name.as_str(), value)
    });
    let said: Vec<(&str, &str)> = said.collect();
    let address = &spoken.url.1.value;
    let address = (!address.contains("${")).then_some(address.as_ref());
    if let Err(why) = (how.reaches)(address, &said) {
        return kept(format!("can't be spoken to by `jackline mcp wrap`: {why}"));
    }
    if !how.remote.means(name) {
        return Ok(Step::Leave(Left::Remote));
    }
    let kind = piece(text, &span(spoken.kind.range()))?;
    let cuts = cuts(text, server, &spoken, how.program)?;
    let usual = quoted(KINDS[0]);
    let kind = (kind != usual).then(|| kind.to_owned());
    Ok(Step::Change(Altered { cuts, kind, is_bare: headers.is_empty() }))
}

fn cuts(
    text: &str,
    server: &Object<'_>,
    spoken: &Spoken<'_, '_>,
    program: &str,
) -> Result<Vec<Cut>, SettingsError> {
    let (url, address) = spoken.url;
    let written = piece(text, &span(address.range()))?;
    let gap = gap(text, server)?;
    let mut words = vec![quoted("mcp"), quoted("wrap")];
    let mut behind = String::new();
    let mut cuts = vec![
        Cut { at: span(spoken.kind.range()), with: quoted("stdio") },
        Cut { at: span(url.name.range()), with: quoted("command") },
    ];
    if spoken.is_secret() {
        words.extend([quoted("--url-env"), quoted(URL)]);
        let variable = format!("\"{URL}\": {written}");
        match spoken.properties().first().map(|first| first.range().start) {
            None => behind = format!(",{gap}\"env\": {{ {variable} }}"),
            Some(first) => {
                let inner = spoken.headers.map_or(first, |(_, headers)| headers.range.start + 1);
                let lead = piece(text, &(inner..first))?;
                let gap = if is_space(lead) && !lead.is_empty() { lead } else { " " };
                cuts.push(Cut { at: first..first, with: format!("{variable},{gap}") });
            }
        }
    } else {
        words.extend([quoted("--url"), written.to_owned()]);
    }
    for (at, header) in (1..).zip(spoken.properties()) {
        let variable = format!("{HEADER}{at}");
        words.push(quoted("--header-env"));
        words.push(quoted(&format!("{}={variable}", header.name.as_str())));
        cuts.push(Cut { at: span(header.name.range()), with: quoted(&variable) });
    }
    if let Some((property, _)) = spoken.headers {
        cuts.push(Cut { at: span(property.name.range()), with: quoted("env") });
    }
    let with = format!("{},{gap}\"args\": [{}]{behind}", quoted(program), words.join(", "));
    cuts.push(Cut { at: span(address.range()), with });
    Ok(cuts)
}

/// A server elsewhere with the guard before it, as it is written by us.
pub(super) struct Wrapped<'v, 'a> {
    kind: Option<&'v StringLit<'a>>,
    /// The first key of it, before which another can stand.
    first: usize,
    command: (&'v ObjectProp<'a>, &'v StringLit<'a>),
    args: &'v ObjectProp<'a>,
    env: Option<(&'v ObjectProp<'a>, &'v Object<'a>)>,
    /// The address, where it is a word; else a variable has it.
    url: Option<&'v StringLit<'a>>,
    /// Names of headers, and the variables with their values.
    headers: Vec<(&'v str, &'v str)>,
}

impl<'v, 'a> Wrapped<'v, 'a> {
    /// The parts, where all of them are ours.
    pub(super) fn of(text: &str, started: &'v Started<'v, 'a>) -> Option<Self> {
        let [mcp, wrap, how, url, rest @ ..] = started.words.as_slice() else { return None };
        let (Some((args, _)), Some(command)) = (started.args, started.server.get("command")) else {
            return None;
        };
        let url = match how.value.as_ref() {
            "--url" => Some(*url),
            "--url-env" if url.value == URL => None,
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
        let follows = piece(text, &(command.range().end..args.range().start));
        let is_ours = mcp.value == "mcp"
            && wrap.value == "wrap"
            && follows.is_ok_and(is_separator)
            && started.server.get("headers").is_none()
            && wrapped.has_all_variables();
        is_ours.then_some(wrapped)
    }

    /// Whether its variables are those that are named, and nothing else.
    fn has_all_variables(&self) -> bool {
        let named = self.headers.iter().map(|(_, variable)| *variable);
        let mut named: Vec<&str> =
            self.url.is_none().then_some(URL).into_iter().chain(named).collect();
        let env = self.env.iter().flat_map(|(_, env)| &env.properties);
        let texts = env.filter(|property| property.value.as_string_lit().is_some());
        let mut there: Vec<&str> = texts.map(|property| property.name.as_str()).collect();
        let all = self.env.map_or(0, |(_, env)| env.properties.len());
        named.sort_unstable();
        there.sort_unstable();
        all == there.len() && named == there
    }

    /// The cuts that leave the server alone; none where it was rearranged too much.
    pub(super) fn taken(
        self,
        text: &str,
        kind: Option<&str>,
    ) -> Result<Option<Vec<Cut>>, SettingsError> {
        let kind = kind.map_or_else(|| quoted(KINDS[0]), ToOwned::to_owned);
        let mut cuts = vec![match self.kind {
            Some(word) => Cut { at: span(word.range()), with: kind },
            None => Cut { at: self.first..self.first, with: format!("\"type\": {kind}, ") },
        }];
        let (command, program) = self.command;
        let mut end = self.args.range().end;
        let mut headers = self.env;
        let address = match (self.url, self.env) {
            (Some(url), _) => span(url.range()),
            (None, None) => return Ok(None),
            (None, Some((property, env))) => {
                let Some(variable) = env.properties.iter().find(|it| it.name.as_str() == URL)
                else {
                    return Ok(None);
                };
                let is_first =
                    env.properties.first().is_some_and(|first| first.range() == variable.range());
                match env.properties.get(1) {
                    // Nothing else is in there, so it came with the variable.
                    None => {
                        let follows = piece(text, &(end..property.range().start));
                        if !follows.is_ok_and(is_separator) {
                            return Ok(None);
                        }
                        end = property.range().end;
                        headers = None;
                    }
                    Some(next) if is_first => {
                        let begin = variable.range().start;
                        let past = past_comma(text, &(variable.range().end..next.range().start))?;
                        cuts.push(Cut { at: begin..past, with: String::new() });
                    }
                    Some(_) => return Ok(None),
                }
                span(variable.value.range())
            }
        };
        let written = piece(text, &address)?.to_owned();
        cuts.push(Cut { at: span(command.name.range()), with: quoted("url") });
        cuts.push(Cut { at: span(program.range()), with: written });
        cuts.push(Cut { at: command.range().end..end, with: String::new() });
        if let Some((property, env)) = headers {
            cuts.push(Cut { at: span(property.name.range()), with: quoted("headers") });
            for variable in &env.properties {
                let own = variable.name.as_str();
                if let Some((name, _)) = self.headers.iter().find(|(_, named)| *named == own) {
                    cuts.push(Cut { at: span(variable.name.range()), with: quoted(name) });
                }
            }
        }
        Ok(Some(cuts))
    }
}
