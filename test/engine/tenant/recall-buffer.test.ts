import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/engine/ports.ts';
import type { RecallToKeep } from '../../../src/engine/store/recalls.ts';
import { createRecallBuffer } from '../../../src/engine/tenant/recall-buffer.ts';
import type { Writer } from '../../../src/engine/writer/writer.ts';

interface Size {
  readonly length?: number;
  readonly rows?: number;
  readonly asked?: RecallToKeep['asked'];
}

function recallOf(recallId: string, { length = 10, rows = 0, asked = {} }: Size = {}): RecallToKeep {
  const candidates = Array.from({ length: rows }, (_, n) => ({ memoryNo: n, id: `m${n}`, data: '{}' }));
  return { recallId, at: 0, asked, head: 'x'.repeat(length), candidates, supersededNos: [] };
}

/** A writer whose writes to a path end when the test lets them: those of `held` paths wait. */
function slowWriter(held: Set<string>) {
  const written: { readonly path: string; readonly ids: readonly string[] }[] = [];
  const begun: string[] = [];
  let letGo = () => {};
  const released = new Promise<void>((resolve) => (letGo = resolve));
  const writer = {
    async write(path: string, name: string, { recalls }: { recalls: readonly { recallId: string }[] }) {
      begun.push(`${path} ${name}`);
      if (held.has(path)) await released;
      written.push({ path, ids: recalls.map(({ recallId }) => recallId) });
    },
  } as unknown as Writer;
  return { writer, written, begun, letGo };
}

const log = (buffer: ReturnType<typeof createRecallBuffer>, path: string, recall: RecallToKeep) =>
  buffer.log(path, Promise.resolve(recall));

test('a flush waits for its own file alone, and a slow file delays no other', async () => {
  const { writer, written, begun, letGo } = slowWriter(new Set(['slow']));
  const buffer = createRecallBuffer(writer, silentLogger);
  log(buffer, 'slow', recallOf('a'));
  log(buffer, 'quick', recallOf('b'));
  let isSlowDone = false;
  const slow = buffer.flush('slow').then(() => (isSlowDone = true));
  await buffer.flush('quick');
  expect(written).toEqual([{ path: 'quick', ids: ['b'] }]);
  while (!begun.includes('slow logRecalls')) await new Promise(setImmediate);
  expect(isSlowDone).toBe(false);
  letGo();
  await slow;
  expect(written.map(({ ids }) => ids)).toEqual([['b'], ['a']]);
});

test('what waits behind a slow write is bounded: the oldest are dropped', async () => {
  const { writer, written, begun, letGo } = slowWriter(new Set(['a']));
  const buffer = createRecallBuffer(writer, silentLogger);
  log(buffer, 'a', recallOf('first'));
  const first = buffer.flush('a');
  while (begun.length === 0) await new Promise(setImmediate);
  for (let n = 0; n < 3_000; n += 1) {
    log(buffer, 'a', recallOf(`n${n}`));
    if (n % 500 === 0) void buffer.flush();
  }
  letGo();
  await first;
  await buffer.flush();
  const ids = written.flatMap((one) => one.ids);
  expect(ids).toEqual(['first', ...Array.from({ length: 1_000 }, (_, n) => `n${n + 2_000}`)]);
});

test('what all files hold together is bounded, and the one that holds most gives up its oldest', async () => {
  const { writer, written, begun, letGo } = slowWriter(new Set(['a', 'b']));
  const buffer = createRecallBuffer(writer, silentLogger);
  for (const path of ['a', 'b']) log(buffer, path, recallOf('first'));
  const first = buffer.flush();
  while (begun.length < 2) await new Promise(setImmediate);
  log(buffer, 'b', recallOf('b', { length: 1024 * 1024 }));
  for (let n = 0; n < 100; n += 1) log(buffer, 'a', recallOf(`n${n}`, { length: 1024 * 1024 }));
  await new Promise(setImmediate);
  letGo();
  await first;
  await buffer.flush();
  const idsOf = (path: string) => written.flatMap((one) => (one.path === path ? one.ids : []));
  expect(idsOf('b')).toEqual(['first', 'b']);
  expect(idsOf('a')).toEqual(['first', ...Array.from({ length: 63 }, (_, n) => `n${n + 37}`)]);
});

