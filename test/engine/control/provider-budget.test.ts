import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { MAX_FAILURES, type CallOutcome } from '../../../src/engine/control/provider-breaker.ts';
import {
  openProviderBudget,
  type BudgetOptions,
  type ProviderBudget,
  type ProviderPermit,
  type WaitReason,
} from '../../../src/engine/control/provider-budget.ts';
import { createRandom } from '../../../src/engine/random.ts';
import { startEmbeddingPair } from '../../support/embedding-process.ts';
import { createManualClock, START } from '../../support/engine-fixture.ts';
import { startFakeProvider } from '../../support/fake-provider.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const MINUTE_MS = 60_000;
const clock = createManualClock();

function budgetFile(): string {
  clock.set(START);
  return path.join(tempFolder(), 'cairn.budget.sqlite');
}

/** What one process sees of the file. */
function open(file: string, options: Partial<BudgetOptions> = {}): ProviderBudget {
  const budget = openProviderBudget({ file, requestsPerMinute: 0, tokensPerMinute: 0, clock, ...options });
  onTestFinished(() => budget.close());
  return budget;
}

/** As a query asks: without waiting. @returns undefined if it is told to go without */
async function ask(budget: ProviderBudget, tokens = 1): Promise<ProviderPermit | undefined> {
  return budget.acquire(tokens, { patient: false }).catch(() => undefined);
}

async function answerTo(budget: ProviderBudget, outcome: CallOutcome): Promise<void> {
  const permit = await ask(budget);
  expect(permit).toBeDefined();
  permit!.end(outcome);
}

/** How long a refused call is told to wait (ms). */
async function putOffFor(budget: ProviderBudget): Promise<number | undefined> {
  return budget.acquire(1, { patient: false }).then(
    () => 0,
    (error: { retryAfterMs?: number }) => error.retryAfterMs,
  );
}

async function failUntilOpen(budget: ProviderBudget): Promise<void> {
  for (let failure = 0; failure < MAX_FAILURES; failure++) await answerTo(budget, { kind: 'failed' });
}

// ── The minute ───────────────────────────────────────────────────────────────────────────────────────────────────────

test('no 60 seconds of two processes together hold more than the limits, and nearly all of a limit can be used', async () => {
  const seed = Date.now() % 1_000_000;
  const random = createRandom(seed);
  const limits = { requestsPerMinute: 60, tokensPerMinute: 9_000 };
  const file = budgetFile();
  const budgets = [open(file, limits), open(file, limits)];
  const started: { at: number; tokens: number }[] = [];
  const minutes = 8;
  while (clock.now() < START + minutes * MINUTE_MS) {
    const tokens = 50 + Math.floor(random() * 200);
    const at = clock.now();
    if (await ask(budgets[random() < 0.5 ? 0 : 1]!, tokens)) started.push({ at, tokens });
    else clock.advance(Math.floor(random() * 900));
  }
  for (const { at } of started) {
    const window = started.filter((call) => call.at >= at && call.at < at + MINUTE_MS);
    expect(window.length, `seed ${seed}`).toBeLessThanOrEqual(limits.requestsPerMinute);
    expect(
      window.reduce((sum, call) => sum + call.tokens, 0),
      `seed ${seed}`,
    ).toBeLessThanOrEqual(limits.tokensPerMinute);
  }
  // Whichever limit is met first: 150 tokens a call make it either. The last minute had only begun to fill.
  const used = Math.max(
    started.length / limits.requestsPerMinute,
    started.reduce((sum, call) => sum + call.tokens, 0) / limits.tokensPerMinute,
  );
  console.log(`seed ${seed}: ${started.length} calls, ${((100 * used) / minutes).toFixed(1)} % of ${minutes} minutes`);
  expect(used / minutes).toBeGreaterThan(0.95);
});

