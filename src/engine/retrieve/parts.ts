import type { Store } from '../store/open-store.ts';
import type { AskingSentences } from '../text/asking-sentences.ts';
import type { QueryTerms } from '../text/index-text.ts';
import type { QueryText } from '../text/query-text.ts';
import type { Findings, Fit } from './candidate.ts';
import type { RankedList } from './fuse.ts';
import type { LexicalResult } from './lexical.ts';
import { matcherFor, type QueryPlan, termsOf } from './plan.ts';
import { relevance } from './raw-score.ts';
import { beginningOf } from '../text/beginning-of.ts';

/** A sentence of a message that asks or may ask a question, with the results of a search for this sentence alone. */
export interface SearchedPart {
  /** The plan of the whole message, but with the text, terms and matcher of this sentence. */
  readonly plan: QueryPlan;
  readonly lexical: LexicalResult;
  /**
   * Whether the sentence counts as a question: because of a question mark or a question word, or because nothing shows
   * which of the message's sentences ask. False for a sentence of `AskingSentences.mayAsk`.
   */
  readonly asks: boolean;
}

/**
 * An asking sentence with its weight relative to the other asking sentences, above 0 and at most 1: 1 for each if
 * question marks show which sentences ask, else 1 for the one whose best memory has the highest BM25.
 */
interface Part extends SearchedPart {
  readonly weight: number;
}

/** The asking sentences of a message, each with its weight, and the weight of the message as a whole, for scoring. */
export interface Parts {
  /**
   * At most 4 sentences (`MAX_PARTS`), the greatest weight first; empty if none was searched or none found a memory.
   */
  readonly parts: readonly Part[];
  /**
   * Weight of the message as a whole, 0..1; the asking sentences together have the weight 1 - `whole`. It is 1 if
   * `parts` is empty, and if all sentences are about one thing: the message then counts as a single question.
   */
  readonly whole: number;
}

/** The value for a message that counts as a single question: no asking sentences. */
export const NO_PARTS: Parts = { parts: [], whole: 1 };

/** Greatest number of asking sentences that candidates are compared with; those of the lowest weight are ignored. */
const MAX_PARTS = 4;
/**
 * Number of the best memories of an asking sentence that are used to measure its agreement with the other sentences.
 */
const WITNESSES = 3;
/** Agreement (`agreementOf`) up to which the message as a whole gets no weight, since its other sentences are noise. */
const NOISE = 0.16;
/**
 * Agreement (`agreementOf`) from which all sentences are about one thing, so that the message as a whole gets all the
 * weight.
 */
const ONE_QUESTION = 0.2;

/**
 * Factor on the BM25 of the best memory of a sentence without a question word, in a message without question marks. The
 * sentence counts as a question only if the BM25 is then still higher than that of the best memory of every sentence
 * with a question word.
 */
const UNASKED = 0.5;

/**
 * Least weight of the whole message if it has exactly one asking sentence and one other sentence, since a single other
 * sentence often says what the question is about.
 */
const LEAST_OF_TWO = 0.5;

/**
 * Makes a plan for each sentence of a message that can be searched by itself. It differs from the message's plan only
 * in text, terms and matcher. A sentence without terms is left out.
 * @returns an empty list if the sentences cannot be understood alone (`AskingSentences.standAlone` is false)
 */
export function plansOfParts(store: Store, plan: QueryPlan): Omit<SearchedPart, 'lexical'>[] {
  const { asking, askingTerms, mayAskTerms } = plan.query;
  if (!asking.standAlone) return [];
  const planOf = (text: string, terms: QueryTerms, asks: boolean) => {
    const query = { text, terms, asked: text, asking: NOTHING_ASKED, askingTerms: [], mayAskTerms: [] };
    return { plan: { ...plan, query, terms: termsOf(query), matcher: matcherFor(store, terms) }, asks };
  };
  return [
    ...asking.sentences.map((text, place) => planOf(text, askingTerms[place]!, true)),
    ...asking.mayAsk.map((text, place) => planOf(text, mayAskTerms[place]!, false)),
  ].filter((part) => part.plan.terms.length > 0);
}

const NOTHING_ASKED: QueryPlan['query']['asking'] = {
  sentences: [],
  areKnown: true,
  areMarked: false,
  standAlone: false,
  others: 0,
  mayAsk: [],
};

