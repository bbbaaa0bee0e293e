import { expect, test } from 'vitest';
import type { ReadCommandName } from '../../../src/engine/readers/commands.ts';
import { createHandOut } from '../../../src/engine/readers/hand-out.ts';
import { FairQueue } from '../../../src/engine/readers/fair-queue.ts';
import type { Read } from '../../../src/engine/readers/read.ts';
import { ReadCosts } from '../../../src/engine/readers/read-costs.ts';
import type { ThreadLink } from '../../../src/engine/readers/thread-link.ts';
import { createThreadPlaces } from '../../../src/engine/readers/thread-places.ts';

/** Threads that keep each read until the test ends it. */
function startThreads(count: number) {
  const works = Array.from({ length: count }, (): Read[] => []);
  const links = works.map((working) => ({ working, send: (read: Read) => void working.push(read) })) as unknown[];
  const alive = new Set(links as ThreadLink[]);
  const waiting = new FairQueue<Read>();
  const costs = new ReadCosts();
  const pool = {
    idle: () => [...alive].filter(({ working }) => working.length === 0),
    has: (link: ThreadLink) => alive.has(link),
    working: () => works.flat(),
    soonIdle: () => undefined,
  };
  const hand = createHandOut({ waiting, pool, places: createThreadPlaces(count) });
  let asked = 0;
  return {
    ask(path: string, name: ReadCommandName = 'compareStanding') {
      waiting.push({ id: (asked += 1), path, key: '', name, cost: costs.of(path, '', name), sentAt: 0 } as Read);
      while (hand.handOne());
    },
    end(thread: number) {
      for (const read of works[thread]!.splice(0)) waiting.end(read, 1);
      while (hand.handOne());
    },
    lose: (thread: number) => alive.delete(links[thread] as ThreadLink),
    told: () => works.map((reads) => reads.map(({ path, name }) => `${path} ${name}`).join()),
  };
}

test('the standing queries of a tenant are compared on one thread, those of another on another', () => {
  const { ask, end, told } = startThreads(4);
  ask('a');
  ask('a');
  expect(told()).toEqual(['a compareStanding', '', '', '']);
  ask('b');
  expect(told()).toEqual(['a compareStanding', 'b compareStanding', '', '']);
  end(0);
  expect(told()).toEqual(['a compareStanding', 'b compareStanding', '', '']);
  end(0);
  ask('a', 'query');
  ask('b');
  expect(told()).toEqual(['a query', 'b compareStanding', '', '']);
  ask('a');
  end(1);
  expect(told()).toEqual(['a query', 'b compareStanding', '', '']);
  end(0);
  expect(told()).toEqual(['a compareStanding', 'b compareStanding', '', '']);
});

test('a thread that ended keeps nothing: another one compares', () => {
  const { ask, end, lose, told } = startThreads(3);
  ask('a');
  end(0);
  lose(0);
  ask('a');
  expect(told()).toEqual(['', 'a compareStanding', '']);
});

test('tenants that come while all threads are idle are spread over them', () => {
  const { ask, end, told } = startThreads(3);
  for (const path of ['a', 'b', 'c', 'd']) {
    ask(path);
    for (const thread of [0, 1, 2]) end(thread);
  }
  // One of the three threads is left to short reads.
  for (const path of ['c', 'b']) ask(path);
  expect(told()).toEqual(['', 'b compareStanding', 'c compareStanding']);
});