test('two processes that want all they can get stay within the limit, counted by the provider', async () => {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  const settings = {
    OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'),
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_VEC_DIM: '256',
    OM_EMBED_BATCH_TEXTS: '1',
    OM_EMBED_RPM: '20',
  };
  const processes = await startEmbeddingPair(settings);
  const texts = Array.from({ length: 30 }, (_, number) => `question ${number}`);
  const replies = (await Promise.all(processes.map((one) => one.embed(texts, 'query')))).flat();
  // It all took less than a minute.
  expect(provider.calls.length).toBe(20);
  expect(replies.filter(({ outcome }) => outcome === 'ok').length).toBe(20);
  expect(new Set(replies.map(({ outcome }) => outcome))).toEqual(new Set(['ok', 'rate_limited']));
});

test('a query is told at once to go without, a document waits until its caller gives up', async () => {
  const heldBack: WaitReason[] = [];
  const budget = open(budgetFile(), { requestsPerMinute: 2, onHeldBack: (reason) => heldBack.push(reason) });
  await ask(budget);
  await ask(budget);
  await expect(budget.acquire(1, { patient: false })).rejects.toMatchObject({ code: 'rate_limited' });
  const giveUp = new AbortController();
  const waiting = budget.acquire(1, { patient: true, signal: giveUp.signal });
  giveUp.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'unavailable' });
  expect(heldBack).toEqual(['budget', 'budget']);
});

test('a document that waits goes on when the minute has room again', async () => {
  const budget = open(budgetFile(), { requestsPerMinute: 1 });
  await ask(budget);
  const waiting = budget.acquire(1, { patient: true });
  clock.advance(2 * MINUTE_MS);
  (await waiting).end({ kind: 'answered' });
});

test('documents leave some of the minute to queries', async () => {
  const budget = open(budgetFile(), { requestsPerMinute: 100 });
  for (let call = 0; call < 98; call++) await budget.acquire(1, { patient: true });
  const giveUp = new AbortController();
  const document = budget.acquire(1, { patient: true, signal: giveUp.signal });
  expect(await ask(budget)).toBeDefined();
  expect(await ask(budget)).toBeDefined();
  expect(await ask(budget)).toBeUndefined();
  giveUp.abort();
  await expect(document).rejects.toThrow();
});

test('a call that is larger than the whole budget passes when nothing else is under way', async () => {
  const budget = open(budgetFile(), { tokensPerMinute: 100 });
  await ask(budget, 10);
  expect(await ask(budget, 500)).toBeUndefined();
  clock.advance(2 * MINUTE_MS);
  expect(await ask(budget, 500)).toBeDefined();
  expect(await ask(budget, 1)).toBeUndefined();
});

// ── Pauses and the breaker ───────────────────────────────────────────────────────────────────────────────────────────

test('a pause that one process was asked for holds back the other, and ends', async () => {
  const file = budgetFile();
  const [first, second] = [open(file), open(file)];
  await answerTo(first, { kind: 'limited', retryAfterMs: 30_000 });
  expect(await putOffFor(second)).toBe(30_000);
  clock.advance(29_999);
  expect(await putOffFor(second)).toBe(1);
  clock.advance(1);
  expect(await putOffFor(second)).toBe(0);
});

test('a call that was under way ends no pause with its answer', async () => {
  const budget = open(budgetFile());
  const early = await ask(budget);
  await answerTo(budget, { kind: 'failed' });
  await answerTo(budget, { kind: 'limited', retryAfterMs: 30_000 });
  early!.end({ kind: 'answered' });
  expect(await putOffFor(budget)).toBe(30_000);
});

