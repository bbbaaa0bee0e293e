import type { TextReader } from '../store/own-texts.ts';
import { type LatentSpace, latentVectorOf } from '../text/latent-space.ts';
import { countWords, type WordCounts } from '../text/word-counts.ts';
import { isAscii } from '../text/words.ts';
import { adjust, byRawScore, type Candidate, READ_CANDIDATES } from './candidate.ts';
import { headOf } from './rerank.ts';

/** Number of candidates, from the best on, from whose texts the topic of the question is derived. */
const EXAMPLES = 10;
/** Length of the beginning of each text that is read, in Unicode code points. */
const MAX_CHARACTERS = 1_500;
/** Number of words of the best candidates' texts, the words of the greatest weight, whose rarity is looked up. */
const LOOKED_UP = 60;
/** Greatest number of the words that were looked up that become the topic: the words of the greatest weight. */
const TOPIC_WORDS = 20;
/**
 * Greatest weight (0..1) of a text's fit to the topic in the value by which candidates are sorted; the raw score has
 * the remaining weight.
 */
const MAX_SHARE = 0.4;
/** Greatest weight (0..1) of a text's similarity in the latent space in the value by which candidates are sorted. */
const MAX_LATENT_SHARE = 0.45;
/**
 * Mean length of the best candidates' texts, in words, up to which neither the topic nor the latent space has a weight.
 * From `LONG` words on, both have their greatest weight, with a linear rise between. The words of a short text belong
 * to one remark in a conversation rather than to its topic.
 */
const SHORT = 60;
const LONG = 120;
/** `K1` and `B` are the parameters of BM25: saturation of word counts, and normalisation by length. */
const K1 = 1.2;
const B = 0.75;

/** What the reordering by topic needs. */
export interface TopicSources {
  readonly texts: TextReader;
  /** Returns the rarity of each word, above 0, in the order given. */
  readonly raritiesOf: (words: readonly string[]) => readonly number[];
  /** The question, to be compared in the latent space of the file; left out if that comparison is not wanted. */
  readonly question?: string;
  /** Reads the latent space of the file; it returns null if the file has none. */
  readonly latentSpace?: () => LatentSpace | null;
}

/**
 * Reorders the first candidates by the topic of the best candidates' texts, if these are long: a relevance model
 * (Lavrenko and Croft, "Relevance-Based Language Models", SIGIR 2001; mixed with the query's own scores as RM3). The
 * topic consists of the words that have the greatest weight in the first ten texts, by the texts' raw scores and the
 * words' rarity. Texts with more words of the topic rise, unless the first ten texts are passages of a chat. After
 * that, texts rise that are near the question in the latent space of the file, whatever words they use. Only the first
 * 24 candidates are read and change ranks among themselves; a candidate gets the raw score of its new rank. Nothing
 * changes if the texts of the first ten have 60 words or fewer on average.
 * @param candidates best first
 * @returns best first, by raw score
 */
export function applyTopic(candidates: readonly Candidate[], sources: TopicSources): Candidate[] {
  const first = candidates.slice(0, READ_CANDIDATES);
  const read = sources.texts(
    first.map(({ row }) => row.memoryNo),
    MAX_CHARACTERS,
  );
  const textOf = ({ row }: Candidate) => read.get(row.memoryNo)?.content ?? '';
  const examples = first.slice(0, EXAMPLES);
  const most = examples.reduce((sum, candidate) => sum + mostWords(textOf(candidate)), 0);
  if (first.length < 2 || most < SHORT * examples.length) return [...candidates];
  const own = examples.map((candidate) => countWords(textOf(candidate)));
  const share = Math.min(1, Math.max(0, (meanLength(own) - SHORT) / (LONG - SHORT)));
  if (share === 0) return [...candidates];
  const counted = [...own, ...first.slice(EXAMPLES).map((candidate) => countWords(textOf(candidate)))];
  const byTopic = areOfChat(examples.map(textOf))
    ? first
    : moveWithin(first, MAX_SHARE * share, topicFits(examples, counted, sources));
  const countsOf = new Map(first.map(({ row }, place) => [row.memoryNo, counted[place]!]));
  const near = latentFits(
    byTopic.map(({ row }) => countsOf.get(row.memoryNo)!),
    sources,
  );
  const moved = near === null ? byTopic : moveWithin(byTopic, MAX_LATENT_SHARE * share, near);
  return [...moved, ...candidates.slice(first.length)];
}

