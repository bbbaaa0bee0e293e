import type { Store } from '../store/open-store.ts';
import type { AskingSentences } from '../text/asking-sentences.ts';
import type { QueryTerms } from '../text/index-text.ts';
import type { QueryText } from '../text/query-text.ts';
import type { Findings, Fit } from './candidate.ts';
import type { RankedList } from './fuse.ts';
import type { LexicalResult } from './lexical.ts';
import { matcherFor, type QueryPlan, termsOf } from './plan.ts';
import { relevance } from './score.ts';

/** A sentence of a message that asks or may ask, searched as if it were a query of its own. */
export interface SearchedPart {
  /** The plan of the whole message with the text and the terms of this sentence. */
  readonly plan: QueryPlan;
  readonly lexical: LexicalResult;
  /** Whether a mark or a word tells that the sentence asks, or nothing tells which of the message's sentences ask. */
  readonly asks: boolean;
}

/** A part with its weight among the parts, above 0 and at most 1. */
interface Part extends SearchedPart {
  readonly weight: number;
}

/** The parts of a message, weighed against the message as a whole. */
export interface Parts {
  /** At most `MAX_PARTS`; empty where the message is one question. */
  readonly parts: readonly Part[];
  /** Weight of the message as a whole, 0..1; the parts have the rest. It is 1 where there are no parts. */
  readonly whole: number;
}

/** The parts of a message that is one question. */
export const NO_PARTS: Parts = { parts: [], whole: 1 };

/** Most parts that candidates are compared with. */
const MAX_PARTS = 4;
/** Number of best memories of a part whose agreement with the rest of the message is measured. */
const WITNESSES = 3;
/** Agreement up to which the other sentences are noise, which has no weight. */
const NOISE = 0.08;
/** Agreement from which all sentences are about one thing: the message is one question. */
const ONE_QUESTION = 0.2;

/**
 * How much a sentence without a question word counts beside those with one, where no mark tells which ask. It is one of
 * the parts only where it counts for more than they do all the same.
 */
const UNASKED = 0.5;

/**
 * Least weight of the whole message where a single sentence stands beside the one that asks: it more often says what
 * the question is about than four sentences do.
 */
const LEAST_OF_TWO = 0.5;

/**
 * Makes a plan for each sentence of a message that may be searched by itself. It differs from the message's plan in
 * text and terms only.
 * @returns an empty list for a message that is one question
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
 * Weighs the parts against the whole message by their agreement: the share of the other sentences' words, by rarity,
 * that the best memories of a part hold. Sentences about one thing find each other's memories, and foreign sentences do
 * not. Where no question mark tells which sentences ask, a part counts by how much this file has to say about it, and
 * one with a question word counts twice.
 * @param whole the hits of the whole message
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

/** The BM25 of a part's best memory, 0 without hits; of a sentence that may not ask, a share of it. */
function bestOf({ lexical, asks }: SearchedPart): number {
  return (lexical.hits[0]?.bm25 ?? 0) * (asks ? 1 : UNASKED);
}

/**
 * The query with the parts that only their weight shows to ask among its asking sentences, and their words before those
 * of the other sentences, which a limit cuts.
 */
export function withFoundParts({ query }: QueryPlan, { parts }: Parts): QueryText {
  const found = parts.filter(({ asks }) => !asks).map(({ plan }) => plan.query.terms);
  if (found.length === 0) return query;
  const words = [...new Set([...found.flatMap((terms) => terms.words), ...query.terms.words])];
  return { ...query, terms: { ...query.terms, words }, askingTerms: [...query.askingTerms, ...found] };
}

/**
 * The greatest share of the rest of a message that one of a part's best memories holds; 1 where the rest has no words.
 */
