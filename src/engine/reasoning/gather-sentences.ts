import { sentences } from '../text/sentences.ts';
import { STOP_WORDS } from '../text/stop-words.ts';
import { words } from '../text/words.ts';

/** Greatest length of a text that is gathered from several memories, in UTF-16 code units. */
export const MAX_GATHERED = 2_000;
/**
 * A text counts as a source only if the gathered text repeats at least this share (0..1) of its sentences, each
 * weighted by the rarity of its words.
 */
const LEAST_SAID = 0.8;
/**
 * Greatest number of sentences of a text that is gathered. The time grows with the square of the number of sentences,
 * and 1,500 bytes may hold 500 of them.
 */
const MAX_SENTENCES = 40;

/** A text to be merged with others, with the time when it was said. */
export interface GatheredText {
  readonly text: string;
  /** Time when the text was said, Unix ms. */
  readonly saidAt: number;
}

/** A text that was made from sentences of other texts. */
export interface GatheredSentences {
  readonly content: string;
  /** Indexes, ascending, of the texts whose sentences `content` repeats: at least two. */
  readonly sources: readonly number[];
}

/** A sentence of one of the texts: its text on one line, and its distinct words without stop words. */
interface Said {
  readonly text: string;
  readonly words: ReadonlySet<string>;
}

/**
 * Merges texts about one subject into one text of at most 2,000 code units. Of all sentences, it takes in turn the one
 * that adds the most new words, weighted by their rarity, and puts the taken ones in the order of the texts, one line
 * for each text. A sentence is left out if one taken sentence has all of its words; negations and numbers count as
 * words. If the texts are of several days, each line begins with its date. A text is left out whole if less than 80 %
 * of it would be repeated, or if it has more than 40 sentences.
 * @param texts in order of time, at most a dozen
 * @param rarityOf returns the weight of a word, above 0
 * @returns null if no two texts fit together into 2,000 code units
 */
export function gatherSentences(
  texts: readonly GatheredText[],
  rarityOf: (word: string) => number,
): GatheredSentences | null {
  const weightOf: WeightOf = (said) => [...said].reduce((sum, word) => sum + rarityOf(word), 0);
  const all = texts.map(({ text }) => sentencesOf(text));
  // What stands in the text of a memory that is no source would outlive that memory, so such a text is left out whole.
  const short = [...all.keys()].filter((source) => all[source]!.length <= MAX_SENTENCES);
  for (let sources = short; sources.length > 1;) {
    const taken = takeSentences(
      sources.flatMap((source) => all[source]!),
      weightOf,
      MAX_GATHERED - sources.length * DATE_LENGTH,
    );
    const enough = sources.filter((source) => isSaidEnough(all[source]!, taken, weightOf));
    if (enough.length === sources.length) return { content: contentOf(texts, { sources, all, taken }), sources };
    sources = enough;
  }
  return null;
}

type WeightOf = (said: Iterable<string>) => number;

function isSaidEnough(own: readonly Said[], taken: readonly Said[], weightOf: WeightOf): boolean {
  const weigh = (list: readonly Said[]) => list.reduce((sum, one) => sum + weightOf(one.words), 0);
  const total = weigh(own);
  return total > 0 && weigh(own.filter((one) => isRepeated(one, taken))) >= LEAST_SAID * total;
}

function isRepeated(one: Said, taken: readonly Said[]): boolean {
  return taken.some((other) => [...one.words].every((word) => other.words.has(word)));
}

function contentOf(
  texts: readonly GatheredText[],
  {
    sources,
    all,
    taken,
  }: { readonly sources: readonly number[]; readonly all: readonly Said[][]; readonly taken: readonly Said[] },
): string {
  const isOneDay = new Set(sources.map((source) => dayOf(texts[source]!.saidAt))).size === 1;
  const lines = sources.flatMap((source) => {
    const own = all[source]!.filter((one) => taken.includes(one)).map(({ text }) => text);
    return own.length === 0 ? [] : [`${isOneDay ? '' : `${dayOf(texts[source]!.saidAt)}: `}${own.join(' ')}`];
  });
  return lines.join('\n');
}

/** Number of characters that are kept free for the date before each line, with its separator and the line feed. */
const DATE_LENGTH = '2026-01-31: \n'.length;

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/**
 * Returns the distinct words of a text, in lower case, without stop words. `not` counts as a word, also that of
 * `isn't`, which `words` would split into two stop words.
 */
export function tellingWords(text: string): Set<string> {
  return new Set(words(withNot(text)).filter((word) => !STOP_WORDS.has(word)));
}

/** Writes out the negation in words such as `isn't`, of which `words` makes two stop words. */
function withNot(text: string): string {
  return text
    .replace(/(?<!\p{L})can['’]t(?!\p{L})/giu, 'can not')
    .replace(/(?<!\p{L})won['’]t(?!\p{L})/giu, 'will not')
    .replace(/n['’]t(?!\p{L})/giu, ' not');
}

function sentencesOf(text: string): Said[] {
  return sentences(text).flatMap((sentence) => {
    const line = sentence.text.replace(/\s+/g, ' ').trim();
    const own = tellingWords(line);
    return own.size === 0 ? [] : [{ text: line, words: own }];
  });
}

/**
 * Selects sentences greedily: always the one whose words that no taken sentence has weigh most. It ends when no
 * sentence is left that fits and is not repeated by a taken one.
 * @param room greatest number of UTF-16 code units of the selected sentences together, with a line feed for each
 */
function takeSentences(all: readonly Said[], weightOf: WeightOf, room: number): Said[] {
  const taken: Said[] = [];
  const covered = new Set<string>();
  let left = [...all];
  let characters = room;
  for (;;) {
    left = left.filter((one) => one.text.length < characters && !isRepeated(one, taken.slice(-1)));
    if (left.length === 0) return taken;
    const gains = new Map(left.map((one) => [one, weightOf([...one.words].filter((word) => !covered.has(word)))]));
    const best = left.reduce((one, other) => (gains.get(other)! > gains.get(one)! ? other : one));
    taken.push(best);
    for (const word of best.words) covered.add(word);
    characters -= best.text.length + 1;
  }
}
