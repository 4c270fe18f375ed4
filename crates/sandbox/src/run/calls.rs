//! The functions that a program has besides Python's own.

use std::io;

use jackline_attempt::Subtype;
use jackline_sandbox_host::Limits;
use jackline_sandbox_host::protocol::{
    Answer, End, Failure, Known, Named, Objection, Place, Wanted,
};
use monty_types::{ExcType, ExtFunctionResult, MontyException, MontyObject};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::check::check;
use crate::run::failed;
use crate::serve::Asks;
use crate::values::{NotData, arguments, to_json, to_python};

/// What a tool is called inside, so that none can be taken for a function of the host.
const TOOL: &str = "tool:";

/// How long a name may be.
const NAME_BYTES_MAX: usize = 64;

/// What a call comes to.
pub(super) enum Next {
    /// The program goes on with this.
    GoOn(ExtFunctionResult),
    /// The program has ended.
    End(End),
}

/// What a program has called so far.
pub(super) struct Calls {
    limits: Limits,
    known: Known,
    /// One for each call of the host, in order.
    made: Vec<Made>,
}

/// What the program was given for a call.
enum Made {
    /// Something that it can't hand on.
    Value,
    /// What a delegate ended with.
    Outcome(Value),
    /// An exception, of which the program may have something to say.
    Raised { exception: ExcType, message: String },
}

type Keywords = Vec<(MontyObject, MontyObject)>;

impl Calls {
    pub(super) fn new(limits: Limits, known: Known) -> Self {
        Self { limits, known, made: Vec::new() }
    }

    /// Does what a function does.
    pub(super) fn call(
        &mut self,
        function: &str,
        args: Vec<MontyObject>,
        kwargs: Keywords,
        host: &mut dyn Asks,
    ) -> io::Result<Next> {
        let wanted = match function {
            "ok" => return Ok(ok(args, kwargs).map_or_else(Wrong::next, |end| self.checked(end))),
            "error" => {
                return Ok(error(args, kwargs).map_or_else(Wrong::next, |end| self.checked(end)));
            }
            "tool" => match tool(args, kwargs) {
                Ok(Called::Tool(name)) => {
                    let name = format!("{TOOL}{name}");
                    return Ok(go_on(MontyObject::Function { name, docstring: None }));
                }
                Ok(Called::Wanted(wanted)) => Ok(wanted),
                Err(wrong) => Err(wrong),
            },
            "delegate" => named("delegate", args, kwargs)
                .map(|(name, arguments)| Wanted::Delegate { name, arguments }),
            "forge" => self.forge(args, kwargs),
            other => match other.strip_prefix(TOOL) {
                Some(name) => only_named(name, &args)
                    .and_then(|()| called_with(name, kwargs))
                    .map(|arguments| Wanted::Tool { name: name.to_owned(), arguments }),
                None => {
                    let not_found = ExtFunctionResult::NotFound(other.to_owned());
                    return Ok(Next::GoOn(not_found));
                }
            },
        };
        match wanted {
            Ok(wanted) => self.ask(wanted, host),
            Err(wrong) => Ok(wrong.next()),
        }
    }

    /// The end of a program that came to its end without saying how it went.
    pub(super) fn handed_on(&self, value: MontyObject) -> End {
        let outcome = to_json(value).ok();
        let same = |made: &Made| matches!(made, Made::Outcome(it) if Some(it) == outcome.as_ref());
        match self.made.iter().position(same) {
            Some(call) => End::HandedOn(call),
            None => failed(
                Failure::Execution,
                "the program ended without an answer; end it with ok(value) or error(type, message)",
            ),
        }
    }

    /// The end where an exception of a call was not caught.
    pub(super) fn raised(&self, error: &MontyException) -> Option<End> {
        let position = self.made.iter().rposition(|made| {
            matches!(made, Made::Raised { exception, message }
                if *exception == error.exc_type() && Some(message.as_str()) == error.message())
        })?;
        Some(match error.exc_type() {
            ExcType::PermissionError => End::Refused(position),
            _ => End::CallFailed(position),
        })
    }

