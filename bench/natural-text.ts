import fs from 'node:fs';
import path from 'node:path';
import { createRandom } from '../src/engine/random.ts';

/**
 * Text with the skew of real language, without a corpus: a second-order word chain learned from the project's own documents, in which
 * some words are replaced by invented rare ones whose frequencies follow Zipf's law. Same seed, same text.
 */
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

function rareWord(random: () => number): string {
  // Inverse of a Zipf distribution with exponent 1: rank = N^u.
  const rank = Math.floor(RARE_WORDS ** random());
  let word = '';
  for (let rest = rank + 7; rest > 0; rest = Math.floor(rest / SYLLABLES.length))
    word += SYLLABLES[rest % SYLLABLES.length];
  return word;
}

function learnChain() {
  const root = path.join(import.meta.dirname, '..');
  const documents = ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'LICENSE', ...list(path.join(root, 'docs'))];
  const words = documents
    .filter((file) => fs.existsSync(path.resolve(root, file)))
    .flatMap((file) =>
      proseOf(fs.readFileSync(path.resolve(root, file), 'utf8'))
        .replace(/[`*|#>\-=_]+/g, ' ')
        .split(/\s+/),
    )
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

/** Without listings, tables, code and the targets of links, which nobody says. */
function proseOf(markdown: string): string {
  return markdown
    .replace(/^```[\s\S]*?^```/gm, ' ')
    .replace(/^\|.*$/gm, ' ')
    .replace(/`[^`]*`/g, ' ')
    .replace(/\]\([^)]*\)/g, ' ');
}

function list(folder: string): string[] {
  return fs.existsSync(folder)
    ? fs
        .readdirSync(folder)
        .filter((name) => name.endsWith('.md'))
        .map((name) => path.join(folder, name))
    : [];
}

function pick<T>(list: readonly T[], random: () => number): T {
  return list[Math.floor(random() * list.length)] as T;
}
