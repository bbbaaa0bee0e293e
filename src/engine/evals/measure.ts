/** Scores of an answer, by what its query expects. Pure functions. */
import { words } from '../text/words.ts';
import type { EvalItem, EvalOutcome, EvalScores } from '../types.ts';

/** A hit of an answer, with the fields by which it is judged: the public id of the memory, its title and its text. */
export interface JudgedHit {
  readonly id: string;
  readonly title: string;
  readonly content: string;
}

/**
 * Scores of the answer to one item of an evaluation set. `precision` is the share (0..1) of hits that contain or are an
 * expected entry: 0 for hits of an item that expects nothing, null if there are no hits.
 */
export interface Judged extends EvalOutcome {
  readonly item: Pick<EvalItem, 'expected'>;
  readonly precision: number | null;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * Judges the hits of one item: which expected entries are missing, which forbidden ones were found.
 * @param place index of the item in its set
 * @param ms duration of the query
 */
export function judge(item: EvalItem, place: number, hits: readonly JudgedHit[], ms: number): Judged {
  const { expected, forbidden = [] } = item;
  const finders = new Map([...expected, ...forbidden].map((entry) => [entry, finderOf(entry)]));
  const found = new Set<string>();
  let good = 0;
  for (const { id, title, content } of hits) {
    const text = { id, words: words(`${title}\n${content}`) };
    const here = [...finders].flatMap(([entry, isIn]) => (isIn(text) ? [entry] : []));
    for (const entry of here) found.add(entry);
    if (here.some((entry) => expected.includes(entry))) good += 1;
  }
  return {
    item,
    place,
    hits: hits.map(({ id }) => id),
    missing: expected.filter((entry) => !found.has(entry)),
    forbidden: forbidden.filter((entry) => found.has(entry)),
    ms,
    precision: hits.length === 0 ? null : good / hits.length,
  };
}

/**
 * Averages the scores of one run of an evaluation set. `recall` is the mean, over the items that expect something, of
 * the share of expected entries that were found; `precision` is the mean of `Judged.precision` over the items that
 * expect something and have hits; `rightlyEmpty` is the share of items without hits among the items that expect
 * nothing. Each of these scores is 0..1, and null if there are no items to average. `forbidden` counts the items with a
 * forbidden hit; `p95Ms` is 0 for a run without items.
 */
export function scoresOf(judged: readonly Judged[]): EvalScores {
  const asking = judged.filter(({ item }) => item.expected.length > 0);
  const empty = judged.filter(({ item }) => item.expected.length === 0);
  const times = judged.map(({ ms }) => ms).sort((a, b) => a - b);
  return {
    recall: mean(asking.map(({ item, missing }) => 1 - missing.length / item.expected.length)),
    precision: mean(asking.flatMap(({ precision }) => precision ?? [])),
    rightlyEmpty: mean(empty.map(({ hits }) => Number(hits.length === 0))),
    forbidden: judged.filter(({ forbidden }) => forbidden.length > 0).length,
    p95Ms: times[Math.ceil(0.95 * times.length) - 1] ?? 0,
    items: judged.length,
  };
}

/**
 * Makes the function that tells whether a hit contains an entry: if the entry is a UUID, whether the memory has this
 * id; else whether its title and text contain the words of the entry, next to each other and in order. An entry without
 * words is in no hit.
 */
function finderOf(entry: string): (text: { readonly id: string; readonly words: readonly string[] }) => boolean {
  if (UUID.test(entry)) {
    const id = entry.toLowerCase();
    return (text) => text.id === id;
  }
  const wanted = words(entry);
  if (wanted.length === 0) return () => false;
  const back = fallbacksOf(wanted);
  return (text) => holdsInOrder(text.words, wanted, back);
}

/**
 * Tells whether a list contains all words of another one next to each other and in order (Knuth, Morris and Pratt,
 * "Fast Pattern Matching in Strings", 1977): no text, however repetitive, takes more than two looks at each of its
 * words.
 * @param wanted at least one word
 * @param back `fallbacksOf(wanted)`
 */
function holdsInOrder(list: readonly string[], wanted: readonly string[], back: readonly number[]): boolean {
  let matched = 0;
  for (const word of list) {
    while (matched > 0 && word !== wanted[matched]) matched = back[matched - 1]!;
    if (word === wanted[matched]) matched += 1;
    if (matched === wanted.length) return true;
  }
  return false;
}

/**
 * Returns for each beginning of a list of words the length of its longest proper end that is also a beginning of the
 * list: that many words still match when the next word does not.
 */
function fallbacksOf(wanted: readonly string[]): number[] {
  const back = [0];
  for (let at = 1, matched = 0; at < wanted.length; at += 1) {
    while (matched > 0 && wanted[at] !== wanted[matched]) matched = back[matched - 1]!;
    if (wanted[at] === wanted[matched]) matched += 1;
    back.push(matched);
  }
  return back;
}

function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}