function agreementOf(whole: LexicalResult, part: LexicalResult): number {
  const rest = mostOf(whole) - mostOf(part);
  if (rest <= 0) return 1;
  const bm25 = new Map(whole.hits.map((hit) => [hit.memoryNo, hit.bm25]));
  const held = part.hits.slice(0, WITNESSES).map((hit) => (bm25.get(hit.memoryNo) ?? 0) - hit.bm25);
  return Math.max(0, ...held) / rest;
}

/** The BM25 of a memory that holds every word; 0 without hits. */
function mostOf({ hits }: LexicalResult): number {
  const [best] = hits;
  return best === undefined || best.coverage <= 0 ? 0 : best.bm25 / best.coverage;
}

/** Least share of the parts' lists in the fusion, so that what only a part found becomes a candidate. */
const LEAST_SHARE = 0.01;

/**
 * The lists by words for the fusion: that of the whole message, and those of its parts.
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
 * Sets `Fit.joint`: the fit to the part that a memory fits best, and to the whole message, by their weights. Each is
 * a share of the best memory's, so that every part brings its best memories to the front.
 * @returns the findings unchanged where the whole message has all weight
 */
export function joinParts(
  findings: ReadonlyMap<number, Findings>,
  { parts, whole }: Parts,
  { vectorWeight, questions }: { readonly vectorWeight: number; readonly questions: ReadonlyMap<number, string> },
): ReadonlyMap<number, Findings> {
  if (whole === 1) return findings;
  const ofWhole = sharesOf(findings, vectorWeight, ({ fit }) => fit);
  const ofParts = parts.map(({ plan, lexical, weight }) => {
    const answersOf = matchQuestions(plan, questions);
    const coverage = new Map(lexical.hits.map((hit) => [hit.memoryNo, hit.coverage]));
    // A question without any word of the whole message has none of the part's.
    const shares = sharesOf(findings, vectorWeight, ({ fit: { cosine, answers = 0 } }, memoryNo) => ({
      coverage: coverage.get(memoryNo) ?? 0,
      cosine,
      ...(answers > 0 ? answersOf(memoryNo) : {}),
    }));
    return (memoryNo: number) => weight * shares.get(memoryNo)!;
  });
  return new Map(
    [...findings].map(([memoryNo, found]) => {
      const shares = ofParts.map((shareOf) => shareOf(memoryNo));
      const best = Math.max(...shares);
      const joint = (1 - whole) * best + whole * ofWhole.get(memoryNo)!;
      return [memoryNo, { ...found, fit: { ...found.fit, joint, part: whole > 0.5 ? 0 : shares.indexOf(best) + 1 } }];
    }),
  );
}

/**
 * Returns a function that gives `Fit.answers` of a memory, as an object to be spread into its fit.
 * @param questions the questions that memories follow, by memory number
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

/** The text of a message that asks: all of it, or the parts alone where these have more weight. */
export function askedText({ query }: Pick<QueryPlan, 'query'>, { parts, whole }: Parts): string {
  return whole > 0.5 ? query.text : parts.map(({ plan }) => plan.query.text).join(' ');
}

/** The relevance of each memory as a share of the greatest, by memory number. */
function sharesOf(
  findings: ReadonlyMap<number, Findings>,
  vectorWeight: number,
  fitOf: (found: Findings, memoryNo: number) => Fit,
): ReadonlyMap<number, number> {
  const relevances = [...findings].map(([memoryNo, found]): [number, number] => [
    memoryNo,
    relevance(fitOf(found, memoryNo), vectorWeight),
  ]);
  const best = Math.max(Number.MIN_VALUE, ...relevances.map(([, value]) => value));
  return new Map(relevances.map(([memoryNo, value]) => [memoryNo, value / best]));
}

/** Describes the parts on one line, for the trace. */
export function describeParts({ parts, whole }: Parts): string {
  const weights = parts.map(({ plan, weight }) => `${weight.toFixed(2)} “${plan.query.text.slice(0, 80)}”`);
  return whole === 1
    ? 'all sentences are one question'
    : `whole message ${whole.toFixed(2)}; of the rest: ${weights.join(', ')}`;
}
