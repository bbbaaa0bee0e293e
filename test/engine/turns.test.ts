import { expect, test } from 'vitest';
import { createGuard } from '../../src/engine/privacy/guard.ts';
import { inQuietTurn, nextTurn, noteConnection, runInShare, takeTurn } from '../../src/engine/turns.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { turnsDuring } from '../support/turns-during.ts';

const TEXT = 'The meeting was moved to Tuesday, and Ann brings the notes of the last one with her. '.repeat(10);
const texts = Array.from({ length: 3_000 }, (_, at) => `${at}. ${TEXT}`);

test.each([
  ['at once', (screen: (text: string) => Promise<unknown>) => Promise.all(texts.map(screen))],
  [
    'one after the other',
    async (screen: (text: string) => Promise<unknown>) => {
      for (const text of texts) await screen(text);
    },
  ],
])('many short texts that are screened %s leave turns to others', async (_, all) => {
  const policy = { secrets: 'redact', personal: 'redact' } as const;
  const guard = createGuard({ policy: () => policy, analyzer: null, count: () => {} });
  expect(await turnsDuring(() => all((text) => guard.fields({ content: text })))).toBeGreaterThan(3);
});

test('a value of many lists without texts is screened in turns', async () => {
  const policy = { secrets: 'redact', personal: 'redact' } as const;
  const guard = createGuard({ policy: () => policy, analyzer: null, count: () => {} });
  const value = Array.from({ length: 100_000 }, () => []);
  expect(await turnsDuring(() => guard.fields({ value }))).toBeGreaterThan(3);
});

test('an evaluation set is screened in turns', async () => {
  await using fixture = await openTestEngine({ settings: { OM_PII: 'redact' } });
  const items = texts.slice(0, 1_000).map((query) => ({ query: query.slice(0, 800), expected: [TEXT] }));
  const set = { name: 'large', guard: false, items };
  expect(await turnsDuring(() => fixture.tenant.putEval(set))).toBeGreaterThan(10);
});

test('works that take turns share each turn, however many they are', async () => {
  const steps: number[] = [];
  let turn = 0;
  let isDone = false;
  const count = () => {
    turn += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  /** Works for 20 steps of half a millisecond or more. */
  const work = async () => {
    for (let step = 0; step < 20; step++) {
      for (const until = performance.now() + 0.5; performance.now() < until;);
      steps[turn] = (steps[turn] ?? 0) + 1;
      await takeTurn();
    }
  };
  await Promise.all(Array.from({ length: 20 }, work));
  isDone = true;
  const counts = Array.from(steps, (here) => here ?? 0);
  expect(counts.reduce((sum, here) => sum + here)).toBe(400);
  // Each of them takes its first step before it takes turns.
  expect(counts[0]).toBeLessThanOrEqual(20 + 7);
  expect(Math.max(...counts.slice(1))).toBeLessThanOrEqual(8);
});

test('tenants have equal shares of turns, and the keys of a tenant, however much waits', async () => {
  const order: string[] = [];
  const wait = (tenantId: string, keyId: string, count: number) =>
    Array.from({ length: count }, () =>
      runInShare({ tenantId, keyId }, async () => {
        await Promise.resolve();
        await nextTurn();
        order.push(`${tenantId} ${keyId}`);
      }),
    );
  await Promise.all([...wait('a', 'busy', 60), ...wait('a', 'quiet', 2), ...wait('b', 'one', 10)]);
  expect(order.slice(0, 8).filter((who) => who === 'b one')).toHaveLength(4);
  expect(order.slice(0, 8).filter((who) => who === 'a quiet')).toHaveLength(2);
  expect(order.slice(0, 20).filter((who) => who === 'b one')).toHaveLength(10);
  expect(order).toHaveLength(72);
});

test('work waits while connections arrive, each of which takes a turn of its own', async () => {
  let [turns, ranIn] = [0, -1];
  inQuietTurn(() => (ranIn = turns));
  for (; turns < 20; turns += 1) {
    noteConnection();
    await new Promise(setImmediate);
    expect(ranIn).toBe(-1);
  }
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(ranIn).toBe(20);
  // Connections that never end hold it up for a while, not for good.
  let isDone = false;
  const arrive = () => {
    noteConnection();
    if (!isDone) setImmediate(arrive);
  };
  arrive();
  await new Promise<void>((resolve) => inQuietTurn(resolve));
  isDone = true;
});

test('settings that many change at once are committed one in each turn', async () => {
  await using fixture = await openTestEngine();
  const { control } = fixture.engine;
  let turn = 0;
  let isDone = false;
  const count = () => {
    turn += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const turns: number[] = [];
  const put = control.putSetting;
  control.putSetting = (...setting) => {
    turns.push(turn);
    put(...setting);
  };
  const policy = { secrets: 'mark', personal: 'off' } as const;
  const changes = Array.from({ length: 10 }, () => fixture.tenant.putPrivacyPolicy(policy));
  const defaults = Array.from({ length: 10 }, () => fixture.tenant.putRetrievalDefaults({ minScore: 0.1 }));
  await Promise.all([...changes, ...defaults]);
  isDone = true;
  expect(new Set(turns).size).toBe(20);
});
