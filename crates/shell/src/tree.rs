//! The syntax tree of one text, kept in flat arenas.
//!
//! A hook pays for this on every Bash call, so nodes are numbers into vectors
//! rather than boxes: a typical line costs four allocations, and dropping a
//! deep tree needs no recursion. Words are only spans here; what they say is
//! worked out by `expand`, and only for those that are looked at.

use alloc::vec::Vec;

/// The number of a node, word, redirection or expansion in its arena.
pub(crate) type Id = u32;

/// No such thing: the end of a chain, or an optional part left out.
pub(crate) const NONE: Id = u32::MAX;

/// The arenas.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) words: Vec<RawWord>,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) expansions: Vec<Expansion>,
}

/// One command of any shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) redirects: Id,
    /// How it hangs together with the sibling before it.
    pub(crate) link: Link,
    pub(crate) next: Id,
}

/// What stands between a node and the sibling before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// `;`, a newline, `|`, or nothing.
    Plain,
    /// `&&`.
    And,
    /// `||`.
    Or,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum NodeKind {
    /// Assignments and words.
    Simple { words: Id },
    /// Commands after each other.
    List { first: Id },
    /// Commands joined by `&&` and `||`.
    Chain { first: Id },
    /// Commands joined by `|`.
    Pipe { first: Id },
    /// `a &`.
    Background { body: Id },
    /// `! a`; the body may be left out.
    Not { body: Id },
    /// `( a )`.
    Subshell { body: Id },
    /// `{ a; }`.
    Group { body: Id },
    /// `if`: a chain of `Branch`.
    If { first: Id },
    /// One condition and what follows from it; an `else` has no condition.
    Branch { condition: Id, body: Id },
    /// `while` and `until`.
    While { condition: Id, body: Id },
    /// `for` and `select`; without `in`, `items` is absent and `given` false.
    For { name: Id, items: Id, given: bool, body: Id },
    /// `for (( … ))`; the word holds the arithmetic.
    ArithmeticFor { word: Id, body: Id },
    /// `case`: a word and a chain of `Arm`.
    Case { word: Id, first: Id },
    /// Patterns and what they select.
    Arm { patterns: Id, body: Id },
    /// `name() …`.
    Function { name: Id, body: Id },
    /// `[[ … ]]` and `(( … ))`: words that are looked at for what they run.
    Test { words: Id },
    /// `coproc`.
    Coproc { body: Id },
}

/// Where a word stands, and what is in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawWord {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) traits: u8,
    pub(crate) expansions: Id,
    pub(crate) next: Id,
}

/// Quotes, backslashes or continued lines.
pub(crate) const QUOTED: u8 = 1;
/// A `$` or backtick expansion, or a process substitution.
pub(crate) const EXPANDS: u8 = 2;
/// An unquoted `*`, `?` or `[`.
pub(crate) const GLOB: u8 = 4;
/// An unquoted `{`.
pub(crate) const BRACE: u8 = 8;
/// An unquoted `~`.
pub(crate) const TILDE: u8 = 16;
/// `name=…` where an assignment may stand.
pub(crate) const ASSIGNS: u8 = 32;
/// `name=(…)`.
pub(crate) const ARRAY: u8 = 64;

/// What kind of expansion starts at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpansionKind {
    /// `$(…)`, with its tree.
    Command(Id),
    /// `` `…` ``, whose text is parsed when it is looked at.
    Backtick,
    /// `<(…)` or `>(…)`, with its tree.
    Process(Id),
    /// `${…}`.
    Parameter,
    /// `$((…))` or `$[…]`.
    Arithmetic,
}

/// An expansion inside a word, in the order in which they start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expansion {
    pub(crate) kind: ExpansionKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) next: Id,
}

/// The operator of a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectOp {
    /// `<`
    In,
    /// `>`, `>|`, `&>`, and `>&` with a file.
    Out,
    /// `>>`, `&>>`
    Append,
    /// `<>`
    Both,
    /// `<&`, `>&` with a descriptor.
    Duplicate,
    /// `<<`, `<<-`
    Here,
    /// `<<<`
    HereString,
}

