import type { TestApi } from '../start-api.ts';

/** Sends `count` wrong keys one after the other. Returns the number of replies by HTTP status. */
export async function guessKeys(api: TestApi, count: number): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  for (let guess = 0; guess < count; guess++) {
    const { status } = await api.request('GET', '/settings/retrieval', { key: `guess-number-${guess}-of-many` });
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
  return statuses;
}
