import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { expect } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { chooseSeed } from '../support/add-checker.ts';
import type { TestApi } from '../support/start-api.ts';

/** Whether the attacks run in their full number (`npm run test:attacks`). */
export const IS_FULL = process.env.CAIRN_ATTACKS === 'full';

/**
 * Returns the number of inputs of an attack: `full` in the whole suite; in `npm test` a fiftieth of that, and at least
 * 20.
 */
export function inputs(full: number): number {
  return IS_FULL ? full : Math.max(20, Math.round(full / 50));
}

/** Random choices. Equal seeds make equal choices. */
export interface Chance {
  /** Returns an integer from 0 to `below` - 1. */
  below(below: number): number;
  /** Returns one of the values. */
  of<T>(values: readonly T[]): T;
}

/** Makes random choices from a seed (`chooseSeed`), and prints the seed with the name of the test. */
export function chance(name: string): Chance {
  const seed = chooseSeed();
  console.log(`${name}: seed ${seed}`);
  const random = createRandom(seed);
  const below = (most: number) => Math.floor(random() * most);
  return { below, of: (values) => values[below(values.length)]! };
}

/** Number of attacks that run at the same time; most of them wait for a connection to be closed. */
const AT_ONCE = 100;

/** Runs an attack `inputs(full)` times, at most 100 at the same time. */
export async function inParallel(full: number, attack: () => Promise<void>): Promise<void> {
  const limit = pLimit(AT_ONCE);
  await Promise.all(Array.from({ length: inputs(full) }, () => limit(attack)));
}

/** Checks that the service answers, and stores and returns a memory, after an attack. */
export async function expectWell(api: TestApi): Promise<void> {
  expect((await api.request('GET', '/health')).status).toBe(200);
  const content = `The service is well: ${randomUUID()}.`;
  const { id } = await api.add({ content, user_id: 'witness' });
  expect((await api.request('GET', `/memory/${id}`)).body['content']).toBe(content);
}
