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
 * Scores of the answer to one item of an evaluation set. `precision` is the share (0..1) of hits that contain an
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
  const texts = hits.map(({ id, title, content }) => ({ id, folded: folded(`${title}\n${content}`) }));
  const finders = new Map([...expected, ...forbidden].map((entry) => [entry, finderOf(entry)]));
  const isFound = (entry: string) => texts.some(finders.get(entry)!);
  const good = texts.filter((text) => expected.some((entry) => finders.get(entry)!(text)));
  return {
    item,
    place,
    hits: hits.map(({ id }) => id),
    missing: expected.filter((entry) => !isFound(entry)),
    forbidden: forbidden.filter(isFound),
    ms,
    precision: hits.length === 0 ? null : good.length / hits.length,
  };
}

/**
 * Averages the scores of one run of an evaluation set. `recall` is the mean, over the items that expect something, of
 * the share of expected entries that were found; `precision` is the mean over those of these items that have hits;
 * `rightlyEmpty` is the share of the items that expect nothing which got no hits. Each is 0..1, and null if there are
 * no such items. `forbidden` counts the items with a forbidden hit; `p95Ms` is 0 for a run without items.
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
 * Makes the test whether a hit contains an entry: the memory with this id, or the words of the entry, next to each
 * other and in order, in title and text.
 */
function finderOf(entry: string): (text: { readonly id: string; readonly folded: string }) => boolean {
  if (UUID.test(entry)) {
    const id = entry.toLowerCase();
    return (text) => text.id === id;
  }
  const wanted = folded(entry);
  return (text) => text.folded.includes(wanted);
}

function folded(text: string): string {
  return ` ${words(text).join(' ')} `;
}

function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}
