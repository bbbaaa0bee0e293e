import { expect } from 'vitest';
import { hasEventsToHand } from '../../src/engine/store/hand-events.ts';
import { claimDueMemories } from '../../src/engine/store/standing.ts';
import { storeDeliveryOutcome } from '../../src/engine/store/webhooks.ts';
import { STANDING_LIMITS, type DeliveryState } from '../../src/engine/types.ts';
import { newMemory, START, type TestEngine } from '../support/engine-fixture.ts';

/** Settings of the engine for these checks: the feed is on, and an address where nobody listens is allowed. */
export const BOUNDS_SETTINGS = { OM_EVENTS: 'true', OM_WEBHOOK_ALLOW: '127.0.0.1' } as const;

const URL = 'http://127.0.0.1:9/hook';
const PAGE = { limit: 1_000, offset: 0 } as const;

/** Checks that a webhook with too many deliveries that wait is told of nothing more, until some of them have ended. */
export async function boundsWebhook(fixture: TestEngine): Promise<void> {
  const { tenant, clock } = fixture;
  const [full, other] = [await follow(fixture), await follow(fixture)];
  fill(fixture, full, STANDING_LIMITS.pendingOfWebhook - 1);
  await tell(fixture, ['one', 'two', 'three']);
  expect(await told(fixture, full)).toEqual([STANDING_LIMITS.pendingOfWebhook, 2]);
  expect(await told(fixture, other)).toEqual([3, 0]);
  expect(await tenant.getWebhook(full)).toMatchObject({ lastDroppedAt: clock.now() });
  expect(await tenant.getWebhook(other)).toMatchObject({ lastDroppedAt: null });
  expect((await tenant.listEvents({ limit: 100, kinds: ['memory.stored'] })).events).toHaveLength(3);

  // It counts as full for a second.
  change(fixture, full, 2, 'delivered');
  await tell(fixture, ['four']);
  expect(await told(fixture, full)).toEqual([STANDING_LIMITS.pendingOfWebhook - 2, 3]);
  clock.advance(1_000);
  await tell(fixture, ['five', 'six', 'seven']);
  expect(await told(fixture, full)).toEqual([STANDING_LIMITS.pendingOfWebhook, 4]);
  expect(await told(fixture, other)).toEqual([7, 0]);
}

/** Checks that the webhooks of one user share their room, and leave that of others alone. */
export async function boundsUser(fixture: TestEngine): Promise<void> {
  const [one, two, ofAll] = [await follow(fixture, 'ana'), await follow(fixture, 'ana'), await follow(fixture)];
  const ofBen = await follow(fixture, 'ben');
  fill(fixture, one, STANDING_LIMITS.pendingOfUser / 2);
  fill(fixture, two, STANDING_LIMITS.pendingOfUser / 2 - 1);
  await tell(fixture, ['one'], 'ana');
  await tell(fixture, ['one'], 'ben');
  expect([await told(fixture, one), await told(fixture, two)]).toEqual([
    [STANDING_LIMITS.pendingOfUser / 2 + 1, 0],
    [STANDING_LIMITS.pendingOfUser / 2 - 1, 1],
  ]);
  expect([await told(fixture, ofAll), await told(fixture, ofBen)]).toEqual([
    [2, 0],
    [1, 0],
  ]);
}

/** Checks that all webhooks of a tenant share its room. */
export async function boundsTenant(fixture: TestEngine): Promise<void> {
  const { pendingOfTenant, pendingOfWebhook } = STANDING_LIMITS;
  const last = await follow(fixture);
  await tell(fixture, ['one']);
  for (let n = 0; n < pendingOfTenant / pendingOfWebhook; n += 1)
    fill(fixture, await follow(fixture, 'ben'), pendingOfWebhook);
  roomIsOver(fixture);
  await tell(fixture, ['two', 'three']);
  expect(await told(fixture, last)).toEqual([1, 2]);
}