    /// Whether something is short enough to leave.
    pub(super) fn fits(&self, value: &impl Serialize) -> Result<(), End> {
        let most = self.limits.value_bytes_max;
        let bytes = serde_json::to_vec(value).map_or(usize::MAX, |text| text.len());
        if bytes <= most {
            return Ok(());
        }
        let message = format!("what the program gives has {bytes} bytes; at most {most} leave it");
        Err(failed(NotData::FAILURE, message))
    }

    fn checked(&self, end: End) -> Next {
        Next::End(self.fits(&end).err().unwrap_or(end))
    }

    /// Asks the host, and gives the program what it says.
    fn ask(&mut self, wanted: Wanted, host: &mut dyn Asks) -> io::Result<Next> {
        if self.made.len() >= self.limits.calls_max as usize {
            let message = format!("a program may call {} times", self.limits.calls_max);
            return Ok(Next::End(failed(Failure::BudgetExceeded, message)));
        }
        if let Err(too_long) = self.fits(&wanted) {
            return Ok(Next::End(too_long));
        }
        let forged = match &wanted {
            Wanted::Forge { name, description, .. } => Some((name.clone(), description.clone())),
            Wanted::Tool { .. } | Wanted::Delegate { .. } => None,
        };
        let delegated = matches!(wanted, Wanted::Delegate { .. });
        let (made, result) = match host.ask(wanted)? {
            Answer::Value(value) => {
                if let Some((name, description)) = forged {
                    self.known.tools.push(Named { name, description, external: false });
                }
                let made = if delegated { Made::Outcome(value.clone()) } else { Made::Value };
                (made, to_python(value).into())
            }
            Answer::Refused(message) => raise(ExcType::PermissionError, message),
            Answer::Failed(message) => raise(ExcType::RuntimeError, message),
        };
        self.made.push(made);
        Ok(Next::GoOn(result))
    }

    /// `forge(name, source, description="")`.
    fn forge(&self, args: Vec<MontyObject>, kwargs: Keywords) -> Result<Wanted, Wrong> {
        let mut given = Given::new("forge", &["name", "source", "description"], args, kwargs)?;
        let (name, source) = (given.text("name")?, given.text("source")?);
        let description = given.text_or("description", "")?;
        let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(letters) {
            let message = "forge() wants a name of letters, digits and _, at most 64 of them";
            return Err(Wrong::value(message));
        }
        let most = self.limits.source_bytes_max;
        let objections = if source.len() > most {
            vec![Objection {
                subtype: Subtype::ProgramTooLong.name().to_owned(),
                message: format!("the program has {} bytes; at most {most} are read", source.len()),
                at: Place { line: 1, column: 1 },
                correction: None,
            }]
        } else {
            check(&source, &self.known)
        };
        Ok(Wanted::Forge { name, description, source, objections })
    }
}

/// What `tool` comes to.
enum Called {
    Tool(String),
    Wanted(Wanted),
}

/// `tool(name)` is the tool itself, and `tool(name, …)` calls it at once.
fn tool(args: Vec<MontyObject>, kwargs: Keywords) -> Result<Called, Wrong> {
    let is_call = !kwargs.is_empty();
    let (name, arguments) = named("tool", args, kwargs)?;
    if is_call {
        return Ok(Called::Wanted(Wanted::Tool { name, arguments }));
    }
    Ok(Called::Tool(name))
}

/// A function of the host that is called as it can't be: an exception in the program.
struct Wrong(MontyException);

impl Wrong {
    fn kind(message: impl Into<String>) -> Self {
        Self(MontyException::new(ExcType::TypeError, Some(message.into())))
    }

    fn value(message: impl Into<String>) -> Self {
        Self(MontyException::new(ExcType::ValueError, Some(message.into())))
    }

    fn next(self) -> Next {
        Next::GoOn(ExtFunctionResult::Error(self.0))
    }
}

/// `ok(value, sources=[])`. What is no data ends the program: it has no other answer.
fn ok(args: Vec<MontyObject>, kwargs: Keywords) -> Result<End, Wrong> {
    let mut given = Given::new("ok", &["value", "sources"], args, kwargs)?;
    let value = given.take("value").unwrap_or(MontyObject::None);
    let sources = given.take("sources").unwrap_or(MontyObject::List(Vec::new()));
    Ok(match (to_json(value), to_json(sources)) {
        (Ok(value), Ok(Value::Array(sources))) => End::Ok { value, sources },
        (Ok(_), Ok(_)) => return Err(Wrong::kind("ok() wants a list of sources")),
        (Err(it), _) => failed(NotData::FAILURE, it.about("value")),
        (_, Err(it)) => failed(NotData::FAILURE, it.about("sources")),
    })
}

