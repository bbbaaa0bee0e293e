/** Shows texts of memories. They are untrusted, so they are rendered as text only, never as markup. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { count } from './format.ts';
import { texts } from '../texts.ts';

/** Number of characters of a long text that are shown at first. */
const FIRST_CHARACTERS = 4_000;
/**
 * Characters that reorder the text around them, with their names. The name is shown instead of the character, which
 * could make a text read as another.
 */
const CONTROLS: Readonly<Record<string, string>> = {
  '\u202a': 'LRE',
  '\u202b': 'RLE',
  '\u202c': 'PDF',
  '\u202d': 'LRO',
  '\u202e': 'RLO',
  '\u2066': 'LRI',
  '\u2067': 'RLI',
  '\u2068': 'FSI',
  '\u2069': 'PDI',
};
const CONTROL = /([\u202a-\u202e\u2066-\u2069])/;
const WORD = /[\p{L}\p{N}]+/gu;

interface WordsProps {
  readonly children: string;
  /** Terms of a question, as the word index holds them. Words that begin like one of them are highlighted. */
  readonly terms?: readonly string[] | undefined;
  /** Whether only the first lines are shown until the reader asks for the rest; false by default. */
  readonly isCut?: boolean;
}

/**
 * Shows the text of a memory: its first 4,000 characters, or its first lines with `isCut`, and a button for the rest.
 * Words that begin like one of `terms` are highlighted.
 */
export function Words({ children: text, terms = [], isCut = false }: WordsProps) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? text : text.slice(0, FIRST_CHARACTERS);
  return (
    <>
      <div class={`text ${isCut && !isWhole ? 'text-cut' : ''}`} dir="auto">
        {highlighted(shown, terms)}
      </div>
      {(shown.length < text.length || (isCut && !isWhole && text.length > 400)) && (
        <div>
          <button class="button button-plain button-small" onClick={() => setWhole(true)}>
            {texts.showAll(count(text.length))}
          </button>
        </div>
      )}
    </>
  );
}

/** Shows the first 300 characters of a text as one line, with each run of blanks and line breaks as one space. */
export function Line({ children: text }: { children: string }) {
  return <bdi>{visible(text.slice(0, 300).replace(/\s+/g, ' '))}</bdi>;
}

function highlighted(text: string, terms: readonly string[]): ComponentChildren {
  if (terms.length === 0) return visible(text);
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!isTermOf(folded(word), terms)) continue;
    parts.push(visible(text.slice(from, index)), <mark key={index}>{word}</mark>);
    from = index + word.length;
  }
  return [...parts, visible(text.slice(from))];
}

/** Replaces the characters of `CONTROLS` by their names. */
function visible(text: string): ComponentChildren {
  if (!CONTROL.test(text)) return text;
  return text.split(CONTROL).map((part, at) =>
    at % 2 === 0 ? (
      part
    ) : (
      <span key={at} class="control">
        {CONTROLS[part]}
      </span>
    ),
  );
}

function folded(word: string): string {
  return word.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
}

/**
 * Tells whether a word matches one of the stems in `terms`: it equals the stem, or it begins with the stem without its
 * last letter, if the stem has more than three letters (`happi` matches `happy`).
 * @param word the word in lower case, without accents
 */
function isTermOf(word: string, terms: readonly string[]): boolean {
  return terms.some((term) =>
    folded(term)
      .split(/[^\p{L}\p{N}]+/u)
      .some((stem) => stem === word || (stem.length > 3 && word.startsWith(stem.slice(0, -1)))),
  );
}