/**
 * Computes the weights of the asking sentences and of the whole message from their agreement: how much of the other
 * sentences' words, weighted by rarity, is in the best memories of an asking sentence. If all sentences are about one
 * thing, the agreement is high and the whole message gets the weight. Without question marks, a sentence is weighted by
 * the BM25 of its best memory, and one without a question word by half of it.
 * @param whole the hits of the whole message
 * @param searched the sentences, each with its own hits
 * @returns `NO_PARTS` if no sentence found a memory
 */
export function weighParts(
  whole: LexicalResult,
  searched: readonly SearchedPart[],
  { areMarked, others }: Pick<AskingSentences, 'areMarked' | 'others'>,
): Parts {
  const asked = Math.max(0, ...searched.filter(({ asks }) => asks).map(bestOf));
  const found = searched.filter((part) => bestOf(part) > 0 && (part.asks || bestOf(part) > asked));
  if (found.length === 0) return NO_PARTS;
  const most = Math.max(...found.map(bestOf));
  const parts = found
    .map((part) => ({ ...part, weight: areMarked ? 1 : bestOf(part) / most }))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, MAX_PARTS);
  const total = parts.reduce((sum, { weight }) => sum + weight, 0);
  const agreement = parts.reduce((sum, { lexical, weight }) => sum + weight * agreementOf(whole, lexical), 0) / total;
  const least = searched.length === 1 && others === 1 ? LEAST_OF_TWO : 0;
  return { parts, whole: Math.min(1, Math.max(least, (agreement - NOISE) / (ONE_QUESTION - NOISE))) };
}

/** Returns the BM25 of the best memory of a sentence; half of it for a sentence that only may ask; 0 without hits. */
function bestOf({ lexical, asks }: SearchedPart): number {
  return (lexical.hits[0]?.bm25 ?? 0) * (asks ? 1 : UNASKED);
}

/**
 * Returns the query with further asking sentences: those without a question word that `weighParts` found to be
 * questions. Their words come first, since limits cut off the last words.
 */
export function withFoundParts({ query }: QueryPlan, { parts }: Parts): QueryText {
  const found = parts.filter(({ asks }) => !asks).map(({ plan }) => plan.query.terms);
  if (found.length === 0) return query;
  const words = [...new Set([...found.flatMap((terms) => terms.words), ...query.terms.words])];
  return { ...query, terms: { ...query.terms, words }, askingTerms: [...query.askingTerms, ...found] };
}

/**
 * Returns the agreement of an asking sentence with the other sentences of its message, 0 to about 1: the greatest share
 * of the other sentences' words, weighted by rarity, that one of the asking sentence's 3 best memories contains; 1 if
 * the other sentences have no words.
 */
function agreementOf(whole: LexicalResult, part: LexicalResult): number {
  const rest = mostOf(whole) - mostOf(part);
  if (rest <= 0) return 1;
  const bm25 = new Map(whole.hits.map((hit) => [hit.memoryNo, hit.bm25]));
  const held = part.hits.slice(0, WITNESSES).map((hit) => (bm25.get(hit.memoryNo) ?? 0) - hit.bm25);
  return Math.max(0, ...held) / rest;
}

/** Returns the BM25 of a memory that contains every word of the search, computed from the best hit; 0 without hits. */
function mostOf({ hits }: LexicalResult): number {
  const [best] = hits;
  return best === undefined || best.coverage <= 0 ? 0 : best.bm25 / best.coverage;
}

/**
 * Least share of the weight for the list of the whole message, and for the lists of the asking sentences together, so
 * that a memory that only one list has still becomes a candidate. It does not apply where the whole message has all the
 * weight: its sentences then have no lists.
 */
const LEAST_SHARE = 0.01;

/**
 * Makes the ranked lists of the word search for the fusion: one for the whole message, then one for each asking
 * sentence; only the first one if the whole message has all the weight.
 * @param weight weight of all these lists together
 */
export function listsOf(lexical: LexicalResult, { parts, whole }: Parts, weight: number): RankedList[] {
  const list = ({ hits }: LexicalResult, share: number) => ({
    memoryNos: hits.map(({ memoryNo }) => memoryNo),
    weight: weight * share,
  });
  if (whole === 1) return [list(lexical, 1)];
  const each = Math.max(LEAST_SHARE, 1 - whole) / parts.length;
  return [list(lexical, Math.max(LEAST_SHARE, whole)), ...parts.map((part) => list(part.lexical, each))];
}