test('a real 429 with Retry-After holds back another process', async () => {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  const settings = {
    OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'),
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_VEC_DIM: '256',
  };
  const [first, second] = await startEmbeddingPair(settings);
  provider.setMode('rate_limited', { times: 1, headers: { 'retry-after': '1' } });
  expect(await first.embed(['one'])).toMatchObject([{ outcome: 'rate_limited' }]);
  const begun = performance.now();
  for (;;) {
    const [reply] = await second.embed(['two']);
    if (reply?.outcome === 'ok') break;
    expect(reply).toMatchObject({ outcome: 'rate_limited' });
    await pause(Math.min(reply!.retryAfterMs ?? 0, 100));
  }
  expect(provider.calls.length).toBe(2);
  expect(provider.calls[1]!.at - provider.calls[0]!.at).toBeGreaterThan(900);
  expect(performance.now() - begun).toBeLessThan(60_000);
});

test('after five failures in a row nobody calls, then one of all probes, and an answer lets everybody in', async () => {
  const file = budgetFile();
  const [first, second] = [open(file), open(file)];
  await failUntilOpen(first);
  expect(second.isBreakerOpen()).toBe(true);
  expect(await putOffFor(second)).toBe(1_000);
  clock.advance(1_000);
  const probe = await ask(second);
  expect(probe).toBeDefined();
  expect(await ask(first)).toBeUndefined();
  expect(await ask(second)).toBeUndefined();
  probe!.end({ kind: 'answered' });
  expect(first.isBreakerOpen()).toBe(false);
  expect(await ask(first)).toBeDefined();
  expect(await ask(second)).toBeDefined();
});

test('an answer between failures starts the count again', async () => {
  const budget = open(budgetFile());
  for (let round = 0; round < MAX_FAILURES; round++) {
    for (let failure = 1; failure < MAX_FAILURES; failure++) await answerTo(budget, { kind: 'failed' });
    await answerTo(budget, { kind: 'answered' });
  }
  expect(budget.isBreakerOpen()).toBe(false);
});

test('each probe that fails doubles the pause, to half a minute at most', async () => {
  const budget = open(budgetFile());
  await failUntilOpen(budget);
  const pauses: (number | undefined)[] = [];
  for (let probe = 0; probe < 8; probe++) {
    const ms = await putOffFor(budget);
    pauses.push(ms);
    clock.advance(ms!);
    await answerTo(budget, { kind: 'failed' });
  }
  expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
});

test('calls that were under way when the breaker opened say nothing more', async () => {
  const budget = open(budgetFile());
  const underWay = [await ask(budget), await ask(budget), await ask(budget)];
  await failUntilOpen(budget);
  for (const permit of underWay) permit!.end({ kind: 'failed' });
  expect(await putOffFor(budget)).toBe(1_000);
});

test('a probe that nobody waited for, or whose process died, makes room for another', async () => {
  const file = budgetFile();
  const [first, second] = [open(file), open(file)];
  await failUntilOpen(first);
  clock.advance(1_000);
  (await ask(first))!.end({ kind: 'abandoned' });
  expect(await ask(second)).toBeDefined(); // It never reports.
  expect(await ask(first)).toBeUndefined();
  clock.advance(MINUTE_MS);
  expect(await ask(first)).toBeDefined();
});

test('a server that is down and says for how long is left alone for so long', async () => {
  const budget = open(budgetFile());
  await answerTo(budget, { kind: 'failed', retryAfterMs: 20_000 });
  expect(await putOffFor(budget)).toBe(20_000);
  clock.advance(20_000);
  expect(await putOffFor(budget)).toBe(0);
});

test('nobody waits for a probe where there is another server to ask', async () => {
  const budget = open(budgetFile());
  await failUntilOpen(budget);
  clock.advance(1_000);
  expect(await ask(budget)).toBeDefined();
  await expect(budget.acquire(1, { patient: true, hasOther: true })).rejects.toMatchObject({ code: 'rate_limited' });
});

// ── What replies say ─────────────────────────────────────────────────────────────────────────────────────────────────

interface Told {
  readonly requests?: number;
  readonly tokens?: number;
  readonly limit?: number;
  readonly resetMs: number;
}

