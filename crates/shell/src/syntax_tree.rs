//! The syntax tree of one text, stored in flat arenas.
//!
//! A hook builds this tree for every Bash call. So nodes are indexes into vectors and
//! not boxes: a typical line costs four allocations, and dropping a deep tree needs no
//! recursion. Words are only spans here; `expand` computes their text on demand.

use alloc::vec::Vec;

/// The index of a node, word, redirection or expansion in its arena.
pub(crate) type ArenaId = u32;

/// No item: the end of a linked list, or an optional part that is missing.
pub(crate) const NONE: ArenaId = u32::MAX;

/// The arenas of one syntax tree.
#[derive(Debug, Default)]
pub(crate) struct SyntaxTree {
    pub(crate) nodes: Vec<SyntaxNode>,
    pub(crate) words: Vec<RawWord>,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) expansions: Vec<Expansion>,
}

/// One command of any kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyntaxNode {
    pub(crate) kind: NodeKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) redirects: ArenaId,
    /// The operator between this node and its previous sibling.
    pub(crate) link: NodeLink,
    pub(crate) next: ArenaId,
}

/// The operator between a node and its previous sibling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeLink {
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
    Simple { words: ArenaId },
    /// Commands in sequence.
    List { first: ArenaId },
    /// Commands joined by `&&` and `||`.
    AndOrList { first: ArenaId },
    /// Commands joined by `|`.
    Pipe { first: ArenaId },
    /// `a &`.
    Background { body: ArenaId },
    /// `! a`; the body may be missing.
    Not { body: ArenaId },
    /// `( a )`.
    Subshell { body: ArenaId },
    /// `{ a; }`.
    Group { body: ArenaId },
    /// `if`: a list of `Branch`.
    If { first: ArenaId },
    /// One condition and its body; an `else` has no condition.
    Branch { condition: ArenaId, body: ArenaId },
    /// `while` and `until`.
    While { condition: ArenaId, body: ArenaId },
    /// `for` and `select`; without `in`, `items` is absent and `given` false.
    For { name: ArenaId, items: ArenaId, given: bool, body: ArenaId },
    /// `for (( … ))`; the word is the arithmetic.
    ArithmeticFor { word: ArenaId, body: ArenaId },
    /// `case`: a word and a list of `Arm`.
    Case { word: ArenaId, first: ArenaId },
    /// Patterns and the commands that they select.
    Arm { patterns: ArenaId, body: ArenaId },
    /// `name() …`.
    Function { name: ArenaId, body: ArenaId },
    /// `[[ … ]]` and `(( … ))`: words in which only the expansions run commands.
    Test { words: ArenaId },
    /// `coproc`.
    Coproc { body: ArenaId },
}

/// The span of a word and the kinds of syntax in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawWord {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) flags: u8,
    pub(crate) expansions: ArenaId,
    pub(crate) next: ArenaId,
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
/// `name=…` at a position where bash accepts an assignment.
pub(crate) const ASSIGNS: u8 = 32;
/// `name=(…)`.
pub(crate) const ARRAY: u8 = 64;

/// The kind of an expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpansionKind {
    /// `$(…)`, with its tree.
    Command(ArenaId),
    /// `` `…` ``, whose text is parsed only when the walk reaches it.
    Backtick,
    /// `<(…)` or `>(…)`, with its tree.
    Process(ArenaId),
    /// `${…}`.
    Parameter,
    /// `$((…))` or `$[…]`.
    Arithmetic,
}

/// An expansion inside a word. The expansions of a word are in the order of their starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expansion {
    pub(crate) kind: ExpansionKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) next: ArenaId,
}

/// The operator of a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectOp {
    /// `<`
    Input,
    /// `>`, `>|`, `&>`, and `>&` with a file.
    Output,
    /// `>>`, `&>>`
    Append,
    /// `<>`
    ReadWrite,
    /// `<&`, `>&` with a descriptor.
    Duplicate,
    /// `<<`, `<<-`
    HereDocument,
    /// `<<<`
    HereString,
}

