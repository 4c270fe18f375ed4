//! Compares the streaming check with full validation, on random schemas and documents:
//! it must never be wrong and never be late.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

#[path = "streaming/completion.rs"]
mod completion;
#[path = "streaming/cut.rs"]
mod cut;
#[path = "streaming/random.rs"]
mod random;
#[path = "streaming/strict.rs"]
mod strict;

use completion::CompletionSearch;
use jackline_decode::stream::{Refusal, StreamCheck, StreamSchema};
use proptest::prelude::*;
use random::{KeywordSet, RandomSource};
use serde_json::{Map, Value};
use strict::StrictValue;

fn check_chunks(schema: &StreamSchema, chunks: &[&[u8]]) -> Result<(), Refusal> {
    let mut stream = StreamCheck::new(schema);
    chunks.iter().try_for_each(|chunk| stream.feed(chunk))?;
    stream.finish()
}

/// Splits the document into pieces of random length.
fn chunks<'b>(random: &mut RandomSource, mut bytes: &'b [u8]) -> Vec<&'b [u8]> {
    let mut chunks = Vec::new();
    while !bytes.is_empty() {
        let (chunk, rest) = bytes.split_at(random.below(bytes.len().min(5)) + 1);
        chunks.push(chunk);
        bytes = rest;
    }
    chunks
}

fn assert_agreement(
    random: &mut RandomSource,
    schema: &Value,
    stream: &StreamSchema,
    bytes: &[u8],
) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let valid =
        serde_json::from_slice(bytes).is_ok_and(|StrictValue(value)| validator.is_valid(&value));
    let whole = check_chunks(stream, &[bytes]);
    let shown = String::from_utf8_lossy(bytes);
    assert_eq!(whole.is_ok(), valid, "{schema}\n{shown}\n{whole:?}");
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(check_chunks(stream, &single), whole, "{schema}\n{shown}");
    assert_eq!(check_chunks(stream, &chunks(random, bytes)), whole, "{schema}\n{shown}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_document_passes_if_and_only_if_it_is_valid(seed in any::<u64>()) {
        let random = &mut RandomSource(seed);
        let witness = random.value(3);
        let schema = random.document_schema(&witness, KeywordSet::All);
        let stream = StreamSchema::compile(&schema).unwrap();
        let text = random.written(&witness);
        assert_agreement(random, &schema, &stream, text.as_bytes());
        let other = random.value(3);
        let other = random.written(&other);
        assert_agreement(random, &schema, &stream, other.as_bytes());
        for _ in 0..8 {
            let damaged = random.damage(&text, KeywordSet::All);
            assert_agreement(random, &schema, &stream, &damaged);
        }
    }

    #[test]
    fn every_prefix_that_passes_can_be_completed(seed in any::<u64>()) {
        assert_completable(seed);
    }

    #[test]
    fn no_schema_and_no_document_causes_a_panic(seed in any::<u64>(), bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let random = &mut RandomSource(seed);
        let schema = random_schema_like(random, 4);
        if let Ok(schema) = StreamSchema::compile(&schema) {
            let _ = check_chunks(&schema, &[&bytes]);
            let value = random.value(4);
            let written = random.written(&value);
            let _ = check_chunks(&schema, &[written.as_bytes()]);
        }
    }
}

/// Asserts that every prefix that passes the check can become a valid document.
fn assert_completable(seed: u64) {
    let random = &mut RandomSource(seed);
    let witness = random.value(3);
    let schema = random.document_schema(&witness, KeywordSet::ExactOnly);
    let stream = StreamSchema::compile(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let text = random.written(&witness);
    let other = random.value(3);
    for text in [&text, &random.written(&other)] {
        let document = random.damage(text, KeywordSet::ExactOnly);
        // If the longest prefix can be completed, so can every shorter one.
        let mut passed = StreamCheck::new(&stream);
        let length = match passed.feed(&document) {
            Ok(()) => document.len(),
            Err(refusal) => usize::try_from(refusal.position).unwrap(),
        };
        let prefix = &document[..length];
        let mut passed = StreamCheck::new(&stream);
        passed.feed(prefix).unwrap();
        let found = (0..=4).find_map(|longer| {
            CompletionSearch { validator: &validator, budget: 200_000 }
                .find(&passed, prefix, 80, longer)
        });
        assert!(found.is_some(), "{schema}\n{}", String::from_utf8_lossy(prefix));
    }
}

#[test]
fn the_completion_finds_a_key_that_starts_with_an_escape() {
    assert_completable(12_931_915_150_812_442_585);
}

/// A random value that uses keywords of schemas.
fn random_schema_like(random: &mut RandomSource, depth: usize) -> Value {
    const KEYWORDS: [&str; 24] = [
        "type",
        "enum",
        "const",
        "properties",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "required",
        "minProperties",
        "maxProperties",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "multipleOf",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "$id",
    ];
    if depth == 0 || random.one_in(5) {
        let word =
            random.of(&["object", "string", "integer", "#", "#/anyOf/0", "#/items", "^a", "("]);
        return if random.one_in(3) { Value::from(word) } else { random.value(1) };
    }
    match random.below(6) {
        0 => (0..random.below(3)).map(|_| random_schema_like(random, depth - 1)).collect(),
        1 => Value::from(random.next()),
        _ => {
            let mut map = Map::new();
            for _ in 0..random.below(4) {
                map.insert(random.of(&KEYWORDS).to_owned(), random_schema_like(random, depth - 1));
            }
            Value::Object(map)
        }
    }
}
