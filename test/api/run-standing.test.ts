import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { tendStandingUntil } from '../../src/api/run-standing.ts';
import { type Engine, noteConnection, type Tenant } from '../../src/engine/index.ts';
import { openTestEngine } from '../support/engine-fixture.ts';

/** An engine of tenants that are tended by `tend`, and were never written to. */
function fakeEngine(ids: readonly string[], tend: (id: string) => ReturnType<Tenant['tendStanding']>) {
  return {
    config: { OM_EVENTS: true },
    clock: { now: () => 0 },
    looks: {
      stampsOf: () => Promise.resolve(new Map()),
      async *find() {
        yield* ids;
      },
    },
    tended: new Set<string>(),
    tenant: (id: string) =>
      Promise.resolve({ tendStanding: () => tend(id), standingDueAt: () => Promise.resolve(0) } as unknown as Tenant),
  } as unknown as Engine;
}

test('while there is work, replies are received between two checks', async () => {
  const stop = new AbortController();
  let looks = 0;
  // A check that waits for nothing, as when another caller compares what is due.
  const engine = fakeEngine(['default'], () => {
    if (++looks === 1_000) stop.abort();
    return Promise.resolve('busy' as const);
  });
  const tending = tendStandingUntil(stop.signal, engine);
  while (looks === 0) await nextTurn();
  expect(looks).toBeLessThan(1_000);
  stop.abort();
  await tending;
});

test('a tenant that waits for its readers holds up no other', async () => {
  const stop = new AbortController();
  let looks = 0;
  const stuck = Promise.withResolvers<'idle'>();
  const engine = fakeEngine(['stuck', 'quick'], (id) => {
    if (id === 'stuck') return stuck.promise;
    if (++looks === 3) stop.abort();
    return Promise.resolve('busy' as const);
  });
  await tendStandingUntil(stop.signal, engine);
  expect(looks).toBe(3);
  stuck.resolve('idle');
});

test('tenants are looked at in a turn of the event loop each', async () => {
  const stop = new AbortController();
  const turns: number[] = [];
  let turn = 0;
  const count = () => {
    turn += 1;
    if (!stop.signal.aborted) setImmediate(count);
  };
  setImmediate(count);
  const ids = Array.from({ length: 50 }, (_, no) => `t${no}`);
  const engine = fakeEngine(ids, () => {
    turns.push(turn);
    if (turns.length === ids.length) stop.abort();
    return Promise.resolve('absent' as const);
  });
  await tendStandingUntil(stop.signal, engine);
  expect(new Set(turns).size).toBe(ids.length);
});

test('connections that arrive hold up no look at a tenant', async () => {
  const stop = new AbortController();
  const turns: number[] = [];
  let turn = 0;
  const arrive = () => {
    noteConnection();
    turn += 1;
    if (!stop.signal.aborted) setImmediate(arrive);
  };
  arrive();
  const ids = Array.from({ length: 20 }, (_, no) => `arriving-${no}`);
  const engine = fakeEngine(ids, () => {
    turns.push(turn);
    if (turns.length === ids.length) stop.abort();
    return Promise.resolve('absent' as const);
  });
  await tendStandingUntil(stop.signal, engine);
  expect(turns.at(-1)! - turns[0]!).toBeLessThan(1_000);
});

test('a search finds the tenants that have standing queries or evaluation sets', async () => {
  const fixture = await openTestEngine({ settings: { OM_EVENTS: 'true' } });
  onTestFinished(() => fixture.close());
  const { engine } = fixture;
  const found = async (what: 'standing' | 'evals') => {
    const ids: string[] = [];
    for await (const id of engine.looks.find(what)) ids.push(id);
    return ids;
  };
  for (const id of ['looked-a', 'looked-b', 'looked-c']) {
    engine.control.createTenant(id);
    await (await engine.tenant(id)).addMemories([]);
  }
  expect(await found('standing')).toEqual([]);
  const asked = { query: 'ferry', userId: 'ana', filter: {}, given: {}, minScore: 0 };
  await (await engine.tenant('looked-b')).createStandingQuery(asked);
  const set = { name: 'harbour', guard: false, items: [{ query: 'ferry', expected: ['A ferry.'] }] };
  await (await engine.tenant('looked-c')).putEval(set);
  expect(await found('standing')).toEqual(['looked-b']);
  expect(await found('evals')).toEqual(['looked-c']);
});

test('an idle tenant is tended again only when it is written to or something of it is due', async () => {
  const fixture = await openTestEngine({ settings: { OM_EVENTS: 'true' } });
  const { engine, tenant, clock } = fixture;
  const stop = new AbortController();
  onTestFinished(() => fixture.close());
  const asked = { query: 'ferry', userId: 'ana', filter: {}, given: {}, minScore: 0 };
  await tenant.createStandingQuery(asked);
  expect(await tenant.tendStanding(stop.signal)).toBe('idle');
  expect(await tenant.standingDueAt()).toBe(Infinity);
  let stamp = 'first';
  const tended: string[] = [];
  const tending = tendStandingUntil(stop.signal, {
    ...engine,
    looks: { ...engine.looks, stampsOf: async () => new Map([['default', stamp]]) },
    tenant: async () => ({
      ...tenant,
      tendStanding: () => {
        tended.push(stamp);
        return Promise.resolve('idle');
      },
      standingDueAt: async () => clock.now() + 1_000,
    }),
  });
  await vi.waitFor(() => expect(tended).toEqual(['first']));
  stamp = 'second';
  await vi.waitFor(() => expect(tended).toEqual(['first', 'second']), { timeout: 5_000 });
  clock.advance(1_000);
  await vi.waitFor(() => expect(tended).toEqual(['first', 'second', 'second']), { timeout: 5_000 });
  stop.abort();
  await tending;
});
