import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { expect } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { chooseSeed } from '../support/add-checker.ts';
import type { TestApi } from '../support/start-api.ts';

/** Whether the attacks run in their full number (`npm run test:attacks`). */
export const IS_FULL = process.env.CAIRN_ATTACKS === 'full';

/** The number of inputs of an attack: `full` in the whole suite, a fiftieth of it, but at least 20, in `npm test`. */
export function inputs(full: number): number {
  return IS_FULL ? full : Math.max(20, Math.round(full / 50));
}

/** Random choices that follow from a seed, which is printed. */
export interface Chance {
  /** A whole number in 0..below-1. */
  below(below: number): number;
  of<T>(values: readonly T[]): T;
}

export function chance(name: string): Chance {
  const seed = chooseSeed();
  console.log(`${name}: seed ${seed}`);
  const random = createRandom(seed);
  const below = (most: number) => Math.floor(random() * most);
  return { below, of: (values) => values[below(values.length)]! };
}

/** Attacks that are under way at once, most of which wait for a connection to be closed. */
const AT_ONCE = 100;

/** Runs an attack as often as `full` says, many at once. */
export async function inParallel(full: number, attack: () => Promise<void>): Promise<void> {
  const limit = pLimit(AT_ONCE);
  await Promise.all(Array.from({ length: inputs(full) }, () => limit(attack)));
}

/** Checks that the service is alive and well after an attack. */
export async function expectWell(api: TestApi): Promise<void> {
  expect((await api.request('GET', '/health')).status).toBe(200);
  const content = `The service is well: ${randomUUID()}.`;
  const { id } = await api.add({ content, user_id: 'witness' });
  expect((await api.request('GET', `/memory/${id}`)).body['content']).toBe(content);
}