/** A reply that says what is left. */
function headersOf({ requests, tokens, limit = 100, resetMs }: Told): Headers {
  const headers = new Headers();
  for (const [kind, left] of Object.entries({ requests, tokens })) {
    if (left === undefined) continue;
    headers.set(`x-ratelimit-limit-${kind}`, String(limit));
    headers.set(`x-ratelimit-remaining-${kind}`, String(left));
    headers.set(`x-ratelimit-reset-${kind}`, `${resetMs}ms`);
  }
  return headers;
}

async function hear(budget: ProviderBudget, told: Told, outcome: CallOutcome = { kind: 'answered' }): Promise<void> {
  const permit = await ask(budget);
  permit!.heard(headersOf(told));
  permit!.end(outcome);
}

test.each<[string, Told]>([
  ['requests', { requests: 0, resetMs: 20_000 }],
  ['tokens', { tokens: 0, resetMs: 20_000 }],
])('a reply that says that no %s are left holds back all processes until they begin anew', async (_kind, told) => {
  const file = budgetFile();
  const [first, second] = [open(file), open(file)];
  await hear(first, told);
  expect(await putOffFor(second)).toBe(20_000);
  clock.advance(19_999);
  expect(await putOffFor(first)).toBe(1);
  clock.advance(1);
  expect(await putOffFor(second)).toBe(0);
});

test('what is left is spent by every process, until a reply says otherwise', async () => {
  const file = budgetFile();
  const [first, second] = [open(file), open(file)];
  await hear(first, { requests: 3, resetMs: 60_000 });
  const permits = [await ask(first), await ask(second), await ask(first)];
  expect(permits.every(Boolean)).toBe(true);
  expect(await ask(second)).toBeUndefined();
  for (const permit of permits) permit!.end({ kind: 'answered' });
  expect(await ask(second)).toBeUndefined();
  clock.advance(60_000);
  await hear(second, { requests: 50, resetMs: 60_000 });
  expect(await ask(first)).toBeDefined();
});

test('calls under way are taken off what a reply says, as the provider may not have counted them', async () => {
  const budget = open(budgetFile());
  const slow = await ask(budget, 40);
  const answered = await ask(budget, 10);
  answered!.heard(headersOf({ tokens: 50, resetMs: 10_000 }));
  answered!.end({ kind: 'answered' });
  expect(await ask(budget, 11)).toBeUndefined();
  expect(await ask(budget, 10)).toBeDefined();
  slow!.end({ kind: 'answered' });
});

test('a reply that was overtaken by another raises nothing', async () => {
  const budget = open(budgetFile());
  const [early, late] = [await ask(budget), await ask(budget)];
  late!.heard(headersOf({ requests: 1, resetMs: 10_000 }));
  late!.end({ kind: 'answered' }); // Nothing is left, with the early one.
  early!.heard(headersOf({ requests: 2, resetMs: 10_000 }));
  early!.end({ kind: 'answered' });
  expect(await ask(budget)).toBeUndefined();
});

test('a call whose process died is taken off for a minute', async () => {
  const budget = open(budgetFile());
  await ask(budget, 40); // It never reports.
  clock.advance(MINUTE_MS + 2_000);
  await hear(budget, { tokens: 50, resetMs: 10_000 });
  expect(await ask(budget, 50)).toBeDefined();
});

test('a text that takes more than is ever left passes when the limit begins anew', async () => {
  const budget = open(budgetFile());
  await hear(budget, { tokens: 100, limit: 100, resetMs: 5_000 });
  expect(await ask(budget, 500)).toBeUndefined();
  clock.advance(5_000);
  expect(await ask(budget, 500)).toBeDefined();
});

test('documents leave some of what is left to queries', async () => {
  const budget = open(budgetFile());
  await hear(budget, { requests: 2, limit: 100, resetMs: 10_000 });
  const giveUp = new AbortController();
  const document = budget.acquire(1, { patient: true, signal: giveUp.signal });
  expect(await ask(budget)).toBeDefined();
  expect(await ask(budget)).toBeDefined();
  giveUp.abort();
  await expect(document).rejects.toMatchObject({ code: 'unavailable' });
});