/** Checks that deliveries that are tried again take room. */
export async function countsRetries(fixture: TestEngine): Promise<void> {
  const hook = await follow(fixture);
  fill(fixture, hook, STANDING_LIMITS.pendingOfWebhook - 1);
  change(fixture, hook, STANDING_LIMITS.pendingOfWebhook, 'dead');
  await tell(fixture, ['one']);
  expect(await told(fixture, hook)).toEqual([1, 0]);
  await fixture.tenant.retryDeliveries(hook);
  await tell(fixture, ['two']);
  expect(await told(fixture, hook)).toEqual([STANDING_LIMITS.pendingOfWebhook, 1]);
}

/**
 * Checks that the answers of one memory make a bounded number of deliveries for webhooks that follow events, and that
 * each query's own webhook is told.
 */
export async function boundsAnswers(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const [followers, queries] = [40, 60];
  const hooks: string[] = [];
  for (let n = 0; n < followers; n += 1) hooks.push(await follow(fixture, n % 2 ? 'ana' : undefined, true));
  const asked: string[] = [];
  const query = { query: 'harbour ferry lighthouse', userId: 'ana', filter: {}, given: {}, minScore: 0 };
  for (let n = 0; n < queries; n += 1)
    asked.push((await tenant.createStandingQuery({ ...query, webhookUrl: URL })).webhook!.id);
  await tenant.addMemories([newMemory({ content: 'The ferry leaves the harbour at the lighthouse.', userId: 'ana' })]);
  await fixture.drain();
  await tend(fixture);
  const { items } = await tenant.listStandingQueries(PAGE);
  expect(items.map(({ answers }) => answers)).toEqual(Array(queries).fill(1));
  const each = STANDING_LIMITS.answersOfMemory / followers;
  for (const hook of hooks) expect(await told(fixture, hook)).toEqual([each, queries - each]);
  for (const hook of asked) expect(await told(fixture, hook)).toEqual([1, 0]);
}

/**
 * Checks that memories that wait to be encoded have no note among those that are to be compared with standing queries,
 * and that they have one once they are ready.
 */
export async function notesReadyMemories(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const query = { query: 'Where does the ferry leave?', userId: 'ana', filter: {}, given: {}, minScore: 0 };
  const { id } = await tenant.createStandingQuery(query);
  const older = await fixture.add({ content: 'The ferry leaves at the harbour.', userId: 'ana' });
  await fixture.drain();
  await tend(fixture);

  const newer = await fixture.add({ content: 'It was moved.', userId: 'ana', supersedes: older.id });
  expect(notes(fixture)).toEqual([]);
  await fixture.drain();
  expect(notes(fixture)).toEqual([newer.memoryNo]);
  await tend(fixture);
  const { items } = await tenant.listStandingAnswers(id, PAGE);
  expect(items).toMatchObject([{ memoryId: newer.id, supersedes: older.id }, { memoryId: older.id }]);

  // A memory that is ready is noted by a link alone.
  const third = await fixture.add({ content: 'The pier is closed.', userId: 'ana' });
  await fixture.drain();
  await tend(fixture);
  expect(notes(fixture)).toEqual([]);
  await tenant.supersedeMemory({ oldId: newer.id, newId: third.id });
  expect(notes(fixture)).toEqual([third.memoryNo]);
  await tend(fixture);

  // One that is queued again loses its note until it is ready again.
  const again = await fixture.add({ content: 'Another ferry.', userId: 'ana' });
  await tenant.cancelJob(again.jobId);
  expect(notes(fixture)).toEqual([again.memoryNo]);
  await tenant.retryJob(again.jobId);
  expect(notes(fixture)).toEqual([]);
  await fixture.drain();
  expect(notes(fixture)).toEqual([again.memoryNo]);
}

/**
 * Checks that neither a delivery that was put off or claimed, nor a memory that was claimed for comparison, waits until
 * a clock that was set back has caught up.
 */