/**
 * Exponent on the relevance of a sentence's best memory, divided by the greatest relevance that any sentence's best
 * memory has. By shares alone, the best memories of all sentences would fit equally well; this factor puts the most
 * relevant of them first and changes little else.
 */
const SUREST_FIRST = 0.03;

/**
 * Sets `Fit.joint` of each memory: its fit to the asking sentence that it fits best and to the whole message, added by
 * their weights. Each fit is a share of the best memory's fit, so that every sentence brings its best memories to the
 * front. A sentence counts a little less if its best memory is less relevant than that of another sentence. `Fit.part`
 * names the sentence, from 1; it is 0 where the whole message has more than half of the weight.
 * @returns the findings unchanged where the whole message has all the weight
 */
export function joinParts(
  findings: ReadonlyMap<number, Findings>,
  { parts, whole }: Parts,
  { vectorWeight, questions }: { readonly vectorWeight: number; readonly questions: ReadonlyMap<number, string> },
): ReadonlyMap<number, Findings> {
  if (whole === 1) return findings;
  const ofWhole = sharesOf(findings, vectorWeight, ({ fit }) => fit).shares;
  const ofParts = parts.map(({ plan, lexical, weight }) => {
    const answersOf = matchQuestions(plan, questions);
    const coverage = new Map(lexical.hits.map((hit) => [hit.memoryNo, hit.coverage]));
    // A question without any word of the whole message has none of the part's.
    const own = sharesOf(findings, vectorWeight, ({ fit: { cosine, answers = 0 } }, memoryNo) => ({
      coverage: coverage.get(memoryNo) ?? 0,
      cosine,
      ...(answers > 0 ? answersOf(memoryNo) : {}),
    }));
    return { ...own, weight };
  });
  const most = Math.max(...ofParts.map(({ best }) => best));
  const weights = ofParts.map(({ weight, best }) => weight * (best / most) ** SUREST_FIRST);
  return new Map(
    [...findings].map(([memoryNo, found]) => {
      const shares = ofParts.map((part, place) => weights[place]! * part.shares.get(memoryNo)!);
      const best = Math.max(...shares);
      const joint = (1 - whole) * best + whole * ofWhole.get(memoryNo)!;
      return [memoryNo, { ...found, fit: { ...found.fit, joint, part: whole > 0.5 ? 0 : shares.indexOf(best) + 1 } }];
    }),
  );
}

/**
 * Returns a function that computes `Fit.answers` for a memory: how much of the query is in the question before the
 * memory. The function returns an object to be spread into the memory's fit; it is empty if no question precedes the
 * memory.
 * @param questions the question that precedes each memory in its session, by `memoryNo`
 */
export function matchQuestions(
  { matcher }: Pick<QueryPlan, 'matcher'>,
  questions: ReadonlyMap<number, string>,
): (memoryNo: number) => Pick<Fit, 'answers'> {
  return (memoryNo) => {
    const question = questions.get(memoryNo);
    return question === undefined ? {} : { answers: matcher().coverageOf(question) };
  };
}

/** Returns the text that asks: the whole message if it has more than half of the weight, else its asking sentences. */
export function askedText({ query }: Pick<QueryPlan, 'query'>, { parts, whole }: Parts): string {
  return whole > 0.5 ? query.text : parts.map(({ plan }) => plan.query.text).join(' ');
}

/**
 * Returns the greatest relevance of any memory, above 0, and for each memory, by `memoryNo`, its relevance as a share
 * of the greatest.
 */
function sharesOf(
  findings: ReadonlyMap<number, Findings>,
  vectorWeight: number,
  fitOf: (found: Findings, memoryNo: number) => Fit,
): { readonly best: number; readonly shares: ReadonlyMap<number, number> } {
  const relevances = [...findings].map(([memoryNo, found]): [number, number] => [
    memoryNo,
    relevance(fitOf(found, memoryNo), vectorWeight),
  ]);
  const best = Math.max(Number.MIN_VALUE, ...relevances.map(([, value]) => value));
  return { best, shares: new Map(relevances.map(([memoryNo, value]) => [memoryNo, value / best])) };
}

/** Describes the asking sentences and the weights on one line, for the trace. */
export function describeParts({ parts, whole }: Parts): string {
  const weights = parts.map(({ plan, weight }) => `${weight.toFixed(2)} “${beginningOf(plan.query.text, 80)}”`);
  return whole === 1
    ? 'all sentences are one question'
    : `whole message ${whole.toFixed(2)}; of the rest: ${weights.join(', ')}`;
}
