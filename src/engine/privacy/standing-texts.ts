import type { Json, NewStandingQuery } from '../types.ts';

/** Conditions of a filter that have texts as values, by their names in a filter and in the API. */
const TEXT_CONDITIONS: ReadonlySet<string> = new Set([
  'types',
  'tags',
  'files',
  'metadata',
  'externalIds',
  'external_ids',
]);

/** The fields of a standing query (a stored query that is compared with each new memory) that are screened. */
export type ScreenedQuery = Pick<NewStandingQuery, 'query' | 'filter' | 'given'>;

/**
 * Screens the question of a standing query, its filter, and the filter as the caller wrote it (`given`) for sensitive
 * values. Redacted conditions still match the memories whose values were redacted in the same way. User and session ids
 * are not screened, as in memories.
 * @param screen screens a JSON value; its errors are thrown on
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
