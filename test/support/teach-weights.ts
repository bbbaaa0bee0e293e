import { expect } from 'vitest';
import type { ManualClock } from './engine-fixture.ts';
import type { TestApi } from './start-api.ts';

const DAY = 86_400_000;
/** Questions with a judged answer; learning needs 40. */
const TURNS = 44;

/**
 * Gives feedback to a tenant without vectors (`OM_EMBEDDINGS=none`) that teaches it to rank recent memories higher:
 * adds ten memories of different age, sends queries, and gives feedback on each answer.
 */
export async function teachRecency(api: TestApi, clock: ManualClock): Promise<void> {
  const padding = ['', ' and a crossing', ' and crossings for the week', ''];
  for (let number = 0; number < 10; number++) {
    await api.add({ content: `A harbour ferry notice of number ${number}${padding[number % 4]}.` });
    clock.advance(5 * DAY);
  }
  for (let turn = 0; turn < TURNS; turn++) await askAndJudge(api, turn, clock);
}

/**
 * Sends a query with ten matches of different age, and gives the feedback that the three youngest were used and the
 * others were useless.
 */
async function askAndJudge(api: TestApi, turn: number, clock: ManualClock): Promise<void> {
  const asked = await api.request('POST', '/memory/query', {
    body: { query: `harbour ferry notice ${turn}`, k: 10, min_score: 0, reinforce: false, collapse_similar: false },
  });
  const { matches } = asked.body as unknown as { matches: { id: string; content: string }[] };
  const recallId = asked.body['recall_id'] as string;
  const ageOf = (content: string) => Number(/number (\d+)/.exec(content)![1]);
  const byAge = matches.toSorted((a, b) => ageOf(b.content) - ageOf(a.content)).map(({ id }) => id);
  clock.advance(60_000);
  for (const [verdict, memory_ids] of [
    ['used', byAge.slice(0, 3)],
    ['useless', byAge.slice(3)],
  ]) {
    const told = await api.request('POST', `/recalls/${recallId}/feedback`, { body: { verdict, memory_ids } });
    expect(told.status, told.text).toBe(200);
  }
}
