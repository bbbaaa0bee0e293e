import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { replyPlaces } from '../../src/api/reply-places.ts';
import type { TenantCall } from '../../src/api/route.ts';
import type { Tenant } from '../../src/engine/index.ts';
import { callRoute } from '../support/call-route.ts';
import { newMemory, openTestEngine, type TestEngine } from '../support/engine-fixture.ts';

const ITEMS = 8;
const MANY = 1_200;
const CHARACTERS = 200_000;
const SEARCH = { method: 'POST', path: '/store/items/search' };
const LIST = { method: 'POST', path: '/store/namespaces' };

let fixture: TestEngine;
let parts: Partial<TenantCall>;
beforeAll(async () => {
  fixture = await openTestEngine();
  parts = { api: { engine: fixture.engine } as TenantCall['api'] };
  const put = (namespace: string, key: string, value: object) =>
    fixture.tenant.putItem({ ...newMemory({ content: `zebra ${key}` }), namespace, key, value: value as never });
  for (let no = 0; no < ITEMS; no++) await put('long', `k${no}`, { text: 'x'.repeat(CHARACTERS) });
  for (let no = 0; no < MANY; no++) await put(`many.n${String(no).padStart(4, '0')}`, 'k', { no });
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** Returns a tenant that calls `look` after each item of a list. */
function watched(look: (no: number) => void): Tenant {
  return {
    ...fixture.tenant,
    async streamItems(...given) {
      const page = await fixture.tenant.streamItems(...given);
      async function* slices() {
        let no = 0;
        for await (const slice of page.slices)
          for (const item of slice) {
            yield [item];
            look(++no);
          }
      }
      return { ...page, slices: slices() };
    },
  };
}

test('a search of a store reserves main memory while it gathers long items', async () => {
  const held: number[] = [];
  const seen = watched(() => held.push(replyPlaces.bytes.held));
  const body = { namespace_prefix: ['long'], limit: ITEMS };
  expect(await callRoute(seen, { ...SEARCH, body, parts })).toContain('"key":"k7"');
  expect(held).toHaveLength(ITEMS - 1);
  for (const [no, bytes] of held.entries()) expect(bytes).toBeGreaterThanOrEqual(2 * CHARACTERS * (no + 1));
  expect(Math.max(...held)).toBeLessThanOrEqual(8 * 1024 * 1024);
  expect(replyPlaces.bytes.held).toBe(0);
});

test('so does one that ranks them; it sends with what the page needs, and short items need nothing', async () => {
  const held: number[] = [];
  const look = () => held.push(replyPlaces.bytes.held);
  const ranked = { namespace_prefix: ['long'], query: 'zebra' };
  const short = { namespace_prefix: ['many'] };
  for (const body of [{ ...ranked, limit: ITEMS }, { ...ranked, limit: 1, offset: 3 }, { ...ranked, limit: 1 }, short])
    await callRoute(fixture.tenant, { ...SEARCH, body, parts, onEnd: look });
  const page = (items: number): unknown => expect.closeTo(2 * CHARACTERS * items, -4);
  expect(held).toEqual([page(ITEMS), page(1), page(1), 0]);
  expect(replyPlaces.bytes.held).toBe(0);
});

test('a query of a store reserves main memory for no ranked item after its page', async () => {
  const enter = vi.spyOn(replyPlaces, 'enter');
  const body = { namespace_prefix: ['long'], query: 'zebra', limit: 2 };
  await callRoute(fixture.tenant, { ...SEARCH, body, parts });
  const asked = enter.mock.calls.map(([, bytes]) => bytes);
  enter.mockRestore();
  expect(asked).toEqual([expect.closeTo(2 * CHARACTERS * 2, -4)]);
});

test('a search of a store ends once its client has left', async () => {
  let read = 0;
  let leave = () => {};
  const seen = watched((no) => {
    read = no;
    if (no === 2) leave();
  });
  const body = { namespace_prefix: ['many'], limit: 1, offset: 1_000 };
  const search = callRoute(seen, { ...SEARCH, body, parts, onBegin: (response) => (leave = () => response.destroy()) });
  await expect(search).rejects.toMatchObject({ code: 'unavailable' });
  expect(read).toBeLessThan(5);
});

test('a page of the namespaces of a store keeps no path before it', async () => {
  let kept = 0;
  const counting: Tenant = {
    ...fixture.tenant,
    async listNamespaces(...given) {
      const page = await fixture.tenant.listNamespaces(...given);
      const items = page.items.map((item) => ({
        ...item,
        get path() {
          kept += 1;
          return item.path;
        },
      }));
      return { ...page, items };
    },
  };
  const all = Array.from({ length: MANY }, (_, no) => `many.n${String(no).padStart(4, '0')}`);
  for (const [offset, limit] of [
    [1_050, 10],
    [995, 10],
    [0, 3],
  ] as const) {
    kept = 0;
    const reply = await callRoute(counting, { ...LIST, body: { prefix: ['many'], suffix: [], offset, limit }, parts });
    const { namespaces } = JSON.parse(reply) as { readonly namespaces: readonly string[][] };
    expect([namespaces.length, kept]).toEqual([limit, limit]);
    expect(namespaces.map((path) => path.join('.'))).toEqual(all.slice(offset, offset + limit));
  }
});

test('a list of the namespaces of a store ends once its client has left', async () => {
  let pages = 0;
  let leave = () => {};
  const seen: Tenant = {
    ...fixture.tenant,
    listNamespaces(...given) {
      pages += 1;
      leave();
      return fixture.tenant.listNamespaces(...given);
    },
  };
  const body = { prefix: ['many'], offset: 1_100 };
  const list = callRoute(seen, { ...LIST, body, parts, onBegin: (response) => (leave = () => response.destroy()) });
  await expect(list).rejects.toMatchObject({ code: 'unavailable' });
  expect(pages).toBe(1);
});
