/**
 * Computes salted hashes of the rare words and the four-word phrases of erased texts, so that one can search later for
 * traces of a text that is no longer stored. If there are many hashes, only the lowest are stored: these are a random
 * sample, and the samples of two texts can be joined.
 */
import { hash } from 'node:crypto';
import { ERASURE_HASHES } from '../types.ts';
import { informativeness } from './english-words.ts';
import { stemOf } from './stem-finder.ts';
import { storedWords } from './words.ts';

/** Number of words in a phrase (see `phrasesOf`). */
const PHRASE = 4;
/**
 * Number of hexadecimal digits of a hash. In a file of a million words, about one erasure receipt in 250,000 has a
 * false match: some other word has one of the 1,024 hashes of the receipt.
 */
const DIGITS = 12;

/**
 * Lists the words of a text by which the text could be recognised (`isTelling`), each in its normalised form and as its
 * stem in the word index.
 */
export function tellingWords(text: string): Set<string> {
  const telling = new Set<string>();
  for (const word of storedWords(text)) {
    if (!isTelling(word)) continue;
    telling.add(word);
    telling.add(stemOf(word));
  }
  return telling;
}

/**
 * Tells whether a word could identify a text: it is not a common English word, and has at least four characters, three
 * digits in a row or two non-ASCII characters in a row.
 */
const isTelling = (word: string) =>
  (word.length >= 4 || /\d{3}/.test(word) || /[^\x00-\x7f]{2}/.test(word)) && informativeness(word) === 1;

/** Lists the phrases of a text: all sequences of four consecutive words, joined by blanks. */
export function phrasesOf(text: string): Set<string> {
  const all = storedWords(text);
  const phrases = new Set<string>();
  for (let at = 0; at + PHRASE <= all.length; at++) phrases.add(all.slice(at, at + PHRASE).join(' '));
  return phrases;
}

/**
 * Yields JSON with the escapes in its strings replaced by the characters that they stand for, so that words and phrases
 * are those of the texts: a line feed before `Anna` is stored as `\n`, and would make it the word `nanna`. If there
 * were any, it also yields the JSON as it is stored, which is how a file holds it.
 */
export function* readingsOfJson(json: string): Generator<string> {
  const text = json.replace(ESCAPES, (escape) => JSON.parse(`"${escape}"`) as string);
  yield text;
  if (text !== json) yield json;
}

/** Matches an escape in a string of JSON. */
const ESCAPES = /\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])/g;

/** Returns the first 12 hex digits of the SHA-256 hash over `salt` and `piece`. */
export function saltedHash(salt: string, piece: string): string {
  return hash('sha256', `${salt}\0${piece}`, 'hex').slice(0, DIGITS);
}

/** Salted hashes of the words and of the phrases of erased texts; of each kind at most the `ERASURE_HASHES` lowest. */
export interface ErasedHashes {
  readonly words: readonly string[];
  readonly phrases: readonly string[];
}

/**
 * Collects salted hashes of the telling words (`tellingWords`) and of the four-word phrases of several texts, for the
 * receipt of an erasure.
 */
export interface ErasedWords {
  add(text: string): void;
  hashes(): ErasedHashes;
}

/** Creates a collector that hashes with `salt` and returns the lowest 1,024 hashes of each kind. */
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

/** Joins the samples of hashes of two erasures, which must have one salt; of each kind the lowest hashes are kept. */
export function joinHashes(one: ErasedHashes, other: ErasedHashes): ErasedHashes {
  return {
    words: lowest(new Set([...one.words, ...other.words])),
    phrases: lowest(new Set([...one.phrases, ...other.phrases])),
  };
}

const lowest = (hashes: ReadonlySet<string>) => [...hashes].sort().slice(0, ERASURE_HASHES);