export async function outlivesSetBackClock(fixture: TestEngine): Promise<void> {
  const { tenant, clock, batch } = fixture;
  const { store } = batch.open();
  const hook = await follow(fixture);
  await tell(fixture, ['one']);
  const query = { query: 'Where does the ferry leave?', userId: 'ana', filter: {}, given: {}, minScore: 0 };
  const { id } = await tenant.createStandingQuery(query);
  await fixture.add({ content: 'The ferry leaves at the harbour.', userId: 'ana' });
  await fixture.drain();
  const leaseMs = batch.config.OM_LEASE_MS;
  store.write(() => {
    const deliveryNo = store.prepare('SELECT delivery_no FROM deliveries').pluck().get() as number;
    const refused = { delivered: false, status: null, error: 'refused', nextAt: clock.now() + 12 * 3_600_000 };
    storeDeliveryOutcome(store, { deliveryNo, attempts: 1, ...refused }, clock.now());
    expect(claimDueMemories(store, { now: clock.now(), leaseMs, limit: 100 })).not.toEqual([]);
  });
  for (let no = 0; no < 3; no += 1) await tenant.tendStanding(AbortSignal.abort());
  expect((await tenant.listDeliveries(hook, PAGE)).items.map(({ attempts }) => attempts)).toEqual([1, 1]);
  expect(await tenant.listStandingAnswers(id, PAGE)).toMatchObject({ total: 0 });

  clock.advanceDays(-3);
  expect(await tenant.standingDueAt()).toBe(clock.now());
  for (let no = 0; no < 3; no += 1) await tenant.tendStanding(AbortSignal.abort());
  expect((await tenant.listDeliveries(hook, PAGE)).items.map(({ attempts }) => attempts)).toEqual([2, 2]);
  expect(await tenant.listStandingAnswers(id, PAGE)).toMatchObject({ total: 1 });
}

/** Numbers of the memories that are to be compared with standing queries. */
export function notes(fixture: TestEngine): number[] {
  const { store } = fixture.batch.open();
  return store.read(() => store.prepare('SELECT memory FROM standing_due').pluck().all()) as number[];
}

/** Compares all memories and hands over all events. What is due to be sent is not sent, as the work is called off. */
async function tend(fixture: TestEngine): Promise<void> {
  const { store } = fixture.batch.open();
  const isLeft = () => notes(fixture).length > 0 || store.read(() => hasEventsToHand(store));
  while (isLeft()) await fixture.tenant.tendStanding(AbortSignal.abort());
}

/** Registers a webhook that is told of new memories, or of answers. */
async function follow({ tenant }: TestEngine, userId?: string, ofAnswers = false): Promise<string> {
  const kinds = [ofAnswers ? ('standing.answered' as const) : ('memory.stored' as const)];
  return (await tenant.createWebhook({ url: URL, kinds, userId })).id;
}

/** Adds memories, and hands over the events. */
async function tell(fixture: TestEngine, contents: readonly string[], userId = 'ana'): Promise<void> {
  await fixture.tenant.addMemories(
    contents.map((content) => newMemory({ content: `${content} of ${userId}`, userId })),
  );
  await tend(fixture);
}

/** Numbers of the deliveries of a webhook that wait, and of the events that it was not told of. */
async function told({ tenant }: TestEngine, id: string): Promise<[number, number]> {
  const { deliveries, dropped } = await tenant.getWebhook(id);
  return [deliveries.pending, dropped];
}

/** Adds deliveries that wait for a later attempt to a webhook. */
function fill(fixture: TestEngine, id: string, count: number): void {
  const { store } = fixture.batch.open();
  const insert = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
    INSERT INTO deliveries (id, hook_no, at, event, next_at)
    SELECT 'msg_' || hook_no || '_' || n, hook_no, 0, '{}', ? FROM numbers, webhooks WHERE id = ?`;
  store.write(() => store.prepare(insert).run(count, START + 3_600_000, id));
}

/** Ends deliveries of a webhook, the first ones. */
function change(fixture: TestEngine, id: string, count: number, state: DeliveryState): void {
  const { store } = fixture.batch.open();
  const update = `UPDATE deliveries SET state = ?, ended_at = ? WHERE delivery_no IN (
    SELECT delivery_no FROM deliveries WHERE hook_no = (SELECT hook_no FROM webhooks WHERE id = ?)
    ORDER BY delivery_no LIMIT ?)`;
  store.write(() => store.prepare(update).run(state, START, id, count));
}

/** Lets what waits in the tenant be counted at the next event, as it is when the room that was known is taken. */
function roomIsOver(fixture: TestEngine): void {
  const { store } = fixture.batch.open();
  store.write(() => store.prepare('UPDATE webhook_cursor SET room = 0, counted_at = 0').run());
}
