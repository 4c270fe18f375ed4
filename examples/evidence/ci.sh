#!/bin/sh
# A build step. It passes only if the commit has evidence that a guarded session achieved its
# objective, signed with a key that the repository trusts.
#
#     ci.sh [COMMIT]
#
# The evidence is in git notes. Fetch them first:
#
#     git fetch origin 'refs/notes/*:refs/notes/*'
#
# JACKLINE_PUBLIC_KEY is the path of the key, by default keys/jackline.pub. Take the key from a
# branch to which the author of the push can't write: a key in the same commit proves nothing.
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
# The session ran on another machine, so its records are in the note.
"$jackline" verify --attestation "$evidence/jackline.json" --public-key "$key" \
    --commit "$commit" --done "$evidence/jackline-session.json"
"$jackline" replay "$evidence/jackline-session.json"
