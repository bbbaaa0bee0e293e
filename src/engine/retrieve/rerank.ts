import { DAY_MS } from '../dynamics.ts';
import { listedLabelsOf, type OwnText } from '../store/own-texts.ts';
import { isCjk, normalise, words } from '../text/words.ts';
import { STOP_WORDS } from '../text/stop-words.ts';
import { adjust, byRawScore, type Candidate, READ_CANDIDATES } from './candidate.ts';
import type { QueryPlan } from './plan.ts';
import type { QueryMatcher, TextMatch } from './text-match.ts';

/**
 * The features of the built-in reranker, each 0..1. A feature that does not apply to a query or a text has its neutral
 * value in `WEIGHTS`, which changes no score.
 */
export interface RerankFeatures extends TextMatch {
  /**
   * 1 if the text begins with the name of a speaker whom the query names, 0 if it begins with the name of another
   * speaker, 0.5 if the query names no speaker or the text's speaker is not recognised.
   */
  readonly speaker: number;
  /** Share of the text, in characters, that is not a question; 1 for an empty text. */
  readonly statement: number;
  /** 1 if the query asks for a time and the text has an expression of time, else 0. */
  readonly dated: number;
  /**
   * How near in time the text's event is to the newest event of the reranked candidates, if the query asks for the
   * latest: 1 for the newest, exp(-0.05 · days) for one that is older by this number of days. It is 0.5 for any other
   * query.
   */
  readonly recency: number;
}

/**
 * For each feature, its weight in the factor on the raw score, and the neutral value that changes nothing. The values
 * were measured on chats, abstracts and Chinese notes. Who speaks, and whether the text asks or states something, help
 * most, since the word index does not know them. How many of the query's words the text has is no feature, since BM25
 * counts that already.
 */
const WEIGHTS: Readonly<Record<keyof RerankFeatures, { readonly weight: number; readonly neutral: number }>> = {
  phrases: { weight: 0.1, neutral: 0 },
  identifiers: { weight: 0.05, neutral: 0 },
  fields: { weight: 0.05, neutral: 0 },
  speaker: { weight: 0.3, neutral: 0.5 },
  statement: { weight: 0.15, neutral: 1 },
  dated: { weight: 0.1, neutral: 0 },
  recency: { weight: 0.2, neutral: 0.5 },
};
/** Bounds of the factor by which the reranker multiplies a raw score. */
const MIN_FACTOR = 0.8;
const MAX_FACTOR = 1.25;
/**
 * Greatest length of the beginning of each candidate's text that is read, in Unicode code points. The limit
 * `MAX_ALL_CHARACTERS` for all these texts together is shared equally, so that it is lower for more than six
 * candidates.
 */
const MAX_CHARACTERS = 4_000;
const MAX_ALL_CHARACTERS = 24_000;
/** Rate of the exponential decay of the feature `recency`, per day between a text's event and the newest event. */
const EVENT_RECENCY_LAMBDA = 0.05;

/**
 * Reranks candidates by their texts: reads the texts of the first 24 and multiplies each raw score by a factor of 0.8
 * to 1.25, so that a clearly better match stays before a worse one.
 * @param candidates best first
 * @param parts plans of the message's asking sentences. A candidate is compared with the sentence whose number
 *   `Fit.part` gives, or with the whole message
 * @returns all candidates, best first; those that were read have their features in `rerank`
 */
export function rerank(
  candidates: readonly Candidate[],
  plan: ComparedPlan,
  parts: readonly ComparedPlan[] = [],
): Candidate[] {
  const first = candidates.slice(0, READ_CANDIDATES);
  const features = measure(first, [plan, ...parts]);
  return [
    ...first.map((candidate, place) => withFeatures(candidate, features[place]!)),
    ...candidates.slice(first.length),
  ].sort(byRawScore);
}

/** The fields of a plan that the reranker uses to compare candidates with the query. */
type ComparedPlan = Pick<QueryPlan, 'query' | 'matcher' | 'texts'>;

function withFeatures(candidate: Candidate, { features, factor }: Measured): Candidate {
  const measured = { ...candidate, rerank: { ...features } };
  return factor === 1 ? measured : adjust(measured, { by: 'rerank', factor });
}

interface Measured {
  readonly features: RerankFeatures;
  readonly factor: number;
}

function measure(candidates: readonly Candidate[], plans: readonly ComparedPlan[]): Measured[] {
  const characters = Math.min(MAX_CHARACTERS, Math.floor(MAX_ALL_CHARACTERS / Math.max(1, candidates.length)));
  const ownTexts = plans[0]!.texts(
    candidates.map(({ row }) => row.memoryNo),
    characters,
  );
  const texts = candidates.map(({ row }) => partsOf(ownTexts.get(row.memoryNo) ?? EMPTY));
  const questions = new Map<number, Question>();
  return candidates.map((candidate, place) => {
    const part = candidate.fit.part ?? 0;
    const question = questions.get(part) ?? questionOf(plans[part]!, candidates, texts);
    questions.set(part, question);
    return measureOne(candidate, texts[place]!, question, place);
  });
}

