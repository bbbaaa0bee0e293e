import { describe, expect, test } from 'vitest';
import { FairQueue, type QueuedRead } from '../../../src/engine/readers/fair-queue.ts';
import { ReadCosts } from '../../../src/engine/readers/read-costs.ts';
import { FairSchedule, type Member } from '../../../src/engine/readers/fair-schedule.ts';

const all = () => true;
const label = ({ path, key, id }: QueuedRead) => `${path}${key === '' ? '' : `/${key}`} ${id}`;

/** A queue with the costs that its reads had, and short ways to ask and to answer. */
function startQueue() {
  const queue = new FairQueue<QueuedRead>();
  const costs = new ReadCosts();
  let asked = 0;
  const read = (path: string, { key = '', name = 'query' } = {}): QueuedRead => {
    asked += 1;
    return { id: asked, path, key, name, cost: costs.of(path, key, name) };
  };
  const ask = (path: string, options?: { key?: string; name?: string }): QueuedRead => {
    const asking = read(path, options);
    queue.push(asking);
    return asking;
  };
  return { queue, read, ask };
}

test('tenants have their turns one after the other, however many reads of one wait', () => {
  const { queue, ask } = startQueue();
  for (let no = 0; no < 4; no += 1) ask('busy');
  ask('quiet');
  ask('other');
  const order = Array.from({ length: queue.size }, () => label(queue.take(all)!));
  expect(order).toEqual(['busy 1', 'quiet 5', 'other 6', 'busy 2', 'busy 3', 'busy 4']);
  expect(queue.take(all)).toBeUndefined();
  expect(queue.size).toBe(0);
});

test('a tenant whose reads take long waits until the others had as much time', () => {
  const { queue, ask } = startQueue();
  const cost: Record<string, number> = { slow: 1_000, quick: 10 };
  const hadMs: Record<string, number> = { slow: 0, quick: 0 };
  for (const path of ['slow', 'slow', 'quick', 'quick']) ask(path);
  const slowAnswers: number[] = [];
  for (let answered = 0; answered < 500; answered += 1) {
    const read = queue.take(all)!;
    hadMs[read.path]! += cost[read.path]!;
    if (read.path === 'slow') slowAnswers.push(answered);
    queue.end(read, cost[read.path]!);
    ask(read.path);
  }
  expect(Math.abs(hadMs['slow']! - hadMs['quick']!)).toBeLessThanOrEqual(1_000);
  expect(slowAnswers.length).toBeLessThan(10);
});

test('keys of a tenant share its time, and a tenant with many keys has no more of it', () => {
  const { queue, ask } = startQueue();
  const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  for (const key of keys) ask('many', { key });
  ask('one', { key: 'z' });
  const had = new Map<string, number>();
  for (let answered = 0; answered < 1_400; answered += 1) {
    const read = queue.take(all)!;
    queue.end(read, 5);
    had.set(read.key, (had.get(read.key) ?? 0) + 1);
    ask(read.path, { key: read.key });
  }
  expect(had.get('z')).toBeGreaterThan(690);
  for (const key of keys) expect(had.get(key)).toBeGreaterThan(90);
});

test('who was silent is next, and has saved up nothing', () => {
  const { queue, ask } = startQueue();
  for (let no = 0; no < 50; no += 1) {
    ask('busy');
    queue.end(queue.take(all)!, 100);
  }
  for (let no = 0; no < 6; no += 1) ask('busy');
  for (let no = 0; no < 6; no += 1) ask('back');
  const order = Array.from({ length: 8 }, () => {
    const read = queue.take(all)!;
    queue.end(read, 100);
    return read.path;
  });
  expect(order.slice(0, 2)).toContain('back');
  expect(order.filter((path) => path === 'busy').length).toBeGreaterThanOrEqual(3);
});

test('a read that may not run yet holds up no other, of its own key neither', () => {
  const { queue, ask } = startQueue();
  const [held, second, third] = [ask('a', { name: 'explain' }), ask('a'), ask('b')];
  const short = ({ name }: QueuedRead) => name !== 'explain';
  expect([queue.take(short), queue.take(short), queue.take(short)]).toEqual([second, third, undefined]);
  expect(queue.take(all)).toBe(held);
});