/// `error(type, message, retriable=False)`.
fn error(args: Vec<MontyObject>, kwargs: Keywords) -> Result<End, Wrong> {
    let mut given = Given::new("error", &["type", "message", "retriable"], args, kwargs)?;
    let (error_type, message) = (given.text("type")?, given.text("message")?);
    match given.take("retriable").unwrap_or(MontyObject::Bool(false)) {
        MontyObject::Bool(retriable) => Ok(End::Error { error_type, message, retriable }),
        _ => Err(Wrong::kind("error() wants True or False for `retriable`")),
    }
}

/// A name, and what is called by it, in named arguments.
fn named(
    function: &str,
    args: Vec<MontyObject>,
    kwargs: Keywords,
) -> Result<(String, Map<String, Value>), Wrong> {
    let mut args = args.into_iter();
    let Some(MontyObject::String(name)) = args.next() else {
        return Err(Wrong::kind(format!("{function}() wants a name first, which is a string")));
    };
    only_named(&name, args.as_slice())?;
    let arguments = called_with(&name, kwargs)?;
    Ok((name, arguments))
}

fn only_named(name: &str, args: &[MontyObject]) -> Result<(), Wrong> {
    if args.is_empty() {
        return Ok(());
    }
    Err(Wrong::kind(format!("`{name}` takes named arguments only, such as path=\"a.txt\"")))
}

fn called_with(name: &str, kwargs: Keywords) -> Result<Map<String, Value>, Wrong> {
    let whole = format!("an argument of `{name}`, ");
    arguments(kwargs).map_err(|it| Wrong::kind(it.about(&whole)))
}

fn raise(exception: ExcType, message: String) -> (Made, ExtFunctionResult) {
    let raised = MontyException::new(exception, Some(message.clone()));
    (Made::Raised { exception, message }, ExtFunctionResult::Error(raised))
}

fn go_on(value: MontyObject) -> Next {
    Next::GoOn(value.into())
}

/// Arguments by position or by name, each once.
struct Given {
    function: &'static str,
    values: Vec<(&'static str, MontyObject)>,
}

impl Given {
    fn new(
        function: &'static str,
        names: &[&'static str],
        args: Vec<MontyObject>,
        kwargs: Keywords,
    ) -> Result<Self, Wrong> {
        let wanted = || names.join(", ");
        if args.len() > names.len() {
            return Err(Wrong::kind(format!("{function}() takes {} and no more", wanted())));
        }
        let mut values: Vec<_> = names.iter().copied().zip(args).collect();
        for (key, value) in kwargs {
            let MontyObject::String(key) = key else {
                return Err(Wrong::kind(format!("{function}() takes {}", wanted())));
            };
            let known = names.iter().copied().find(|name| *name == key);
            match known {
                Some(name) if values.iter().all(|(given, _)| *given != name) => {
                    values.push((name, value));
                }
                Some(name) => {
                    return Err(Wrong::kind(format!("{function}() is given `{name}` twice")));
                }
                None => {
                    let message = format!("{function}() takes {}, not `{key}`", wanted());
                    return Err(Wrong::kind(message));
                }
            }
        }
        Ok(Self { function, values })
    }

    fn take(&mut self, name: &str) -> Option<MontyObject> {
        let position = self.values.iter().position(|(given, _)| *given == name)?;
        Some(self.values.swap_remove(position).1)
    }

    fn text(&mut self, name: &str) -> Result<String, Wrong> {
        match self.take(name) {
            Some(MontyObject::String(text)) => Ok(text),
            _ => Err(Wrong::kind(format!("{}() wants a string for `{name}`", self.function))),
        }
    }

    fn text_or(&mut self, name: &str, otherwise: &str) -> Result<String, Wrong> {
        if self.values.iter().any(|(given, _)| *given == name) {
            return self.text(name);
        }
        Ok(otherwise.to_owned())
    }
}