/**
 * Tells whether at least half of these texts are from a chat: a text counts if it begins with the name of a speaker
 * with whose name another of the texts begins, too. The words of a text from a chat belong to one remark and do not
 * show the topic, however long the text is.
 */
function areOfChat(texts: readonly string[]): boolean {
  const heads = texts.map(headOf).filter((head) => head !== '');
  const spoken = heads.filter((head) => heads.indexOf(head) !== heads.lastIndexOf(head));
  return 2 * spoken.length >= texts.length;
}

/** Returns how well each text fits the topic of the examples, as BM25. */
function topicFits(
  examples: readonly Candidate[],
  counted: readonly WordCounts[],
  { raritiesOf }: TopicSources,
): number[] {
  const topic = topicOf(examples, counted, raritiesOf);
  const mean = meanLength(counted);
  return counted.map((text) => fitOf(text, topic, mean));
}

/**
 * Returns the cosine of each text and the question in the latent space, 0..1; 0 for a text without known words. Returns
 * null if no question is given, if there is no such space, or if the space knows no word of the question.
 */
function latentFits(counted: readonly WordCounts[], { question, latentSpace }: TopicSources): number[] | null {
  const space = question === undefined ? null : (latentSpace?.() ?? null);
  const asked = space === null ? null : latentVectorOf(space, countWords(question!).counts);
  if (asked === null) return null;
  return counted.map(({ counts }) => {
    const own = latentVectorOf(space!, counts);
    return own === null
      ? 0
      : Math.max(
          0,
          own.reduce((sum, value, at) => sum + value * asked[at]!, 0),
        );
  });
}

function meanLength(texts: readonly WordCounts[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0) / texts.length;
}

/** Average number of words in a run of characters between blanks: `don't` and `well-known` are two words each. */
const MORE_WORDS = 1.3;
/**
 * Returns a high estimate of the number of words in a text, so that short texts of chats need not be split into words.
 */
function mostWords(text: string): number {
  if (!isAscii(text)) return text.length / 2;
  let blanks = 1;
  for (const blank of [' ', '\n'])
    for (let at = text.indexOf(blank); at !== -1; at = text.indexOf(blank, at + 1)) blanks += 1;
  return MORE_WORDS * blanks;
}

/** Returns the stems of the topic with their weights: at most 20 (`TOPIC_WORDS`). */
function topicOf(
  examples: readonly Candidate[],
  counted: readonly WordCounts[],
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
      TOPIC_WORDS,
    ),
  );
}

/** Computes the BM25 of a text over the weighted words of the topic. */
function fitOf({ counts, length }: WordCounts, topic: ReadonlyMap<string, number>, mean: number): number {
  let fit = 0;
  for (const [stem, weight] of topic) {
    const count = counts.get(stem) ?? 0;
    if (count > 0) fit += (weight * count * (K1 + 1)) / (count + K1 * (1 - B + (B * length) / mean));
  }
  return fit;
}

/**
 * Sorts candidates by raw score and fit together. Raw scores belong to ranks: a candidate gets the raw score of its new
 * rank.
 * @param share weight of the fit in the order, 0..1; the best fit counts as much as the best score
 * @param fits one for each candidate, 0 or more
 */
function moveWithin(first: readonly Candidate[], share: number, fits: readonly number[]): Candidate[] {
  const best = first[0]!.rawScore;
  const bestFit = Math.max(Number.MIN_VALUE, ...fits);
  const mixed = first.map((candidate, place) => ({
    candidate,
    value: (1 - share) * candidate.rawScore + (share * best * fits[place]!) / bestFit,
  }));
  return mixed
    .sort((a, b) => b.value - a.value || byRawScore(a.candidate, b.candidate))
    .map(({ candidate }, place) => {
      const { rawScore } = first[place]!;
      if (candidate === first[place] || candidate.rawScore <= 0) return candidate;
      return { ...adjust(candidate, { by: 'rerank', factor: rawScore / candidate.rawScore }), rawScore };
    });
}
