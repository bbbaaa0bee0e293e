import { expect, vi } from 'vitest';
import type { Tenant } from '../../src/engine/engine.ts';
import { WRITE_COMMANDS } from '../../src/engine/writer/commands.ts';
import { newMemory, type TestEngine } from '../support/engine-fixture.ts';

/** Settings of the engine for `undoStanding`: the feed is on, and an address where nobody listens is allowed. */
export const UNDO_SETTINGS = { OM_EVENTS: 'true', OM_WEBHOOK_ALLOW: '127.0.0.1' } as const;

const URL = 'http://127.0.0.1:9/hook';
const PAGE = { limit: 100, offset: 0 } as const;
const ALL_TABLES = ['standing_queries', 'standing_answers', 'webhooks', 'deliveries'] as const;

/**
 * Checks that a tenant, which has no data yet, names who registered its standing queries and webhooks, and that an undo
 * of one key removes what that key registered, with answers and deliveries, and nothing of others.
 */
export async function undoStanding(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const [own, leaked, other] = [tenant.as('own'), tenant.as('leaked'), tenant.as('other')];
  const ask = (by: Tenant, userId: string) =>
    by.createStandingQuery({
      ...{ query: 'Where does Anna sail?', filter: {}, given: {}, minScore: 0, webhookUrl: URL },
      userId,
    });
  const tell = (by: Tenant, userId: string) => by.createWebhook({ url: URL, kinds: [], userId });
  const mine = await ask(own, 'ana');
  await tell(own, 'ana');
  expect(mine).toMatchObject({ writtenBy: 'own', webhook: { writtenBy: 'own' } });
  const theirs = await ask(leaked, 'ana');
  const spy = await tell(leaked, 'ana');
  for (const user of ['ana', 'bob']) await Promise.all([ask(other, user), tell(other, user)]);
  expect([await tenant.getStandingQuery(theirs.id), await tenant.getWebhook(spy.id)]).toMatchObject([
    { writtenBy: 'leaked' },
    { writtenBy: 'leaked' },
  ]);

  await own.addMemories([newMemory({ content: 'Anna sails to the lighthouse.', userId: 'ana' })]);
  await fixture.drain();
  while ((await tenant.tendStanding(AbortSignal.timeout(600_000))) === 'busy');
  expect(await writersOf(tenant)).toEqual([['leaked', 'other', 'other', 'own'], 8]);
  const before = countRows(fixture);
  expect(Math.min(...Object.values(before))).toBeGreaterThan(0);

  const undone = await own.deleteMemories({ writtenBy: ['leaked'] });
  expect(undone).toMatchObject({ memories: 0, standingQueries: 1, webhooks: 2 });
  expect(await writersOf(tenant)).toEqual([['other', 'other', 'own'], 6]);
  const after = countRows(fixture);
  expect(after.standing_answers).toBe(before.standing_answers - 1);
  expect(after.deliveries).toBeLessThan(before.deliveries);
  expect(countIn(fixture, 'deliveries WHERE hook_no NOT IN (SELECT hook_no FROM webhooks)')).toBe(0);
  const audited = await tenant.listAudit({ limit: 9, action: 'standing.erase' });
  expect(audited).toMatchObject([{ keyId: 'own', detail: { written_by: ['leaked'], queries: 1, webhooks: 2 } }]);

  // With a user, what the key registered for others stays; with a session, all of it.
  expect(await own.deleteMemories({ writtenBy: ['other'], sessionIds: ['s'] })).not.toHaveProperty('webhooks');
  const ofBob = await own.deleteMemories({ writtenBy: ['other'], userIds: ['bob'] });
  expect(ofBob).toMatchObject({ standingQueries: 1, webhooks: 2 });
  expect(await writersOf(tenant)).toEqual([['other', 'own'], 4]);
  expect(await own.deleteMemories({ userIds: ['ana'] })).toMatchObject({ standingQueries: 2, webhooks: 4 });
  expect(await writersOf(tenant)).toEqual([[], 0]);
}

/**
 * Checks that an erasure of a user, whose memories are several slices, leaves the user's name in no delivery, though
 * deliveries are made between the slices, and a webhook is registered for the user.
 */
export async function erasesNames(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  await tenant.createWebhook({ url: URL, kinds: [] });
  const notes = Array.from({ length: 150 }, (_, no) => newMemory({ content: `note ${no}`, userId: 'ana' }));
  await tenant.addMemories(notes);
  const { deleteMatching, handEvents } = WRITE_COMMANDS;
  const named: number[] = [];
  const slices = vi.spyOn(WRITE_COMMANDS, 'deleteMatching').mockImplementation((context, options) => {
    const slice = deleteMatching(context, options);
    const hook = { url: URL, kinds: [], userId: 'ana', quota: null };
    if (named.length === 0) WRITE_COMMANDS.createWebhook(context, hook);
    handEvents(context, { limit: 500 });
    named.push(context.store.prepare(`SELECT count(*) FROM deliveries WHERE user_id = 'ana'`).pluck().get() as number);
    return slice;
  });
  const erased = await tenant.deleteMemories({ userIds: ['ana'] });
  slices.mockRestore();
  expect(named.length).toBeGreaterThan(1);
  expect(named[0]).toBeGreaterThan(0);
  expect(countIn(fixture, `deliveries WHERE user_id = 'ana' OR event LIKE '%ana%'`)).toBe(0);
  expect(countIn(fixture, 'deliveries')).toBeGreaterThan(0);
  expect(erased).toMatchObject({ memories: 150, standingQueries: 0, webhooks: 1 });
}

/** Returns the writers of the standing queries, and the number of webhooks. */
async function writersOf(tenant: Tenant): Promise<[writers: (string | null)[], webhooks: number]> {
  const { items } = await tenant.listStandingQueries(PAGE);
  const { items: hooks, total } = await tenant.listWebhooks(PAGE);
  expect(new Set(hooks.map(({ writtenBy }) => writtenBy))).toEqual(new Set(items.map(({ writtenBy }) => writtenBy)));
  return [items.map(({ writtenBy }) => writtenBy).sort(), total];
}

const countIn = ({ batch }: TestEngine, rows: string) =>
  batch.open().store.prepare(`SELECT count(*) FROM ${rows}`).pluck().get() as number;

function countRows(fixture: TestEngine): Record<(typeof ALL_TABLES)[number], number> {
  return Object.fromEntries(ALL_TABLES.map((table) => [table, countIn(fixture, table)])) as never;
}
