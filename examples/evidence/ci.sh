#!/bin/sh
# A step of a build: passes only if the commit at hand comes with evidence that a guarded session
# has achieved its objective, signed by a key that the repository knows.
#
#     ci.sh [COMMIT]
#
# The evidence comes as notes, which have to be fetched first:
#
#     git fetch origin 'refs/notes/*:refs/notes/*'
#
# JACKLINE_PUBLIC_KEY names the key, keys/jackline.pub unless told. Take it from a branch that
# whoever pushes can't write to: a key that comes with the commit proves nothing.
set -eu

jackline=${JACKLINE:-jackline}
key=${JACKLINE_PUBLIC_KEY:-keys/jackline.pub}
commit=$(git rev-parse --verify "${1:-HEAD}^{commit}")
evidence=$(mktemp -d)
trap 'rm -rf "$evidence"' EXIT

for note in jackline jackline-session; do
    if ! git notes "--ref=$note" show "$commit" > "$evidence/$note.json" 2> /dev/null; then
        echo "no evidence for $commit: it has no note in refs/notes/$note" >&2
        exit 1
    fi
done
# The machine that worked is not this one, so the session is the one in the note.
"$jackline" verify --attestation "$evidence/jackline.json" --public-key "$key" \
    --commit "$commit" --done "$evidence/jackline-session.json"
"$jackline" replay "$evidence/jackline-session.json"
