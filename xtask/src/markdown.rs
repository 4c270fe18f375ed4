//! The parts of Markdown that our checks need: prose, links, headings, sentences.

use std::collections::{BTreeMap, BTreeSet};

/// The lines outside of code blocks and comments, with their numbers from one.
pub(crate) fn prose_lines(text: &str) -> Vec<(usize, &str)> {
    let (mut fence, mut is_comment) = (None, false);
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        match fence {
            Some(open) if trimmed.starts_with(open) => fence = None,
            Some(_) => {}
            None if trimmed.starts_with("```") => fence = Some("```"),
            None => {
                is_comment |= trimmed.starts_with("<!--");
                if !is_comment {
                    lines.push((number + 1, line));
                }
                is_comment &= !line.contains("-->");
            }
        }
    }
    lines
}

/// The targets of the links and pictures in a line, code spans aside.
pub(crate) fn links(line: &str) -> Vec<String> {
    let plain: String =
        line.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "" }).collect();
    let targets = plain.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// The anchors of the headings, and those set by hand with `<a id="…">`.
pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for (_, line) in prose_lines(text) {
        for id in line.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            anchors.insert(id.to_owned());
        }
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let slug: String = heading
            .trim()
            .to_lowercase()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            })
            .collect();
        let count = seen.entry(slug.clone()).or_default();
        anchors.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    anchors
}

/// How many words each sentence has. Headings, tables and code blocks are no sentences; an item of
/// a list is one, or several.
pub(crate) fn sentence_lengths(text: &str) -> Vec<usize> {
    let mut paragraphs: Vec<String> = vec![String::new()];
    let mut last = 0;
    for (number, line) in prose_lines(text) {
        let line = line.trim();
        let is_item = line.starts_with("- ") || line.starts_with("* ") || is_numbered(line);
        let is_sentence =
            !line.starts_with('#') && !line.starts_with('|') && !line.starts_with("![");
        if line.is_empty() || is_item || !is_sentence || number != last + 1 {
            paragraphs.push(String::new());
        }
        if let Some(paragraph) = paragraphs.last_mut()
            && is_sentence
        {
            paragraph.push_str(line.trim_start_matches(['-', '*', '>', ' ']));
            paragraph.push(' ');
        }
        last = number;
    }
    let sentences = paragraphs.iter().flat_map(|paragraph| sentences(paragraph));
    sentences.map(|sentence| words(&sentence)).filter(|words| *words > 0).collect()
}

fn is_numbered(line: &str) -> bool {
    line.split_once(". ")
        .is_some_and(|(number, _)| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// A sentence ends with `.`, `!`, `?` or `:` before a blank.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let mut is_code = false;
    for word in paragraph.split_whitespace() {
        is_code ^= word.matches('`').count() % 2 == 1;
        if let Some(sentence) = sentences.last_mut() {
            sentence.push_str(word);
            sentence.push(' ');
        }
        let word = word.trim_end_matches([')', '*', '`', '"']);
        if !is_code && word.ends_with(['.', '!', '?', ':']) && !word.ends_with("e.g.") {
            sentences.push(String::new());
        }
    }
    sentences
}

/// A code span counts as one word.
fn words(sentence: &str) -> usize {
    let parts = sentence.split('`').enumerate();
    let plain: String = parts.map(|(at, part)| if at % 2 == 0 { part } else { "code" }).collect();
    plain.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

#[test]
fn sentences_are_counted_without_tables_and_code() {
    let text = "# A heading here\n\nOne two `three four` five. Six\nseven.\n\n| a | b |\n\n```text\nnot this\n```\n- an item\n- another item: with a part\n";
    assert_eq!(sentence_lengths(text), [4, 2, 2, 2, 3]);
}

#[test]
fn anchors_are_those_of_the_headings() {
    let anchors = anchors("# What `a.b` does!\n## Same\n## Same\n");
    assert_eq!(anchors.into_iter().collect::<Vec<_>>(), ["same", "same-1", "what-ab-does"]);
}

#[test]
fn links_in_code_are_no_links() {
    assert_eq!(links("see [a](b.md#c) and `[x](y)`"), ["b.md#c"]);
}