/** The query or one of its asking sentences, prepared for comparing the candidates' texts with it. */
interface Question {
  readonly matcher: QueryMatcher;
  /** The feature `speaker` of each text, in the order of the candidates. */
  readonly speakers: readonly number[];
  /** Whether the question asks for a time. */
  readonly asksWhen: boolean;
  /** Time of the newest event among the candidates, Unix ms; null if the question does not ask for the latest. */
  readonly newest: number | null;
}

/** Prepares a question for the comparison with texts. */
function questionOf(
  { query: { text: query }, matcher }: ComparedPlan,
  candidates: readonly Candidate[],
  texts: readonly TextParts[],
): Question {
  return {
    matcher: matcher(),
    speakers: speakersOf(texts, query),
    asksWhen: ASKS_WHEN.test(query),
    newest: ASKS_LATEST.test(query) ? Math.max(...candidates.map(({ row }) => row.eventTime)) : null,
  };
}

function measureOne(
  candidate: Candidate,
  text: TextParts,
  { matcher, speakers, asksWhen, newest }: Question,
  place: number,
): Measured {
  const age = newest === null ? null : (newest - candidate.row.eventTime) / DAY_MS;
  const features: RerankFeatures = {
    ...matcher.match(text),
    speaker: speakers[place]!,
    statement: 1 - questionShare(text.said),
    dated: asksWhen && TIME.test(text.said) ? 1 : 0,
    recency: age === null ? WEIGHTS.recency.neutral : Math.exp(-EVENT_RECENCY_LAMBDA * age),
  };
  return { features, factor: factorOf(features) };
}

function factorOf(features: RerankFeatures): number {
  let factor = 1;
  for (const name of Object.keys(WEIGHTS) as (keyof RerankFeatures)[]) {
    const { weight, neutral } = WEIGHTS[name];
    factor += weight * (features[name] - neutral);
  }
  return Math.min(MAX_FACTOR, Math.max(MIN_FACTOR, factor));
}

/** The parts of a memory's text that the reranker compares with the query. */
interface TextParts {
  readonly content: string;
  readonly title: string;
  /** Entities, tags and files of the memory as text; '' if it has none. */
  readonly labels: string;
  /**
   * Speaker's name at the start of a line of chat: `Caroline` in `Caroline: I have been there.`; '' if the text does
   * not begin with at most 40 characters and a colon before white space or a character that is not ASCII.
   */
  readonly head: string;
  /** The text after `head` and its colon; the whole text if `head` is ''. */
  readonly said: string;
}

/** Returns the speaker's name at the start of a line of chat, as `TextParts.head` describes it; '' if there is none. */
export function headOf(text: string): string {
  return HEAD.exec(text)?.[1] ?? '';
}

const EMPTY: OwnText = { content: '', title: '', gist: '', entities: '[]', tags: '[]', files: '[]' };
/** Matches the start of a line of chat, from the speaker's name to the colon. */
const HEAD = /^([^\n:：]{1,40})[:：](?=\s|\P{ASCII})/u;

function partsOf(own: OwnText): TextParts {
  const { content, title } = own;
  const head = HEAD.exec(content);
  return {
    content,
    title,
    labels: listedLabelsOf(own),
    head: head?.[1] ?? '',
    said: head === null ? content : content.slice(head[0].length),
  };
}

/**
 * Computes the feature `speaker` of each text. A name before a colon that begins at least two texts counts as a
 * speaker; other such words may be headings. A question about a person is answered more often by what the person says
 * than by what others say to the person. All values are 0.5 if the query names no speaker.
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

/**
 * Returns the share of a text's characters that belong to questions, 0..1. A question begins at the end of the sentence
 * before it and ends with its question mark.
 */
function questionShare(text: string): number {
  let [asked, start] = [0, 0];
  for (const { 0: mark, index } of text.matchAll(SENTENCE_END)) {
    const end = index + mark.length;
    if (mark === '?' || mark === '？') asked += end - start;
    start = end;
  }
  return asked / Math.max(1, text.length);
}

/** Matches the end of a sentence. The mark in `host.org/page?name=value` does not end one. */
const SENTENCE_END = /[.!?](?=[\s"')\]]|$|\P{ASCII})|[。！？\n]/gu;
const ASKS_WHEN =
  /^\W*when\b|\b(?:what|which) (?:date|day|week|month|year|time)\b|\bhow long\b|什么时候|什麼時候|何时|几点|哪天|哪一天|哪年|几月|几号|日期|时间/iu;
const ASKS_LATEST = /\b(?:latest|newest|recent|recently|current|currently|nowadays|these days)\b|最近|最新|目前|现在/iu;
const TIME =
  /\b(?:yesterday|today|tonight|tomorrow|ago|since|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|november|december|(?:19|20)\d\d|(?:last|next|this|past|few|two|three|four|five|six) (?:night|day|week|month|year|spring|summer|autumn|fall|winter|mon|tues|wednes|thurs|fri|satur|sun)\w*)\b|[\d一二三四五六七八九十][年月日号点]|周[一二三四五六日]|星期[一二三四五六日天]|[昨今明后]天|[上下这]个?[周月]|[去今明]年/iu;