test('reads of one key and name stay in their order, and a read that is asked again comes first', () => {
  const { queue, read, ask } = startQueue();
  const [lost, gone] = [read('a'), read('b')];
  const next = ask('a');
  queue.push(gone);
  queue.pushFront(lost);
  queue.remove(gone);
  queue.remove(gone);
  expect(queue.size).toBe(2);
  expect(queue.clear()).toEqual([lost, next]);
  expect(queue.size).toBe(0);
});

test('where too many wait, the latest read of whoever has most waiting goes', () => {
  const { queue, ask } = startQueue();
  const crowd = Array.from({ length: 3 }, () => ask('crowd', { key: 'loud' }));
  ask('crowd', { key: 'soft' });
  ask('crowd', { key: 'soft', name: 'explain' });
  ask('quiet');
  expect(queue.removeFromLongest()).toBe(crowd[2]);
  expect(queue.size).toBe(5);
});

test.each([1, 2, 4, 8])(
  'time that reads were expected to take and did not holds up no other key: %i threads',
  (threads) => {
    const { queue, ask } = startQueue();
    ask('a', { key: 'busy' });
    queue.end(queue.take(all)!, 10_000);
    for (let no = 0; no < 100; no += 1) ask('a', { key: 'busy' });
    const taken = Array.from({ length: threads }, () => queue.take(all)!);
    const endFirst = (ms: number) => {
      queue.end(taken.shift()!, ms);
      taken.push(queue.take(all)!);
    };
    for (let ended = 0; ended < 5; ended += 1) endFirst(1);
    const newcomer = ask('a', { key: 'new' });
    endFirst(90);
    expect(taken.at(-1)).toBe(newcomer);
  },
);

test('who waits for something that may not run yet gives newcomers no lead over the others', () => {
  const { queue, ask } = startQueue();
  const short = ({ name }: QueuedRead) => name !== 'explain';
  ask('held', { name: 'explain' });
  for (let no = 0; no < 50; no += 1) {
    ask('busy');
    queue.end(queue.take(short)!, 100);
  }
  for (const path of ['busy', 'busy', 'busy', 'new', 'new', 'new']) ask(path);
  const order = Array.from({ length: 4 }, () => {
    const read = queue.take(short)!;
    queue.end(read, 100);
    return read.path;
  });
  expect(order.filter((path) => path === 'busy')).toHaveLength(2);
});

describe('members without reads', () => {
  /** A schedule in which one member has a read in hand all the time, and a way for others to have one read each. */
  function startSchedule() {
    const schedule = new FairSchedule<Member>();
    const enter = (name: string) => schedule.enter(name, (member) => member);
    const have = (name: string, ms: number) => {
      const member = enter(name);
      schedule.begin(member, 0);
      schedule.end(member, { expectedMs: 0, ms });
    };
    const held = enter('held');
    schedule.begin(held, 0);
    return { schedule, held, enter, have, next: () => schedule.next(({ name }) => name)?.found };
  }

  test('are not looked at when others have their turns', () => {
    const { schedule, held, have } = startSchedule();
    for (let no = 0; no < 3_000; no += 1) have(`member ${no}`, 1);
    expect([...schedule.members.values()]).toEqual([held]);
  });

  test('go on where they stopped', () => {
    const { schedule, enter, have, next } = startSchedule();
    have('slow', 50_000);
    schedule.leave(enter('slow'));
    for (const name of ['slow', 'other']) enter(name);
    expect(next()).toBe('other');
  });

  test('are forgotten after a thousand others', () => {
    const { enter, have, next } = startSchedule();
    have('slow', 50_000);
    for (let no = 0; no < 1_000; no += 1) have(`member ${no}`, 1);
    for (const name of ['slow', 'other']) enter(name);
    expect(next()).toBe('slow');
  });

  test('owe nothing once nobody has a read', () => {
    const { schedule, held, enter, have, next } = startSchedule();
    have('slow', 50_000);
    schedule.end(held, { expectedMs: 0, ms: 1 });
    expect(schedule.members.size).toBe(0);
    for (const name of ['slow', 'other']) enter(name);
    expect(next()).toBe('slow');
  });
});
