import { areSameDate, datesIn, fitOfDate, type NamedDate } from '../text/dates.ts';
import { adjust, byRawScore, type Candidate, READ_CANDIDATES } from './candidate.ts';
import type { QueryPlan } from './plan.ts';

/** Greatest amount that is added to the factor 1 on the raw score of a memory whose date the question names. */
const DATE_WEIGHT = 0.8;
/** Length of the beginning of a candidate's text that is searched for dates, in Unicode code points. */
const MAX_CHARACTERS = 1_000;

/**
 * Raises the raw score of candidates whose event time is at or near a date that the question names, by a factor of 1 to
 * 1.8. A candidate among the first 24 whose text names the date gets the full factor, since the date may be a property
 * of what is asked for, such as a birthday. A question without a date changes nothing.
 * @param candidates best first
 * @param now time of the question, Unix ms
 * @returns all candidates, sorted anew by raw score if the question names a date
 */
export function applyDates(
  candidates: readonly Candidate[],
  { query: { text }, texts: readTexts }: Pick<QueryPlan, 'query' | 'texts'>,
  now: number,
): Candidate[] {
  const dates = datesIn(text, now);
  if (dates.length === 0) return [...candidates];
  const first = candidates.slice(0, READ_CANDIDATES).map(({ row }) => row.memoryNo);
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
