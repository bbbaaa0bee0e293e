import { describe, expect, test, vi } from 'vitest';
import { updateMemory } from '../../src/api/mcp/tools/remember.ts';
import { replyPlaces, writePlaces } from '../../src/api/reply-places.ts';
import type { TenantCall } from '../../src/api/route.ts';
import { JsonText, type Tenant } from '../../src/engine/index.ts';
import { callRoute } from '../support/call-route.ts';
import { newMemory, openTestEngine } from '../support/engine-fixture.ts';
import { countTurns } from '../support/turns-during.ts';

const REQUESTS = 24;

/**
 * Begins requests in one turn of the event loop, so that one commit takes their writes, and returns in how many turns
 * their work was done. Each piece of work calls `work`, and takes 10 ms by the clock that the requests see.
 */
async function turnsOf(begin: (no: number, work: () => void) => Promise<unknown>): Promise<number> {
  const turns = countTurns();
  const worked = new Set<number>();
  let now = performance.now();
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  const work = () => {
    now += 10;
    worked.add(turns.turn);
  };
  try {
    await Promise.all(Array.from({ length: REQUESTS }, (_, no) => begin(no, work)));
    return worked.size;
  } finally {
    turns.stop();
    await new Promise(setImmediate);
    clock.mockRestore();
  }
}

const lane = (no: number) => newMemory({ content: `Lane ${no} ${'is closed for now. '.repeat(20)}` });

test('replies to the changes of one commit are made in several turns of the event loop', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const ids: string[] = [];
  for (let no = 0; no < REQUESTS; no++) ids.push((await fixture.add(lane(no))).id);
  const patch = (no: number, onEnd: () => void) =>
    callRoute(tenant, {
      ...{ method: 'PATCH', path: '/memory/x', params: { id: ids[no]! }, body: { tags: [`t${no}`] }, onEnd },
    });
  expect(await turnsOf(patch)).toBeGreaterThan(REQUESTS / 2);
});

test('so are the replies to items that were put, for which gists and entities are drawn from the texts', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const put = (no: number, work: () => void) => {
    const seen: Tenant = {
      ...tenant,
      async putItem(item, options) {
        const reply = await tenant.putItem(item, options);
        const { memory } = reply;
        const { gist } = memory;
        // It is read once for each reply.
        Object.defineProperty(memory, 'gist', { enumerable: true, get: () => (work(), gist) });
        return reply;
      },
    };
    const body = { namespace: 'lanes', key: `k${no}`, value: { no } };
    return callRoute(seen, { method: 'PUT', path: '/items', body });
  };
  expect(await turnsOf(put)).toBeGreaterThan(REQUESTS / 2);
});

test('so are the answers of update_memory, which do not parse the values of items', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const ids: string[] = [];
  for (let no = 0; no < REQUESTS; no++) {
    const value = { text: `lane ${no}`, more: 'x'.repeat(2_000) };
    const item = { ...newMemory({ content: `lane ${no}` }), value, namespace: 'lanes', key: `k${no}` };
    ids.push((await tenant.putItem(item)).memory.id);
  }
  const parsed = vi.spyOn(JsonText.prototype, 'toJSON');
  const call = { tenant, api: { engine: fixture.engine }, principal: { role: 'admin', keyId: '', tenantId: '' } };
  const update = async (no: number, onEnd: () => void) => {
    const input = { id: ids[no]!, content: `track ${no}`, mode: 'correct' };
    expect(await updateMemory.run(call as never, input, {} as never)).toContain('whose value has the new text, too');
    onEnd();
  };
  expect(await turnsOf(update)).toBeGreaterThan(REQUESTS / 2);
  expect(parsed).not.toHaveBeenCalled();
});

