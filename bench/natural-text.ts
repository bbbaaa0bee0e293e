/**
 * Generates text with the word frequencies of real language: a second-order word chain, in which some words are
 * replaced by invented rare ones whose frequencies follow Zipf's law. The chain is learned from natural-text.txt, prose
 * of this project's documents that is kept as it is, so that figures of different versions can be compared. Equal seeds
 * give equal texts.
 */
import fs from 'node:fs';
import path from 'node:path';
import { createRandom } from '../src/engine/random.ts';

export function createTextSource(seed: number): { sentence(): string; text(characters: number): string } {
  const random = createRandom(seed);
  const { starts, next } = learnChain();
  const sentence = () => {
    let [first, second] = pick(starts, random);
    const words = [first, second];
    while (words.length < 40) {
      const follows = next.get(`${first} ${second}`);
      if (follows === undefined) break;
      const word = pick(follows, random);
      words.push(random() < 0.18 ? rareWord(random) : word);
      if (/[.!?]$/.test(word)) break;
      [first, second] = [second, word];
    }
    return words.join(' ');
  };
  return {
    sentence,
    text(characters) {
      let text = sentence();
      while (text.length < characters) text += ` ${sentence()}`;
      return text;
    },
  };
}

const SYLLABLES = 'ka lo mi ren ta vor su nel pi dra go thu be cas fin wel ho jun zar qui ost mar led ny'.split(' ');
const RARE_WORDS = 30_000;

/** Makes an invented word; their frequencies follow Zipf's law. */
export function rareWord(random: () => number): string {
  // Inverse of a Zipf distribution with exponent 1: rank = N^u.
  const rank = Math.floor(RARE_WORDS ** random());
  let word = '';
  for (let rest = rank + 7; rest > 0; rest = Math.floor(rest / SYLLABLES.length))
    word += SYLLABLES[rest % SYLLABLES.length];
  return word;
}

function learnChain() {
  const words = fs
    .readFileSync(path.join(import.meta.dirname, 'natural-text.txt'), 'utf8')
    .split(/\s+/)
    .filter(Boolean);
  const starts: [string, string][] = [];
  const next = new Map<string, string[]>();
  for (let at = 0; at + 2 < words.length; at++) {
    const [first, second, third] = words.slice(at, at + 3) as [string, string, string];
    const key = `${first} ${second}`;
    const follows = next.get(key);
    if (follows) follows.push(third);
    else next.set(key, [third]);
    if (/^[A-Z]/.test(first)) starts.push([first, second]);
  }
  return { starts, next };
}

function pick<T>(list: readonly T[], random: () => number): T {
  return list[Math.floor(random() * list.length)] as T;
}
