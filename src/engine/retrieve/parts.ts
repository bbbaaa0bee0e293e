import type { Store } from '../store/open-store.ts';
import type { AskingSentences } from '../text/asking-sentences.ts';
import type { QueryTerms } from '../text/index-text.ts';
import type { QueryText } from '../text/query-text.ts';
import type { Findings, Fit } from './candidate.ts';
import type { RankedList } from './fuse.ts';
import type { LexicalResult } from './lexical.ts';
import { matcherFor, type QueryPlan, termsOf } from './plan.ts';
import { relevance } from './score.ts';

/** A sentence of a message that asks or may ask, with the results of a search for it alone. */
export interface SearchedPart {
  /** The plan of the whole message, with the text, terms and matcher of this sentence. */
  readonly plan: QueryPlan;
  readonly lexical: LexicalResult;
  /**
   * Whether the sentence counts as asking: a mark or a word tells so, or nothing tells which of the message's sentences
   * ask. False for a sentence that only may ask (`AskingSentences.mayAsk`).
   */
  readonly asks: boolean;
}

/** An asking sentence with its weight among the asking sentences of the message, above 0 and at most 1. */
interface Part extends SearchedPart {
  readonly weight: number;
}

/** The asking sentences of a message, each with its weight, and the weight of the message as a whole. */
export interface Parts {
  /** At most 4 sentences (`MAX_PARTS`), the heaviest first; empty where the message counts as a single question. */
  readonly parts: readonly Part[];
  /** Weight of the message as a whole, 0..1; `parts` share the rest. It is 1 where there are no parts. */
  readonly whole: number;
}

/** The parts of a message that counts as a single question: none. */
export const NO_PARTS: Parts = { parts: [], whole: 1 };

/** Greatest number of asking sentences that candidates are compared with; those of less weight are ignored. */
const MAX_PARTS = 4;
/** Number of the best memories of an asking sentence whose agreement with the rest of the message is measured. */
const WITNESSES = 3;
/** Agreement (`agreementOf`) up to which the message as a whole gets no weight: its other sentences are noise. */
const NOISE = 0.16;
/** Agreement from which all sentences are about one thing, so that the message as a whole gets all the weight. */
const ONE_QUESTION = 0.2;

/**
 * Factor on the BM25 of a sentence without a question word, where no mark tells which sentences ask. The sentence
 * becomes a part only if its best memory then exceeds those of the sentences with a question word.
 */
const UNASKED = 0.5;

/**
 * Least weight of the whole message where exactly one other sentence accompanies the one that asks: a single one says
 * what the question is about more often than several do.
 */
const LEAST_OF_TWO = 0.5;

/**
 * Makes a plan for each sentence of a message that may be searched by itself. It differs from the message's plan in
 * text, terms and matcher only. A sentence without terms is left out.
 * @returns an empty list for a message whose sentences cannot be searched alone (`AskingSentences.standAlone`)
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
 * Weighs the asking sentences against the whole message by their agreement: the share of the other sentences' words, by
 * rarity, that the best memories of an asking sentence hold. Sentences about one thing find each other's memories;
 * unrelated sentences do not. Where no question mark tells which sentences ask, a sentence counts by the BM25 of its
 * best memory, and one without a question word by half of it.
 * @param whole the hits of the whole message
 * @returns `NO_PARTS` where no sentence found a memory
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

/** Returns the BM25 of the best memory of a sentence; 0 without hits; half of it for a sentence that only may ask. */
function bestOf({ lexical, asks }: SearchedPart): number {
  return (lexical.hits[0]?.bm25 ?? 0) * (asks ? 1 : UNASKED);
}

/**
 * Returns the query with further asking sentences: those that only their weight shows to be asking. Their words come
 * before those of the other sentences, since limits cut off the last words.
 */
export function withFoundParts({ query }: QueryPlan, { parts }: Parts): QueryText {
  const found = parts.filter(({ asks }) => !asks).map(({ plan }) => plan.query.terms);
  if (found.length === 0) return query;
  const words = [...new Set([...found.flatMap((terms) => terms.words), ...query.terms.words])];
  return { ...query, terms: { ...query.terms, words }, askingTerms: [...query.askingTerms, ...found] };
}

/**
 * Returns the greatest share of the rest of a message, 0..1, that one of the 3 best memories of an asking sentence
 * holds; 1 where the rest has no words.
 */
function agreementOf(whole: LexicalResult, part: LexicalResult): number {
  const rest = mostOf(whole) - mostOf(part);
  if (rest <= 0) return 1;
  const bm25 = new Map(whole.hits.map((hit) => [hit.memoryNo, hit.bm25]));
  const held = part.hits.slice(0, WITNESSES).map((hit) => (bm25.get(hit.memoryNo) ?? 0) - hit.bm25);
  return Math.max(0, ...held) / rest;
}

/** Returns the BM25 of a memory that holds every word; 0 without hits. */
function mostOf({ hits }: LexicalResult): number {
  const [best] = hits;
  return best === undefined || best.coverage <= 0 ? 0 : best.bm25 / best.coverage;
}

/**
 * Least share of the weight for the lists of the asking sentences, and for that of the whole message, so that a memory
 * that only one of them found still becomes a candidate.
 */
const LEAST_SHARE = 0.01;

/**
 * Makes the lists of word hits for the fusion: one for the whole message, then one for each asking sentence. There is
 * only the first where the whole message has all the weight.
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
 * Exponent on the relevance of a sentence's best memory, compared with that of the other sentences. The best memories
 * of all sentences fit equally well by their shares; this puts the surest of them first and moves little else.
 */
const SUREST_FIRST = 0.03;

/**
 * Sets `Fit.joint` of each memory: its fit to the asking sentence that it fits best and to the whole message, added by
 * their weights. Each fit is a share of the best memory's fit, so that every sentence brings its best memories to the
 * front. A sentence whose best memory is less relevant than that of another sentence counts a little less. `Fit.part`
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
 * Returns a function that computes `Fit.answers` for a memory. It returns an object that is spread into the memory's
 * fit: empty where no question precedes the memory.
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

/**
 * Returns the text of a message that asks: the whole message, or only its asking sentences where the whole has half of
 * the weight or less.
 */
export function askedText({ query }: Pick<QueryPlan, 'query'>, { parts, whole }: Parts): string {
  return whole > 0.5 ? query.text : parts.map(({ plan }) => plan.query.text).join(' ');
}

/** Returns the greatest relevance of a memory, above 0, and the share of it that each memory has, by `memoryNo`. */
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
  const weights = parts.map(({ plan, weight }) => `${weight.toFixed(2)} “${plan.query.text.slice(0, 80)}”`);
  return whole === 1
    ? 'all sentences are one question'
    : `whole message ${whole.toFixed(2)}; of the rest: ${weights.join(', ')}`;
}
