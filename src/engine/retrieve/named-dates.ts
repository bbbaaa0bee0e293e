import { areSameDate, datesIn, fitOfDate, type NamedDate } from '../text/dates.ts';
import { adjust, byRawScore, type Candidate } from './candidate.ts';
import type { QueryPlan } from './plan.ts';

/** Increase of the factor on the raw score for a memory of the day or month that the question names. */
const DATE_WEIGHT = 0.8;
/** Number of candidates in whose texts the dates are looked for: the first ones. */
const MAX_READ = 24;
/** The part of each of these texts that is read, in characters. */
const MAX_CHARACTERS = 1_000;

/**
 * Lifts candidates whose event lies at a date that the question names, by a factor of 1 to 1 + `DATE_WEIGHT`. A
 * candidate whose text names the date is lifted as much, since the date may be a property of what is looked for, such
 * as a birthday. A question without a date changes nothing.
 * @param candidates best first
 * @param now time of the question, Unix ms
 * @returns best first, by raw score
 */
export function applyDates(
  candidates: readonly Candidate[],
  { query: { text }, texts: readTexts }: Pick<QueryPlan, 'query' | 'texts'>,
  now: number,
): Candidate[] {
  const dates = datesIn(text, now);
  if (dates.length === 0) return [...candidates];
  const first = candidates.slice(0, MAX_READ).map(({ row }) => row.memoryNo);
  const texts = readTexts(first, MAX_CHARACTERS);
  return candidates
    .map((candidate) => {
      const { memoryNo, eventTime } = candidate.row;
      const fit = Math.max(...dates.map((date) => fitOfDate(date, eventTime)));
      const isNamed = fit < 1 && namesOneOf(dates, texts.get(memoryNo)?.content ?? '', now);
      const factor = 1 + DATE_WEIGHT * (isNamed ? 1 : fit);
      return factor === 1 ? candidate : adjust(candidate, { by: 'rerank', factor });
    })
    .sort(byRawScore);
}

function namesOneOf(dates: readonly NamedDate[], text: string, now: number): boolean {
  const named = datesIn(text, now);
  return dates.some((date) => named.some((other) => areSameDate(date, other)));
}