/// One redirection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Redirect {
    pub(crate) op: RedirectOp,
    /// The descriptor before the operator; `{name}` counts as an unknown high number.
    pub(crate) descriptor: Option<u32>,
    pub(crate) word: ArenaId,
    /// The byte range of the body of a here-document.
    pub(crate) body: (u32, u32),
    /// `<<-`: leading tabs are not part of the body.
    pub(crate) strip_tabs: bool,
    /// The delimiter was quoted, so bash expands nothing in the body.
    pub(crate) literal: bool,
    pub(crate) next: ArenaId,
}

/// A linked list of items of an arena, under construction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArenaList {
    pub(crate) head: ArenaId,
    pub(crate) tail: ArenaId,
}

impl ArenaList {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };
}

impl SyntaxTree {
    pub(crate) fn node(&self, id: ArenaId) -> Option<&SyntaxNode> {
        self.nodes.get(id as usize)
    }

    pub(crate) fn word(&self, id: ArenaId) -> Option<&RawWord> {
        self.words.get(id as usize)
    }

    pub(crate) fn redirect(&self, id: ArenaId) -> Option<&Redirect> {
        self.redirects.get(id as usize)
    }

    pub(crate) fn expansion(&self, id: ArenaId) -> Option<&Expansion> {
        self.expansions.get(id as usize)
    }

    pub(crate) fn add_node(&mut self, kind: NodeKind, start: usize, end: usize) -> ArenaId {
        let id = to_u32(self.nodes.len());
        let (start, end) = (to_u32(start), to_u32(end));
        self.nodes.push(SyntaxNode {
            kind,
            start,
            end,
            redirects: NONE,
            link: NodeLink::Plain,
            next: NONE,
        });
        id
    }

    pub(crate) fn link_node(&mut self, chain: &mut ArenaList, id: ArenaId) {
        if let Some(tail) = self.nodes.get_mut(chain.tail as usize) {
            tail.next = id;
        } else {
            chain.head = id;
        }
        chain.tail = id;
    }

    pub(crate) fn link_word(&mut self, chain: &mut ArenaList, id: ArenaId) {
        if let Some(tail) = self.words.get_mut(chain.tail as usize) {
            tail.next = id;
        } else {
            chain.head = id;
        }
        chain.tail = id;
    }

    pub(crate) fn link_redirect(&mut self, chain: &mut ArenaList, redirect: Redirect) -> ArenaId {
        let id = to_u32(self.redirects.len());
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
        chain: &mut ArenaList,
        kind: ExpansionKind,
        at: usize,
    ) -> ArenaId {
        let id = to_u32(self.expansions.len());
        self.expansions.push(Expansion { kind, start: to_u32(at), end: to_u32(at), next: NONE });
        if let Some(tail) = self.expansions.get_mut(chain.tail as usize) {
            tail.next = id;
        } else {
            chain.head = id;
        }
        chain.tail = id;
        id
    }

    pub(crate) fn close_expansion(&mut self, id: ArenaId, kind: ExpansionKind, end: usize) {
        if let Some(expansion) = self.expansions.get_mut(id as usize) {
            expansion.kind = kind;
            expansion.end = to_u32(end);
        }
    }

    pub(crate) fn siblings(&self, first: ArenaId) -> impl Iterator<Item = (ArenaId, &SyntaxNode)> {
        let mut next = first;
        core::iter::from_fn(move || {
            let id = next;
            let node = self.node(id)?;
            next = node.next;
            Some((id, node))
        })
    }

    pub(crate) fn words_from(&self, first: ArenaId) -> impl Iterator<Item = &RawWord> {
        let mut next = first;
        core::iter::from_fn(move || {
            let word = self.word(next)?;
            next = word.next;
            Some(word)
        })
    }

    pub(crate) fn redirects_from(&self, first: ArenaId) -> impl Iterator<Item = &Redirect> {
        let mut next = first;
        core::iter::from_fn(move || {
            let redirect = self.redirect(next)?;
            next = redirect.next;
            Some(redirect)
        })
    }

    pub(crate) fn expansions_from(&self, first: ArenaId) -> impl Iterator<Item = &Expansion> {
        let mut next = first;
        core::iter::from_fn(move || {
            let expansion = self.expansion(next)?;
            next = expansion.next;
            Some(expansion)
        })
    }
}

/// A position or count as a `u32`. Texts are at most [`crate::LINE_BYTES_MAX`] long.
pub(crate) fn to_u32(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