/// One redirection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Redirect {
    pub(crate) op: RedirectOp,
    /// The descriptor it names; a `{name}` counts as an unknown high one.
    pub(crate) descriptor: Option<u32>,
    pub(crate) word: Id,
    /// The body of a here-document.
    pub(crate) body: (u32, u32),
    /// `<<-`: leading tabs are not part of the body.
    pub(crate) strip_tabs: bool,
    /// The delimiter was quoted, so the body is taken as it stands.
    pub(crate) literal: bool,
    pub(crate) next: Id,
}

/// A chain under construction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    pub(crate) head: Id,
    pub(crate) tail: Id,
}

impl Chain {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };
}

impl Tree {
    pub(crate) fn node(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    pub(crate) fn word(&self, id: Id) -> Option<&RawWord> {
        self.words.get(id as usize)
    }

    pub(crate) fn redirect(&self, id: Id) -> Option<&Redirect> {
        self.redirects.get(id as usize)
    }

    pub(crate) fn expansion(&self, id: Id) -> Option<&Expansion> {
        self.expansions.get(id as usize)
    }

    pub(crate) fn add_node(&mut self, kind: NodeKind, start: usize, end: usize) -> Id {
        let id = number(self.nodes.len());
        let (start, end) = (number(start), number(end));
        self.nodes.push(Node { kind, start, end, redirects: NONE, link: Link::Plain, next: NONE });
        id
    }

    pub(crate) fn link_node(&mut self, chain: &mut Chain, id: Id) {
        if let Some(tail) = self.nodes.get_mut(chain.tail as usize) {
            tail.next = id;
        } else {
            chain.head = id;
        }
        chain.tail = id;
    }

    pub(crate) fn link_word(&mut self, chain: &mut Chain, id: Id) {
        if let Some(tail) = self.words.get_mut(chain.tail as usize) {
            tail.next = id;
        } else {
            chain.head = id;
        }
        chain.tail = id;
    }

    pub(crate) fn link_redirect(&mut self, chain: &mut Chain, redirect: Redirect) -> Id {
        let id = number(self.redirects.len());
        self.redirects.push(redirect);
        if let Some(tail) = self.redirects.get_mut(chain.tail as usize) {
            tail.next = id;
        } else {
            chain.head = id;
        }
        chain.tail = id;
        id
    }

    pub(crate) fn link_expansion(
        &mut self,
        chain: &mut Chain,
        kind: ExpansionKind,
        at: usize,
    ) -> Id {
        let id = number(self.expansions.len());
        self.expansions.push(Expansion { kind, start: number(at), end: number(at), next: NONE });
        if let Some(tail) = self.expansions.get_mut(chain.tail as usize) {
            tail.next = id;
        } else {
            chain.head = id;
        }
        chain.tail = id;
        id
    }

    pub(crate) fn close_expansion(&mut self, id: Id, kind: ExpansionKind, end: usize) {
        if let Some(expansion) = self.expansions.get_mut(id as usize) {
            expansion.kind = kind;
            expansion.end = number(end);
        }
    }

    pub(crate) fn siblings(&self, first: Id) -> impl Iterator<Item = (Id, &Node)> {
        let mut next = first;
        core::iter::from_fn(move || {
            let id = next;
            let node = self.node(id)?;
            next = node.next;
            Some((id, node))
        })
    }

    pub(crate) fn words_from(&self, first: Id) -> impl Iterator<Item = &RawWord> {
        let mut next = first;
        core::iter::from_fn(move || {
            let word = self.word(next)?;
            next = word.next;
            Some(word)
        })
    }

    pub(crate) fn redirects_from(&self, first: Id) -> impl Iterator<Item = &Redirect> {
        let mut next = first;
        core::iter::from_fn(move || {
            let redirect = self.redirect(next)?;
            next = redirect.next;
            Some(redirect)
        })
    }

    pub(crate) fn expansions_from(&self, first: Id) -> impl Iterator<Item = &Expansion> {
        let mut next = first;
        core::iter::from_fn(move || {
            let expansion = self.expansion(next)?;
            next = expansion.next;
            Some(expansion)
        })
    }
}

/// A place or count as a small number. Texts are at most [`crate::LINE_BYTES_MAX`] long.
pub(crate) fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
