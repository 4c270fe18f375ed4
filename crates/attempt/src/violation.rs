//! Objections to an artifact or to what it did, typed where they are raised.
//!
//! Nobody reads a message to find out what kind of objection it is.

use std::fmt;

use jackline_engine::verdict::{Class, ViolationSubtype, ViolationType};
use serde::{Serialize, Serializer};

/// Where something is wrong, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl Serialize for Location {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// One objection, in the words that a retry and a log need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Whether trying otherwise can help.
    #[serde(rename = "guardrail_class")]
    pub class: Class,
    /// What was violated.
    #[serde(rename = "violation_type")]
    pub kind: ViolationType,
    /// The exact objection.
    #[serde(rename = "violation_subtype")]
    pub subtype: ViolationSubtype,
    /// What is wrong.
    #[serde(rename = "violation_message")]
    pub message: String,
    /// Where.
    #[serde(rename = "violation_location", skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// What passes instead: a mechanism, never an answer.
    #[serde(rename = "required_correction")]
    pub correction: String,
}

impl Violation {
    /// An objection of our own.
    pub fn new(subtype: Subtype, message: impl Into<String>) -> Self {
        Self {
            class: subtype.class(),
            kind: subtype.kind(),
            subtype: subtype.into(),
            message: message.into(),
            location: None,
            correction: subtype.correction().to_owned(),
        }
    }

    /// The same, at a place.
    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    /// The same, with a correction that knows more than the general one.
    #[must_use]
    pub fn correct(mut self, correction: impl Into<String>) -> Self {
        self.correction = correction.into();
        self
    }

    /// The same, of the class that a definition gives our own subtypes. Those of the
    /// guards have the class that the guards gave them.
    #[must_use]
    pub(crate) fn classified(mut self, terminal: &[String]) -> Self {
        if Subtype::named(self.subtype.word()).is_some() {
            let ends = terminal.iter().any(|ends| ends == self.subtype.word());
            self.class = if ends { Class::Terminal } else { Class::Recoverable };
        }
        self
    }
}

impl From<&jackline_engine::Violation> for Violation {
    /// An objection of the guards to a call that the artifact wanted.
    fn from(objection: &jackline_engine::Violation) -> Self {
        let correction = objection.correction.clone();
        Self {
            class: objection.class,
            kind: objection.kind.clone(),
            subtype: objection.subtype.clone(),
            message: objection.message.clone(),
            location: None,
            correction: correction.unwrap_or_else(|| Subtype::ToolDenied.correction().to_owned()),
        }
    }
}

macro_rules! subtypes {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $kind:ident, $class:ident, $correction:literal;)*) => {
        /// What an artifact can violate. Each has a type, a class and a correction, so
        /// that nothing has to be told from its words.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Subtype {
            $($(#[$doc])* $name,)*
        }

        impl Subtype {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its word, as logs and definitions have it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The one with this word.
            pub fn named(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$name),)* _ => None }
            }

            /// What is violated.
            pub fn kind(self) -> ViolationType {
                match self { $(Self::$name => ViolationType::$kind,)* }
            }

            /// Whether trying otherwise can help.
            pub fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)* }
            }

            /// What passes instead.
            pub fn correction(self) -> &'static str {
                match self { $(Self::$name => $correction,)* }
            }
        }

        impl From<Subtype> for ViolationSubtype {
            fn from(subtype: Subtype) -> Self {
                match subtype { $(Subtype::$name => Self::$name,)* }
            }
        }
    };
}

