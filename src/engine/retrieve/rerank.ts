import { DAY_MS } from '../dynamics.ts';
import type { OwnText } from '../store/search.ts';
import { isCjk, normalise, STOP_WORDS, words } from '../text/words.ts';
import { adjust, byRawScore, type Candidate } from './candidate.ts';
import type { QueryPlan } from './plan.ts';
import type { TextMatch } from './text-match.ts';

/** What the reranker measures, each 0..1; what does not apply to a query or a text stands at what changes nothing. */
export interface RerankFeatures extends TextMatch {
  /** 1 where the text begins with the name of a speaker whom the query names, 0 with another's, 0.5 where that cannot be told. */
  readonly speaker: number;
  /** The share of the text that is no question. */
  readonly statement: number;
  /** 1 where the query asks for a time and the text names one. */
  readonly dated: number;
  /** How near it is to the newest candidate, where the query asks for the latest; else 0.5. */
  readonly recency: number;
}

/**
 * What a feature adds to the factor at 1, against the value at which it changes nothing. Measured on chats, abstracts and Chinese
 * notes. Who speaks and whether he asks or tells is what the word index cannot see, and brings most. Coverage and proximity it knows by
 * BM25: more than this made abstracts worse, as long questions are not about their words' order.
 */
const WEIGHTS: Readonly<Record<keyof RerankFeatures, { readonly weight: number; readonly neutral: number }>> = {
  coverage: { weight: 0.03, neutral: 0 },
  proximity: { weight: 0.05, neutral: 0 },
  phrases: { weight: 0.1, neutral: 0 },
  identifiers: { weight: 0.05, neutral: 0 },
  fields: { weight: 0.05, neutral: 0 },
  speaker: { weight: 0.3, neutral: 0.5 },
  statement: { weight: 0.15, neutral: 1 },
  dated: { weight: 0.1, neutral: 0 },
  recency: { weight: 0.2, neutral: 0.5 },
};
const FACTOR_LEAST = 0.8;
const FACTOR_MOST = 1.25;
/** Coverage and proximity count in full for queries of so many words, and less the longer a query is. */
const SHORT_QUERY = 3;

/** Candidates that are looked at, and characters read of each and of all. */
const RERANKED_MOST = 24;
const CHARACTERS_MOST = 4_000;
const ALL_CHARACTERS_MOST = 24_000;
const RECENCY_LAMBDA = 0.05;

/**
 * The built-in reranker: looks at the texts of the first candidates and moves each by a bounded factor, so that a clearly better match
 * stays before a worse one.
 * @param candidates best first
 * @returns best first; those that were looked at with their features
 */
export function rerank(
  candidates: readonly Candidate[],
  plan: Pick<QueryPlan, 'query' | 'matcher' | 'texts'>,
): Candidate[] {
  const first = candidates.slice(0, RERANKED_MOST);
  const features = measure(first, plan);
  return [
    ...first.map((candidate, place) => moved(candidate, features[place]!)),
    ...candidates.slice(first.length),
  ].sort(byRawScore);
}

function moved(candidate: Candidate, { features, factor }: Measured): Candidate {
  const measured = { ...candidate, rerank: { ...features } };
  return factor === 1 ? measured : adjust(measured, { by: 'rerank', factor });
}

interface Measured {
  readonly features: RerankFeatures;
  readonly factor: number;
}

function measure(
  candidates: readonly Candidate[],
  { query, matcher: matcherOf, texts: read }: Pick<QueryPlan, 'query' | 'matcher' | 'texts'>,
): Measured[] {
  const characters = Math.min(CHARACTERS_MOST, Math.floor(ALL_CHARACTERS_MOST / Math.max(1, candidates.length)));
  const found = read(
    candidates.map(({ row }) => row.seq),
    characters,
  );
  const texts = candidates.map(({ row }) => partsOf(found.get(row.seq) ?? EMPTY));
  const matcher = matcherOf();
  const speakers = speakersOf(texts, query);
  const asksWhen = ASKS_WHEN.test(query);
  const newest = ASKS_LATEST.test(query) ? Math.max(...candidates.map(({ row }) => row.eventTime)) : null;
  const scale: Partial<Record<keyof RerankFeatures, number>> = {
    coverage: Math.min(1, SHORT_QUERY / matcher.size),
    proximity: Math.min(1, SHORT_QUERY / matcher.size),
  };
  return texts.map((text, place) => {
    const age = newest === null ? null : (newest - candidates[place]!.row.eventTime) / DAY_MS;
    const match = matcher.match(text);
    const isCut = text.content.length >= characters;
    const features: RerankFeatures = {
      ...match,
      ...(isCut ? { coverage: Math.max(match.coverage, coverageByIndex(candidates[place]!)) } : {}),
      speaker: speakers[place]!,
      statement: 1 - questionShare(text.said),
      dated: asksWhen && TIME.test(text.said) ? 1 : 0,
      recency: age === null ? WEIGHTS.recency.neutral : Math.exp(-RECENCY_LAMBDA * age),
    };
    return { features, factor: factorOf(features, scale) };
  });
}

