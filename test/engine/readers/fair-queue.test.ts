import { expect, test } from 'vitest';
import { createFairQueue } from '../../../src/engine/readers/fair-queue.ts';

interface Read {
  readonly path: string;
  readonly no: number;
}

const all = () => true;
const read = (path: string, no: number): Read => ({ path, no });

test('files have their turns one after the other, however many reads of one wait', () => {
  const queue = createFairQueue<Read>();
  for (let no = 0; no < 4; no += 1) queue.push(read('busy', no));
  queue.push(read('quiet', 0));
  queue.push(read('other', 0));
  const order = Array.from({ length: queue.size }, () => queue.take(all)!).map(({ path, no }) => `${path} ${no}`);
  expect(order).toEqual(['busy 0', 'quiet 0', 'other 0', 'busy 1', 'busy 2', 'busy 3']);
  expect(queue.take(all)).toBeUndefined();
  expect(queue.size).toBe(0);
});

test('a read that may not run yet holds up no other', () => {
  const queue = createFairQueue<Read>();
  const [held, second, third] = [read('a', 0), read('a', 1), read('b', 0)];
  for (const one of [held, second, third]) queue.push(one);
  const others = (one: Read) => one !== held;
  expect([queue.take(others), queue.take(others), queue.take(others)]).toEqual([second, third, undefined]);
  expect(queue.take(all)).toBe(held);
});

test('reads go to the front and away', () => {
  const queue = createFairQueue<Read>();
  const [first, second, gone] = [read('a', 0), read('a', 1), read('b', 0)];
  queue.push(second);
  queue.push(gone);
  queue.pushFront(first);
  queue.remove(gone);
  queue.remove(gone);
  expect(queue.size).toBe(2);
  expect(queue.clear()).toEqual([first, second]);
  expect(queue.size).toBe(0);
});
