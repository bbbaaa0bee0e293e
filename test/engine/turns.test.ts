import { expect, test } from 'vitest';
import { createGuard } from '../../src/engine/privacy/guard.ts';
import { takeTurn } from '../../src/engine/turns.ts';
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