/** The index knows the words behind what is read. What was found by the words of another text says nothing about this one. */
function coverageByIndex({ fit, foundAs }: Candidate): number {
  return foundAs === undefined ? Math.min(1, Math.max(0, fit.coverage)) : 0;
}

function factorOf(features: RerankFeatures, scale: Partial<Record<keyof RerankFeatures, number>>): number {
  let factor = 1;
  for (const name of Object.keys(WEIGHTS) as (keyof RerankFeatures)[]) {
    const { weight, neutral } = WEIGHTS[name];
    factor += weight * (scale[name] ?? 1) * (features[name] - neutral);
  }
  return Math.min(FACTOR_MOST, Math.max(FACTOR_LEAST, factor));
}

interface TextParts {
  readonly content: string;
  readonly title: string;
  readonly labels: string;
  /** `Caroline` in `Caroline: I have been there.`; '' if it does not begin so. */
  readonly head: string;
  /** What follows the head. */
  readonly said: string;
}

const EMPTY: OwnText = { content: '', title: '', gist: '', entities: '[]', tags: '[]' };
/** A line of a chat as it is commonly written down. */
const HEAD = /^([^\n:：]{1,40})[:：](?=\s|\P{ASCII})/u;

function partsOf({ content, title, entities, tags }: OwnText): TextParts {
  const head = HEAD.exec(content);
  return {
    content,
    title,
    labels: entities === '[]' && tags === '[]' ? '' : `${entities} ${tags}`,
    head: head?.[1] ?? '',
    said: head === null ? content : content.slice(head[0].length),
  };
}

/**
 * The feature `speaker` of each text. What begins several texts alike is a speaker; the rest may be headings. A question about
 * somebody is answered by what he says more often than by what is said to him.
 */
function speakersOf(texts: readonly TextParts[], query: string): number[] {
  const { neutral } = WEIGHTS.speaker;
  const lines = new Map<string, number>();
  for (const { head } of texts) if (head !== '') lines.set(head, (lines.get(head) ?? 0) + 1);
  const speakers = [...lines].filter(([, count]) => count > 1).map(([head]) => head);
  if (speakers.length === 0) return texts.map(() => neutral);
  const normalised = normalise(query);
  const asked = new Set(words(query).filter((word) => !STOP_WORDS.has(word)));
  const named = new Set(
    speakers.filter((head) =>
      isCjk(head) ? normalised.includes(normalise(head)) : words(head).some((word) => asked.has(word)),
    ),
  );
  if (named.size === 0) return texts.map(() => neutral);
  return texts.map(({ head }) => (named.has(head) ? 1 : speakers.includes(head) ? 0 : neutral));
}

/** The share of a text that its questions take, from the end of the sentence before each to its mark. */
function questionShare(text: string): number {
  let [asked, start] = [0, 0];
  for (const { 0: mark, index } of text.matchAll(SENTENCE_END)) {
    const end = index + mark.length;
    if (mark === '?' || mark === '？') asked += end - start;
    start = end;
  }
  return asked / Math.max(1, text.length);
}

/** The mark in `host.org/page?name=value` ends nothing. */
const SENTENCE_END = /[.!?](?=[\s"')\]]|$|\P{ASCII})|[。！？\n]/gu;
const ASKS_WHEN =
  /^\W*when\b|\b(?:what|which) (?:date|day|week|month|year|time)\b|\bhow long\b|什么时候|什麼時候|何时|几点|哪天|哪一天|哪年|几月|几号|日期|时间/iu;
const ASKS_LATEST = /\b(?:latest|newest|recent|recently|current|currently|nowadays|these days)\b|最近|最新|目前|现在/iu;
const TIME =
  /\b(?:yesterday|today|tonight|tomorrow|ago|since|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|november|december|(?:19|20)\d\d|(?:last|next|this|past|few|two|three|four|five|six) (?:night|day|week|month|year|spring|summer|autumn|fall|winter|mon|tues|wednes|thurs|fri|satur|sun)\w*)\b|[\d一二三四五六七八九十][年月日号点]|周[一二三四五六日]|星期[一二三四五六日天]|[昨今明后]天|[上下这]个?[周月]|[去今明]年/iu;
