/**
 * What is remembered of an erased text, so that it can be looked for without being kept: salted hashes of its telling
 * words and of its phrases. The lowest hashes of many are a fair sample of them, and samples can be joined.
 */
import { hash } from 'node:crypto';
import { ERASURE_HASHES } from '../types.ts';
import { informativeness } from './english-words.ts';
import { stemOf } from './stem-finder.ts';
import { words } from './words.ts';

/** Words of a phrase. */
const PHRASE = 4;
/** Hex digits of a hash: among a million words of a file, one is taken for another once in a quarter of a million. */
const DIGITS = 12;

/** Lists the words of a text that say something by themselves, as written and as the word index has them. */
export function tellingWords(text: string): Set<string> {
  const telling = new Set<string>();
  for (const word of words(text)) {
    if (!isTelling(word)) continue;
    telling.add(word);
    telling.add(stemOf(word));
  }
  return telling;
}

/** Whether a word says something by itself: no common English word, and not too short. */
const isTelling = (word: string) =>
  (word.length >= 4 || /\d{3}/.test(word) || /[^\x00-\x7f]{2}/.test(word)) && informativeness(word) === 1;

/** Lists the phrases of a text: each four words in a row, joined by blanks. */
export function phrasesOf(text: string): Set<string> {
  const all = words(text);
  const phrases = new Set<string>();
  for (let at = 0; at + PHRASE <= all.length; at++) phrases.add(all.slice(at, at + PHRASE).join(' '));
  return phrases;
}

export function saltedHash(salt: string, piece: string): string {
  return hash('sha256', `${salt}\0${piece}`, 'hex').slice(0, DIGITS);
}

/** Hashes of pieces of text, the lowest `ERASURE_HASHES` of each kind. */
export interface ErasedHashes {
  readonly words: readonly string[];
  readonly phrases: readonly string[];
}

/** Gathers what is remembered of texts. */
export interface ErasedWords {
  add(text: string): void;
  hashes(): ErasedHashes;
}

export function gatherErasedWords(salt: string): ErasedWords {
  const found = { words: new Set<string>(), phrases: new Set<string>() };
  const note = (into: Set<string>, pieces: Iterable<string>) => {
    for (const piece of pieces) into.add(saltedHash(salt, piece));
  };
  return {
    add(text) {
      note(found.words, tellingWords(text));
      note(found.phrases, phrasesOf(text));
      for (const kind of ['words', 'phrases'] as const)
        if (found[kind].size > 8 * ERASURE_HASHES) found[kind] = new Set(lowest(found[kind]));
    },
    hashes: () => ({ words: lowest(found.words), phrases: lowest(found.phrases) }),
  };
}

/** Joins two samples. */
export function joinHashes(one: ErasedHashes, other: ErasedHashes): ErasedHashes {
  return {
    words: lowest(new Set([...one.words, ...other.words])),
    phrases: lowest(new Set([...one.phrases, ...other.phrases])),
  };
}

const lowest = (hashes: ReadonlySet<string>) => [...hashes].sort().slice(0, ERASURE_HASHES);