subtypes! {
    /// It changes an agent or a tool instead of calling it.
    SingletonMethodMutation = "singleton_method_mutation", ToolRegistryViolation, Recoverable,
        "Call tool(\"name\") or delegate(\"name\", ...) and use what it returns; never assign \
         to an attribute of a tool, an agent or a module.";
    /// It takes the tools in the context for something they are not.
    ContextToolsShapeMisuse = "context_tools_shape_misuse", ToolRegistryViolation, Recoverable,
        "context[\"tools\"] is a mapping from names to descriptions; look a name up in it, and \
         call the tool with tool(\"name\").";
    /// It answers with what it made up where a source has failed.
    HardcodedExternalFallbackSuccess = "hardcoded_external_fallback_success",
        OutcomePolicyViolation, Recoverable,
        "Where a source fails, return error(type, message, retriable=True); never return ok with \
         a value that is written into the program.";
    /// It answers from outside without saying from where.
    MissingExternalProvenance = "missing_external_provenance", OutcomePolicyViolation,
        Recoverable,
        "Return ok(value, sources=[...]) with uri, fetched_at, retrieval_tool and retrieval_mode \
         (live, cached or fixture) for everything that came from outside.";
    /// It shows what went on inside.
    InternalTextLeak = "internal_text_leak", OutcomePolicyViolation, Recoverable,
        "Branch on the error_type or the subtype of a delegate's outcome; never put its message \
         into the answer.";
    /// It calls a tool that does not exist.
    UnknownTool = "unknown_tool", ToolRegistryViolation, Recoverable,
        "Call only tools that are listed; their names are in context[\"tools\"].";
    /// It wants what a program may not do.
    ForbiddenConstruct = "forbidden_construct", InvalidCode, Recoverable,
        "Use only the functions of the host, plain data and control flow; no imports of modules \
         that reach outside, no exec, no eval.";
    /// It is no program.
    SyntaxError = "syntax_error", InvalidCode, Recoverable,
        "Write one complete program, without prose around it.";
    /// It is longer than anybody reads.
    ProgramTooLong = "program_too_long", InvalidCode, Recoverable,
        "Write a short program that calls tools for the work.";
    /// It is no plan.
    PlanInvalid = "plan_invalid", InvalidPlan, Recoverable,
        "Write one plan that the schema allows.";
    /// The guards refuse a call of it.
    ToolDenied = "tool_denied", ToolPolicyViolation, Recoverable,
        "Leave the refused call out, or make it as its reason says.";
    /// A key or a password is missing, and nothing the model writes brings it.
    MissingCredentials = "missing_credentials", EnvironmentViolation, Terminal,
        "A person has to provide the credentials.";
    /// Something it needs is not there, and nothing the model writes brings it.
    DependencyUnavailable = "dependency_unavailable", EnvironmentViolation, Terminal,
        "A person has to make the dependency available.";
    /// It wants what this runtime can't do at all.
    UnsupportedCapability = "unsupported_capability", EnvironmentViolation, Terminal,
        "This runtime can't do that; a person has to choose another way.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_subtype_says_what_it_is_and_what_passes() {
        let names: BTreeSet<_> = Subtype::ALL.iter().map(|it| it.name()).collect();
        assert_eq!(names.len(), Subtype::ALL.len());
        for subtype in Subtype::ALL {
            assert!(subtype.correction().len() > 20, "{subtype:?}");
            assert_eq!(ViolationSubtype::from(*subtype).word(), subtype.name());
            assert_eq!(Subtype::named(subtype.name()), Some(*subtype));
        }
        let terminal: Vec<_> = Subtype::ALL
            .iter()
            .filter(|it| it.class() == Class::Terminal)
            .map(|it| it.name())
            .collect();
        let expected = ["missing_credentials", "dependency_unavailable", "unsupported_capability"];
        assert_eq!(terminal, expected);
    }

    #[test]
    fn a_violation_has_the_shape_of_the_seed() {
        let violation = Violation::new(Subtype::SingletonMethodMutation, "no")
            .at(Location { line: 3, column: 5 })
            .correct("so");
        let expected = json!({
            "guardrail_class": "recoverable_guardrail",
            "violation_type": "tool_registry_violation",
            "violation_subtype": "singleton_method_mutation",
            "violation_message": "no",
            "violation_location": "3:5",
            "required_correction": "so",
        });
        assert_eq!(serde_json::to_value(violation).unwrap(), expected);
    }
}
