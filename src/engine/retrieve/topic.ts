import type { TextReader } from '../store/own-texts.ts';
import { stemOf } from '../text/stem-finder.ts';
import { STOP_WORDS } from '../text/stop-words.ts';
import { isAscii, isCjk, words } from '../text/words.ts';
import { adjust, byRawScore, type Candidate } from './candidate.ts';

/** Number of best candidates whose texts say what the question is about. */
const EXAMPLES = 10;
/** Number of candidates that are reordered: the first ones. */
const MAX_REORDERED = 24;
/** The part of each text that is read, in characters. */
const MAX_CHARACTERS = 1_500;
/** Words of the examples, by weight, of which the rarity is looked up, and of these, words that are kept. */
const LOOKED_UP = 60;
const KEPT = 20;
/** Greatest share of the topic in a raw score. */
const MAX_SHARE = 0.4;
/**
 * Mean length of the examples, in words, up to which the topic has no share, and from which it has all. The words of
 * short texts are about the turn of a conversation and not about its topic.
 */
const SHORT = 60;
const LONG = 120;
/** The parameters of BM25. */
const K1 = 1.2;
const B = 0.75;

/** A text of a candidate: how often it has each stem. */
interface Counted {
  readonly counts: ReadonlyMap<string, number>;
  /** Number of words, about. */
  readonly length: number;
}

/**
 * Reorders the first candidates by what the best long texts are about: a relevance model (Lavrenko and Croft,
 * "Relevance-Based Language Models", SIGIR 2001; mixed with the query's own scores as RM3). The words of the first ten
 * texts, by their scores and rarity, are the topic, and texts that hold more of it gain. Only candidates that are read
 * change places, and among themselves only: the others keep both place and score. Short texts change nothing.
 * @param candidates best first
 * @param raritiesOf gives the rarity of each word, above 0, in the order given
 * @returns best first, by raw score
 */
export function applyTopic(
  candidates: readonly Candidate[],
  texts: TextReader,
  raritiesOf: (words: readonly string[]) => readonly number[],
): Candidate[] {
  const first = candidates.slice(0, MAX_REORDERED);
  const read = texts(
    first.map(({ row }) => row.memoryNo),
    MAX_CHARACTERS,
  );
  const textOf = ({ row }: Candidate) => read.get(row.memoryNo)?.content ?? '';
  const examples = first.slice(0, EXAMPLES);
  const most = examples.reduce((sum, candidate) => sum + mostWords(textOf(candidate)), 0);
  if (first.length < 2 || most < SHORT * examples.length) return [...candidates];
  const own = examples.map((candidate) => countWords(textOf(candidate)));
  const meanOf = (list: readonly Counted[]) => list.reduce((sum, { length }) => sum + length, 0) / list.length;
  const share = MAX_SHARE * Math.min(1, Math.max(0, (meanOf(own) - SHORT) / (LONG - SHORT)));
  if (share === 0) return [...candidates];
  const counted = [...own, ...first.slice(EXAMPLES).map((candidate) => countWords(textOf(candidate)))];
  const topic = topicOf(examples, counted, raritiesOf);
  const mean = meanOf(counted);
  const fits = counted.map((text) => fitOf(text, topic, mean));
  const best = Math.max(Number.MIN_VALUE, ...fits);
  return [...moveWithin(first, share, (place) => fits[place]! / best), ...candidates.slice(first.length)];
}

/** Words for each piece between blanks: `don't` and `well-known` are two. */
const MORE_WORDS = 1.3;
/** Share of a word that a piece of CJK counts: a word has two characters, which give four pieces with their pairs. */
const CJK_PIECE = 0.25;

/** More words than a text has, about: it spares chats the splitting into words. */
function mostWords(text: string): number {
  if (!isAscii(text)) return text.length / 2;
  let blanks = 1;
  for (let at = text.indexOf(' '); at !== -1; at = text.indexOf(' ', at + 1)) blanks += 1;
  return MORE_WORDS * blanks;
}

function countWords(text: string): Counted {
  const counts = new Map<string, number>();
  let length = 0;
  for (const word of words(text)) {
    length += isCjk(word) ? CJK_PIECE : 1;
    if (STOP_WORDS.has(word)) continue;
    const stem = stemOf(word);
    counts.set(stem, (counts.get(stem) ?? 0) + 1);
  }
  return { counts, length };
}

/** The stems of the topic with their weights. */
function topicOf(
  examples: readonly Candidate[],
  counted: readonly Counted[],
  raritiesOf: (words: readonly string[]) => readonly number[],
): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const [place, { rawScore }] of examples.entries()) {
    const { counts, length } = counted[place]!;
    for (const [stem, count] of counts) weights.set(stem, (weights.get(stem) ?? 0) + (rawScore * count) / length);
  }
  const heaviest = (list: Iterable<readonly [string, number]>, most: number) =>
    [...list].sort(([one, a], [other, b]) => b - a || (one < other ? -1 : 1)).slice(0, most);
  const lookedUp = heaviest(weights, LOOKED_UP);
  const rarities = raritiesOf(lookedUp.map(([stem]) => stem));
  return new Map(
    heaviest(
      lookedUp.map(([stem, weight], place) => [stem, weight * rarities[place]!]),
      KEPT,
    ),
  );
}

/** BM25 over the weighed words of the topic. */
function fitOf({ counts, length }: Counted, topic: ReadonlyMap<string, number>, mean: number): number {
  let fit = 0;
  for (const [stem, weight] of topic) {
    const count = counts.get(stem) ?? 0;
    if (count > 0) fit += (weight * count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / mean));
  }
  return fit;
}

/** Orders candidates by score and topic. The raw scores stay at their places, and the candidates move under them. */
function moveWithin(first: readonly Candidate[], share: number, fitOf: (place: number) => number): Candidate[] {
  const best = first[0]!.rawScore;
  const mixed = first.map((candidate, place) => ({
    candidate,
    value: (1 - share) * candidate.rawScore + share * best * fitOf(place),
  }));
  return mixed
    .sort((a, b) => b.value - a.value || byRawScore(a.candidate, b.candidate))
    .map(({ candidate }, place) => {
      const { rawScore } = first[place]!;
      if (candidate === first[place] || candidate.rawScore <= 0) return candidate;
      return { ...adjust(candidate, { by: 'rerank', factor: rawScore / candidate.rawScore }), rawScore };
    });
}
