import { expect, test, vi } from 'vitest';
import { updateMemory } from '../../src/api/mcp/tools/remember.ts';
import { replyPlaces } from '../../src/api/reply-places.ts';
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
        held.push(replyPlaces.bytes.held);
        return tenant.patchMemory(...given);
      },
    };
    return callRoute(seen, { method: 'PATCH', path: '/memory/x', params: { id }, body: { tags: ['t'] } });
  };
  await patch(short.id);
  await patch(long.id);
  expect(held).toEqual([0, expect.closeTo(200_000, -3)]);
  expect(replyPlaces.bytes.held).toBe(0);
});