test('a change of a long memory waits for main memory before it is written, and a short one does not', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const long = await fixture.add(newMemory({ content: `long ${'x'.repeat(100_000)}` }));
  const short = await fixture.add(newMemory({ content: 'short' }));
  const held: number[] = [];
  const patch = (id: string) => {
    const seen: Tenant = {
      ...tenant,
      patchMemory: (...given) => {
        held.push(writePlaces.bytes.held);
        return tenant.patchMemory(...given);
      },
    };
    return callRoute(seen, { method: 'PATCH', path: '/memory/x', params: { id }, body: { tags: ['t'] } });
  };
  await patch(short.id);
  await patch(long.id);
  expect(held).toEqual([0, expect.closeTo(200_000, -3)]);
  expect(writePlaces.bytes.held).toBe(0);
});

test('main memory is reserved for a long item of a session log before it is popped', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const place = { userId: '', sessionId: 's' };
  await tenant.changeLog(place, { items: ['x'.repeat(100_000), 'short'] });
  const held: number[] = [];
  const seen: Tenant = {
    ...tenant,
    popLog: (...given) => {
      held.push(writePlaces.bytes.held);
      return tenant.popLog(...given);
    },
  };
  const pop = { method: 'POST', path: '/sessions/s/log/pop', params: { id: 's' }, body: {} };
  const replies = [await callRoute(seen, pop), await callRoute(seen, pop), await callRoute(seen, pop)];
  expect(replies[0]).toContain('"item":"short"');
  expect(replies[1]).toContain('"item":"xxx');
  expect(JSON.parse(replies[2]!)).toEqual({ popped: null, total: 0 });
  expect(held).toEqual([0, expect.closeTo(200_000, -3), 0]);
  expect(writePlaces.bytes.held).toBe(0);
});

describe('while replies to the same key fill its share of main memory,', () => {
  const owner = { keyId: 'admin', tenantId: 'default' };
  const place = { userId: '', sessionId: 's' };
  const pop = { method: 'POST', path: '/sessions/s/log/pop', params: { id: 's' }, body: {} };

  test.each([
    ['of 3,000 characters', 3_000],
    ['that was appended after the place was taken', 100_000],
  ])('an item of a session log is still answered once it is popped, also one %s', async (_name, characters) => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    await tenant.changeLog(place, { items: ['x'.repeat(characters)] });
    const leaves = [replyPlaces, writePlaces].map((places) => places.take(owner, 32 * 1024 * 1024));
    const seen: Tenant = { ...tenant, readLog: async () => ({ items: [], total: 0, next: null }) };
    try {
      expect(await callRoute(seen, pop)).toContain('"item":"xxx');
    } finally {
      for (const leave of leaves) leave();
    }
  });

  test('writes with long answers go on, if the replies are to reads', async () => {
    await using fixture = await openTestEngine();
    const { tenant } = fixture;
    const { id } = await fixture.add(newMemory({ content: `long ${'x'.repeat(100_000)}` }));
    await tenant.changeLog(place, { items: ['x'.repeat(100_000)] });
    const leave = replyPlaces.take({ ...owner, keyId: 'reader' }, 64 * 1024 * 1024);
    try {
      const patch = { method: 'PATCH', path: '/memory/x', params: { id }, body: { tags: ['t'] } };
      expect(await callRoute(tenant, patch)).toContain('"updated":true');
      expect(await callRoute(tenant, pop)).toContain('"item":"xxx');
    } finally {
      leave();
    }
  });
});