test('one write logs at most 64 recalls, 1,000 rows and 256 Ki code units, or one recall with more', async () => {
  const { writer, written } = slowWriter(new Set());
  const buffer = createRecallBuffer(writer, silentLogger);
  const long = { length: 200 * 1024 };
  const sizes = [{ length: 1024 * 1024 }, long, long, { rows: 1_500 }, { rows: 600 }, { rows: 300 }, { rows: 200 }];
  sizes.forEach((size, n) => log(buffer, 'a', recallOf(`r${n}`, size)));
  buffer.log('a', Promise.reject(new Error('not built')));
  for (let n = 0; n < 70; n += 1) log(buffer, 'a', recallOf(`n${n}`));
  await buffer.flush('a');
  expect(written.slice(0, 5).map(({ ids }) => ids)).toEqual([['r0'], ['r1'], ['r2'], ['r3'], ['r4', 'r5']]);
  expect(written[5]!.ids[0]).toBe('r6');
  expect(written.slice(5).map(({ ids }) => ids.length)).toEqual([64, 7]);
});

test('users and sessions that recalls name count as rows and as texts of a write', async () => {
  const { writer, written } = slowWriter(new Set());
  const buffer = createRecallBuffer(writer, silentLogger);
  const names = (length: number) => Array.from({ length: 100 }, (_, no) => String(no).padStart(length, 'n'));
  for (let n = 0; n < 12; n += 1) {
    const long = names(n < 10 ? 4 : 1_020);
    log(buffer, 'a', recallOf(`r${n}`, { asked: { userIds: long, sessionIds: long } }));
  }
  await buffer.flush('a');
  expect(written.map(({ ids }) => ids.length)).toEqual([5, 5, 1, 1]);
});

test('users and sessions that waiting recalls name are bounded together with their texts', async () => {
  const { writer, written, begun, letGo } = slowWriter(new Set(['a']));
  const buffer = createRecallBuffer(writer, silentLogger);
  log(buffer, 'a', recallOf('first'));
  const first = buffer.flush();
  while (begun.length === 0) await new Promise(setImmediate);
  const asked = { userIds: ['u'.repeat(512 * 1024 - 3)], sessionIds: ['s'.repeat(512 * 1024 - 13)] };
  for (let n = 0; n < 100; n += 1) log(buffer, 'a', recallOf(`n${n}`, { asked }));
  await new Promise(setImmediate);
  letGo();
  await first;
  await buffer.flush();
  expect(written.flatMap(({ ids }) => ids)).toEqual(['first', ...Array.from({ length: 64 }, (_, n) => `n${n + 36}`)]);
});

test('effects of recalls are written in their order, 64 at most in one write', async () => {
  const { writer, written } = slowWriter(new Set());
  const buffer = createRecallBuffer(writer, silentLogger);
  for (let n = 0; n < 100; n += 1) {
    const effects = { memories: [], waypoints: [], recallId: `e${n}` };
    buffer.add('a', effects as unknown as Parameters<typeof buffer.add>[1]);
  }
  await buffer.flush('a');
  expect(written.map(({ ids }) => ids.length)).toEqual([64, 36]);
  expect(written.flatMap(({ ids }) => ids)).toEqual(Array.from({ length: 100 }, (_, n) => `e${n}`));
});

test('effects that wait are bounded by their rows, too: the oldest are dropped', async () => {
  const { writer, written, begun, letGo } = slowWriter(new Set(['a']));
  const buffer = createRecallBuffer(writer, silentLogger);
  const add = (recallId: string, rows: number) => {
    const effects = {
      memories: Array.from({ length: rows / 2 }),
      waypoints: Array.from({ length: rows / 2 }),
      recallId,
    };
    buffer.add('a', effects as unknown as Parameters<typeof buffer.add>[1]);
  };
  add('first', 2);
  const first = buffer.flush('a');
  while (begun.length === 0) await new Promise(setImmediate);
  for (let n = 0; n < 250; n += 1) add(`e${n}`, 1_000);
  letGo();
  await first;
  await buffer.flush('a');
  const ids = written.flatMap((one) => one.ids);
  expect(ids).toEqual(['first', ...Array.from({ length: 200 }, (_, n) => `e${n + 50}`)]);
  // What was written counts no more.
  for (let n = 0; n < 150; n += 1) add(`later ${n}`, 1_000);
  await buffer.flush('a');
  expect(written.flatMap((one) => one.ids)).toHaveLength(351);
});