test('a document waits in place for a limit that begins anew soon, and is put off where that is long', async () => {
  const budget = open(budgetFile());
  await hear(budget, { requests: 0, resetMs: 20_000 });
  const waiting = budget.acquire(1, { patient: true });
  clock.advance(20_000);
  (await waiting).end({ kind: 'answered' });
  await hear(budget, { requests: 0, resetMs: 600_000 }, { kind: 'limited', retryAfterMs: 100 });
  clock.advance(100);
  await expect(budget.acquire(1, { patient: true })).rejects.toMatchObject({
    code: 'rate_limited',
    retryAfterMs: 599_900,
  });
});

test('a reply that brings an answer is not believed that nothing is left for longer than a minute', async () => {
  const budget = open(budgetFile());
  for (let call = 0; call < 3; call++) await hear(budget, { requests: 0, resetMs: 3_600_000 });
  expect(await putOffFor(budget)).toBe(0);
  await hear(budget, { requests: 0, resetMs: 60_000 });
  expect(await putOffFor(budget)).toBe(60_000);
});

test('what a reply says of the tokens of a minute is known to whoever cuts the next call', async () => {
  const budget = open(budgetFile());
  expect(budget.statedTokensPerMinute()).toBeUndefined();
  await hear(budget, { tokens: 900, limit: 1_000, resetMs: 1_000 });
  await hear(budget, { requests: 5, resetMs: 1_000 });
  expect(budget.statedTokensPerMinute()).toBe(1_000);
});

test('a refusal neither closes an open breaker nor keeps others from probing', async () => {
  const budget = open(budgetFile());
  await failUntilOpen(budget);
  clock.advance(1_000);
  (await ask(budget))!.end({ kind: 'refused' });
  expect(budget.isBreakerOpen()).toBe(true);
  (await ask(budget))!.end({ kind: 'answered' });
  expect(budget.isBreakerOpen()).toBe(false);
});

test('of few calls a minute one is kept for queries, where two are allowed', async () => {
  for (const [requestsPerMinute, forDocuments] of [
    [3, 2],
    [2, 1],
    [1, 1],
  ] as const) {
    const budget = open(budgetFile(), { requestsPerMinute });
    for (let call = 0; call < forDocuments; call++)
      (await budget.acquire(1, { patient: true })).end({ kind: 'answered' });
    const giveUp = new AbortController();
    const document = budget.acquire(1, { patient: true, signal: giveUp.signal });
    for (let call = forDocuments; call < requestsPerMinute; call++) expect(await ask(budget)).toBeDefined();
    expect(await ask(budget)).toBeUndefined();
    giveUp.abort();
    await expect(document).rejects.toMatchObject({ code: 'unavailable' });
  }
});

test('the limits of the settings stay, whatever a reply says is left', async () => {
  const budget = open(budgetFile(), { requestsPerMinute: 2 });
  await hear(budget, { requests: 1_000, limit: 1_000, resetMs: 1_000 });
  expect(await ask(budget)).toBeDefined();
  expect(await ask(budget)).toBeUndefined();
});

test('two processes that want all they can get are refused no call by a server that says what is left', async () => {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  const LIMIT = 12;
  provider.limit({ requests: LIMIT, windowMs: 500 });
  const settings = {
    OM_DB_PATH: path.join(tempFolder(), 'cairn.sqlite'),
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_VEC_DIM: '256',
    OM_EMBED_BATCH_TEXTS: '1',
    OM_EMBED_CONCURRENCY: '1',
  };
  const processes = await startEmbeddingPair(settings);
  const texts = Array.from({ length: 2 * LIMIT }, (_, number) => `document ${number}`);
  const replies = (await Promise.all(processes.map((one) => one.embed(texts)))).flat();
  expect(replies.map(({ outcome }) => outcome)).toEqual(texts.concat(texts).map(() => 'ok'));
  expect(provider.calls.length).toBe(4 * LIMIT);
  expect(provider.refusals).toBe(0);
});