describe('a memory that is read for a reply', () => {
  const place = { namespace: 'lanes', key: 'k' };
  const routes = {
    'GET /memory/:id': (id: string) => ({ path: '/memory/x', params: { id } }),
    'GET /items': () => ({ path: '/items', query: place }),
    'GET /store/items': () => ({ path: '/store/items', query: place }),
  };
  test.each(Object.entries(routes))('waits for nothing else, with %s', async (_name, pathOf) => {
    await using fixture = await openTestEngine();
    const { id } = (await fixture.tenant.putItem({ ...newMemory({ content: 'lane' }), ...place, value: { no: 1 } }))
      .memory;
    let [now, held, most] = [performance.now(), 0, 0];
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
    const reading = async <T>(read: Promise<T>) => {
      const memory = await read;
      now += 10;
      held += 1;
      most = Math.max(most, held);
      return memory;
    };
    const tenant: Tenant = {
      ...fixture.tenant,
      getMemory: (wanted) => reading(fixture.tenant.getMemory(wanted)),
      getItem: (wanted) => reading(fixture.tenant.getItem(wanted)),
    };
    const onEnd = () => void (held -= 1);
    // As requests do, they come one after the other in one turn of the event loop.
    const get = async () => {
      await new Promise(setImmediate);
      return callRoute(tenant, { method: 'GET', ...pathOf(id), onEnd });
    };
    const replies = await Promise.all(Array.from({ length: REQUESTS }, get));
    clock.mockRestore();
    expect(new Set(replies).size).toBe(1);
    expect(replies[0]).toContain('"no":1');
    expect(most).toBe(1);
  });

  test('waits for a turn if a thread has read it, and its main memory is reserved', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add(newMemory({ content: `long ${'x'.repeat(100_000)}` }));
    const together = Promise.withResolvers<void>();
    const tenant: Tenant = {
      ...fixture.tenant,
      getMemory: (wanted) => together.promise.then(() => fixture.tenant.getMemory(wanted)),
    };
    let most = 0;
    const get = (_no: number, work: () => void) => {
      const onEnd = () => {
        most = Math.max(most, replyPlaces.bytes.held);
        work();
      };
      return callRoute(tenant, { method: 'GET', path: '/memory/x', params: { id }, onEnd });
    };
    setImmediate(together.resolve);
    expect(await turnsOf(get)).toBeGreaterThan(REQUESTS / 2);
    expect(most).toBeGreaterThan(REQUESTS * 200_000);
    expect(replyPlaces.bytes.held).toBe(0);
  });

  test('is read anew after its time to live was restarted, as it does not wait for the commit', async () => {
    await using fixture = await openTestEngine();
    const { clock, tenant } = fixture;
    const item = { ...newMemory({ content: 'lane' }), ...place, expiresAt: clock.now() + 60_000, ttlMs: 60_000 };
    await tenant.putItem({ ...item, value: { no: 1 } });
    const changing: Tenant = {
      ...tenant,
      async renewItems(ids) {
        await tenant.renewItems(ids);
        await tenant.putItem({ ...item, value: { no: 2 } });
      },
    };
    const query = { ...place, refresh_ttl: 'true' };
    const api = { engine: fixture.engine };
    const parts = { api } as unknown as Partial<TenantCall>;
    const reply = await callRoute(changing, { method: 'GET', path: '/store/items', query, parts });
    expect(reply).toContain('"no":2');
  });

  test('takes main memory once, even if its time to live is restarted', async () => {
    await using fixture = await openTestEngine();
    const { clock, tenant } = fixture;
    const item = { ...newMemory({ content: 'lane' }), ...place, expiresAt: clock.now() + 60_000, ttlMs: 60_000 };
    await tenant.putItem({ ...item, value: 'x'.repeat(100_000) });
    const held: number[] = [];
    const look = () => void held.push(replyPlaces.bytes.held);
    const threaded: Tenant = {
      ...tenant,
      // As from a thread, it arrives in a later turn.
      getItem: (wanted) => new Promise(setImmediate).then(() => tenant.getItem(wanted)),
      renewItems: (ids) => (look(), tenant.renewItems(ids)),
    };
    const query = { ...place, refresh_ttl: 'true' };
    const parts = { api: { engine: fixture.engine } } as unknown as Partial<TenantCall>;
    await callRoute(threaded, { method: 'GET', path: '/store/items', query, parts, onEnd: look });
    expect(held).toEqual([0, expect.closeTo(200_000, -3)]);
    expect(replyPlaces.bytes.held).toBe(0);
  });
});
