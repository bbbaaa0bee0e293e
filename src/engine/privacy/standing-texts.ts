import type { Json, NewStandingQuery } from '../types.ts';

/** Conditions of a filter that contain texts, by their names in a filter and in the API. */
const TEXT_CONDITIONS: ReadonlySet<string> = new Set([
  'types',
  'tags',
  'files',
  'metadata',
  'externalIds',
  'external_ids',
]);

/** The parts of a standing query that are screened. */
export type ScreenedQuery = Pick<NewStandingQuery, 'query' | 'filter' | 'given'>;

/**
 * Screens the question and the conditions of a standing query. Redacted conditions still match, because the values that
 * they match were redacted before they were stored. User and session ids are not screened, as they are not in a memory
 * either.
 * @param screen screens a JSON value
 */
export async function screenStandingQuery(
  { query, filter, given }: ScreenedQuery,
  screen: (value: Json) => Promise<Json>,
): Promise<ScreenedQuery> {
  const textsOf = (conditions: object) =>
    Object.fromEntries(
      Object.entries(conditions).filter(([name, value]) => TEXT_CONDITIONS.has(name) && value),
    ) as Json;
  const screened = (await screen({
    query,
    filter: textsOf(filter),
    given: textsOf(given),
  })) as unknown as ScreenedQuery;
  return {
    query: screened.query,
    filter: { ...filter, ...screened.filter },
    given: { ...given, ...screened.given },
  };
}