// ── The gap ──────────────────────────────────────────────────────────────────────────────────────────────────────────

test('calls of all processes start at least the gap apart, those of queries too', async () => {
  const file = budgetFile();
  const [first, second] = [open(file, { gapMs: 500 }), open(file, { gapMs: 500 })];
  const starts: number[] = [];
  const start = async (budget: ProviderBudget, patient: boolean) => {
    (await budget.acquire(1, { patient })).end({ kind: 'answered' });
    starts.push(clock.now() - START);
  };
  const all = Promise.all([start(first, true), start(second, true), start(second, false), start(first, true)]);
  while (starts.length < 4) {
    await pause(20);
    clock.advance(50);
  }
  await all;
  expect(starts).toHaveLength(4);
  starts.forEach((at, place) => {
    if (place > 0) expect(at - starts[place - 1]!).toBeGreaterThanOrEqual(500);
  });
});

// ── The clock and the file ───────────────────────────────────────────────────────────────────────────────────────────

test.each([30_000, 86_400_000])(
  'a clock that is set back by %i ms blocks nobody for longer than what was due',
  async (ms) => {
    const budget = open(budgetFile(), { requestsPerMinute: 1 });
    await answerTo(budget, { kind: 'limited', retryAfterMs: 20_000 });
    clock.advance(-ms);
    expect(await putOffFor(budget)).toBe(20_000);
    clock.advance(20_000);
    // The minute is counted anew from the change on, since nobody can tell how much of it was over.
    expect(await ask(budget)).toBeUndefined();
    clock.advance(MINUTE_MS + 2_000);
    await answerTo(budget, { kind: 'answered' });
  },
);

test('a file that is lost begins anew, for all who share it', async () => {
  const file = budgetFile();
  const limits = { requestsPerMinute: 3 };
  const [first, second] = [open(file, limits), open(file, limits)];
  for (let call = 0; call < 3; call++) await ask(first);
  for (const name of [file, `${file}-wal`, `${file}-shm`]) fs.rmSync(name, { force: true });
  expect(await ask(first)).toBeDefined();
  expect(await ask(second)).toBeDefined();
  expect(await ask(first)).toBeDefined();
  expect(await ask(second)).toBeUndefined();
});

test.each([
  ['is no database', (file: string) => fs.writeFileSync(file, 'scribbled over '.repeat(1_000))],
  ['is empty', (file: string) => fs.writeFileSync(file, '')],
])('a file that %s begins anew', async (_how, spoil) => {
  const file = budgetFile();
  const closed = openProviderBudget({ file, requestsPerMinute: 1, tokensPerMinute: 0, clock });
  await ask(closed);
  closed.close();
  spoil(file);
  const budget = open(file, { requestsPerMinute: 1 });
  expect(await ask(budget)).toBeDefined();
  expect(await ask(budget)).toBeUndefined();
});

test('a file that is damaged while it is in use begins anew', async () => {
  const file = budgetFile();
  const budget = open(file, { requestsPerMinute: 1 });
  await ask(budget);
  for (const name of [file, `${file}-wal`]) fs.writeFileSync(name, Buffer.alloc(fs.statSync(name).size, 0xa5));
  // Its own pages may be in memory still; another process reads what is there.
  const other = open(file, { requestsPerMinute: 1 });
  expect(await ask(other)).toBeDefined();
  expect(await ask(other)).toBeUndefined();
});

test('what ends after the close is not recorded and harms nobody', async () => {
  const budget = openProviderBudget({ file: budgetFile(), requestsPerMinute: 1, tokensPerMinute: 0, clock });
  const permit = await ask(budget);
  budget.close();
  permit!.end({ kind: 'failed' });
  expect(budget.isBreakerOpen()).toBe(false);
  await expect(budget.acquire(1, { patient: true })).rejects.toMatchObject({ code: 'unavailable' });
});
