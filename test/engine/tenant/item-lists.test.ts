import fc from 'fast-check';
import { expect, test } from 'vitest';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import { moveNamespace, type MoveSlice } from '../../../src/engine/commands/move-namespace.ts';
import type { WriteContext } from '../../../src/engine/commands/write-context.ts';
import type { Tenant } from '../../../src/engine/engine.ts';
import { type Place, sealCursor } from '../../../src/engine/store/list-cursor.ts';
import type { ItemFilter, Json, NamespaceFilter, NewItem } from '../../../src/engine/types.ts';
import { newMemory, openTestEngine, START } from '../../support/engine-fixture.ts';
import { runCommand } from '../../support/run-command.ts';

const item = (namespace: string, key: string, value: Json = { n: key }, more: Partial<NewItem> = {}): NewItem => ({
  ...newMemory({ content: '' }),
  userId: 'ana',
  namespace,
  key,
  value,
  content: null,
  ...more,
});
const nameOf = ({ namespace, externalId }: { namespace: string; externalId: string | null }) =>
  `${namespace}/${externalId}`;

/** The names of all pages of a list of items. */
async function pagesOf(tenant: Tenant, filter: Partial<ItemFilter>, limit: number): Promise<string[][]> {
  const pages: string[][] = [];
  for (let cursor: string | undefined; ;) {
    const page = await tenant.listItems({ userId: 'ana', namespace: '', ...filter }, { limit, cursor });
    pages.push(page.items.map(nameOf));
    if (page.next === null) return pages;
    cursor = page.next;
  }
}
const namesOf = async (tenant: Tenant, filter: Partial<ItemFilter> = {}) => (await pagesOf(tenant, filter, 3)).flat();

async function namespacesOf(tenant: Tenant, filter: Partial<NamespaceFilter>, limit = 2): Promise<[string, number][]> {
  const all: [string, number][] = [];
  for (let cursor: string | undefined; ;) {
    const page = await tenant.listNamespaces({ prefix: '', suffix: '', ...filter }, { limit, cursor });
    all.push(...page.items.map(({ path, items }): [string, number] => [path, items]));
    if (page.next === null) return all;
    cursor = page.next;
  }
}

test('items are listed by namespace, label by label, and then by key; a prefix is whole labels', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  for (const [namespace, key] of [
    ['a', '2'],
    ['a', '1'],
    ['a-b', '1'],
    ['a.b', '1'],
    ['a.b.c', '1'],
    ['ab', '1'],
    ['b', '1'],
  ] as const)
    await tenant.putItem(item(namespace, key));
  await tenant.putItem(item('a', '1', 1, { userId: 'ben' }));
  await tenant.addMemories([newMemory({ content: 'no item', userId: 'ana', externalId: 'x' })]);
  expect(await namesOf(tenant)).toEqual(['a/1', 'a/2', 'a.b/1', 'a.b.c/1', 'a-b/1', 'ab/1', 'b/1']);
  expect(await namesOf(tenant, { namespace: 'a' })).toEqual(['a/1', 'a/2', 'a.b/1', 'a.b.c/1']);
  expect(await namesOf(tenant, { namespace: 'a.b' })).toEqual(['a.b/1', 'a.b.c/1']);
  expect(await namesOf(tenant, { userId: 'nobody' })).toEqual([]);

  expect(await namespacesOf(tenant, { userId: 'ana' })).toEqual([
    ['a', 2],
    ['a.b', 1],
    ['a.b.c', 1],
    ['a-b', 1],
    ['ab', 1],
    ['b', 1],
  ]);
  expect(await namespacesOf(tenant, { maxDepth: 1 })).toEqual([
    ['a', 5],
    ['a-b', 1],
    ['ab', 1],
    ['b', 1],
  ]);
  expect(await namespacesOf(tenant, { userId: 'ana', prefix: 'a.*' })).toEqual([
    ['a.b', 1],
    ['a.b.c', 1],
  ]);
  expect(await namespacesOf(tenant, { suffix: 'b' })).toEqual([
    ['a.b', 1],
    ['b', 1],
  ]);
  expect(await namespacesOf(tenant, { prefix: '*.b', suffix: '*', maxDepth: 2 })).toEqual([['a.b', 2]]);
});

test('items are filtered by keys of their value, and only objects have keys', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const values: Json[] = [{ n: 1, s: 'b' }, { n: 5 }, { n: '5' }, { s: null }, [1, 2], 'text', 7, { deep: { n: 1 } }];
  for (const [at, value] of values.entries()) await tenant.putItem(item('v', String(at), value));
  const passing = (value: ItemFilter['value']) => namesOf(tenant, { value });
  expect(await passing({ n: 1 })).toEqual(['v/0']);
  expect(await passing({ n: { $gt: 0, $lt: 9 } })).toEqual(['v/0', 'v/1']);
  expect(await passing({ n: { $exists: true } })).toEqual(['v/0', 'v/1', 'v/2']);
  expect(await passing({ n: { $in: [5, '5'] } })).toEqual(['v/1', 'v/2']);
  expect(await passing({ n: { $nin: [5, '5'] }, s: { $ne: 'b' } })).toEqual(['v/3', 'v/4', 'v/5', 'v/6', 'v/7']);
  expect(await passing({ length: { $exists: true } })).toEqual([]);
  await expect(passing({ n: { $like: 1 } as never })).rejects.toMatchObject({ code: 'invalid' });
});

test('expired items are neither listed nor counted, and archived ones are', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  await tenant.putItem(item('e', '1', 1, { expiresAt: START + 1_000 }));
  const { memory } = await tenant.putItem(item('e', '2'));
  await tenant.putItem(item('gone', '1', 1, { expiresAt: START + 1_000 }));
  await tenant.patchMemory(memory.id, { status: 'archived' });
  clock.advance(1_000);
  expect(await namesOf(tenant)).toEqual(['e/2']);
  expect(await namespacesOf(tenant, {})).toEqual([['e', 1]]);
});

test('a page ends after 4 MiB of values and goes on after it', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  for (let at = 10; at < 30; at += 1)
    await tenant.putItem(item('big', String(at), 'x'.repeat(250_000), { content: '' }));
  const pages = await pagesOf(tenant, {}, 100);
  expect(pages.map(({ length }) => length)).toEqual([17, 3]);
  expect(new Set(pages.flat()).size).toBe(20);
});

test('pages show what is there all the time once, whatever is put and deleted between them', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const place = fc.record({
    namespace: fc.constantFrom('a', 'a.b', 'a.b.c', 'a-b', 'ab', 'b', '\u{1F600}.\uFF5E'),
    key: fc.constantFrom('1', '2', '\uFF5E', '\u{1F600}'),
  });
  const change = fc.record({ place, isPut: fc.boolean() });
  const run = fc.asyncProperty(
    fc.array(place, { maxLength: 20 }),
    fc.array(fc.array(change, { maxLength: 3 }), { maxLength: 8 }),
    fc.integer({ min: 1, max: 4 }),
    async (places, changes, limit) => {
      for (const { namespace, key } of places) await tenant.putItem(item(namespace, key));
      const always = new Set(await namesOf(tenant));
      const seen: string[] = [];
      let cursor: string | undefined;
      for (let at = 0; ; at += 1) {
        const page = await tenant.listItems({ userId: 'ana', namespace: '' }, { limit, cursor });
        seen.push(...page.items.map(nameOf));
        if (page.next === null) break;
        cursor = page.next;
        for (const { place: changed, isPut } of changes[at] ?? []) {
          const name = `${changed.namespace}/${changed.key}`;
          if (isPut) await tenant.putItem(item(changed.namespace, changed.key));
          else await tenant.deleteItem({ userId: 'ana', ...changed }).catch(() => {});
          if (!isPut) always.delete(name);
        }
      }
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen).toEqual(expect.arrayContaining([...always]));
      await tenant.deleteMemories({ userIds: ['ana'] });
    },
  );
  await fc.assert(run, { numRuns: 25 });
});

test('a cursor of another list, a broken and a forged one are refused, and a foreign place shows nothing else', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  for (const path of ['a', 'b', 'c']) {
    await tenant.putItem(item(path, '1'));
    await tenant.putItem(item(path, '2'));
  }
  const list = (cursor: string, namespace = '') => tenant.listItems({ userId: 'ana', namespace }, { limit: 9, cursor });
  const { next } = await tenant.listNamespaces({ prefix: '', suffix: '' }, { limit: 1 });
  const clear = Buffer.from(JSON.stringify(['items', 'a', '1'])).toString('base64url');
  const forged = (list: string, ...place: Place) => sealCursor(fixture.store, list, place);
  const malformed = [forged('items'), forged('items', 1, 2), forged('items', 'a', '1', 'b')];
  const bad = [next!, 'x', '====', '__proto__', clear, forged('names', 'a', '1'), ...malformed];
  for (const cursor of [...bad, forged('items', '\ud800', ''), forged('items', 'a'.repeat(9_000), '')])
    await expect(list(cursor), cursor.slice(0, 40)).rejects.toMatchObject({ code: 'invalid' });
  const names = async (cursor: string, namespace: string) => (await list(cursor, namespace)).items.map(nameOf);
  expect(await names(forged('items', 'a', '1'), 'b')).toEqual(['b/1', 'b/2']);
  expect(await names(forged('items', 'b', '1'), 'b')).toEqual(['b/2']);
  expect(await names(forged('items', 'c', '1'), 'b')).toEqual([]);
});

test('a namespace moves with all below it, joins another, and stops at a key that is taken', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  const { memory } = await tenant.putItem(item('a', '1'));
  for (const [namespace, key] of [
    ['a.b', '1'],
    ['ab', '1'],
    ['z', '2'],
  ] as const)
    await tenant.putItem(item(namespace, key));
  const move = (namespace: string, to: string) => tenant.moveNamespace({ userId: 'ana', namespace, to });
  expect(await move('a', 'z')).toEqual({ items: 2, namespaces: 2 });
  expect(await namesOf(tenant)).toEqual(['ab/1', 'z/1', 'z/2', 'z.b/1']);
  expect(await tenant.getItem({ userId: 'ana', namespace: 'z', key: '1' })).toMatchObject({
    id: memory.id,
    version: 1,
  });
  expect(await move('a', 'z')).toEqual({ items: 0, namespaces: 0 });
  expect(fixture.get("SELECT group_concat(path, ' ' ORDER BY path) FROM namespaces")).toBe('ab z z.b');

  await expect(move('ab', 'z')).rejects.toMatchObject({ code: 'conflict' });
  for (const [from, to] of [
    ['z', 'z'],
    ['z', 'z.b'],
    ['z.b', 'z'],
    ['z', 'y'.repeat(511)],
  ] as const)
    await expect(move(from, to)).rejects.toMatchObject({ code: 'invalid' });
  expect(await namesOf(tenant)).toEqual(['ab/1', 'z/1', 'z/2', 'z.b/1']);

  await tenant.putItem(item('old', '1', 1, { expiresAt: START + 1_000 }));
  await tenant.putItem(item('new', '1', 2));
  await tenant.putItem(item('new', '2', 3, { expiresAt: START + 1_000 }));
  await tenant.putItem(item('old', '2', 4));
  clock.advance(1_000);
  expect(await move('old', 'new')).toEqual({ items: 1, namespaces: 1 });
  // A key that is taken below leaves even what was moved before it where it was.
  await tenant.putItem(item('c', '1'));
  await tenant.putItem(item('c.z', '1'));
  await tenant.putItem(item('d.z', '1'));
  await expect(move('c', 'd')).rejects.toMatchObject({ code: 'conflict' });
  expect(await namesOf(tenant, { namespace: 'c' })).toEqual(['c/1', 'c.z/1']);
  const { items } = await tenant.listItems({ userId: 'ana', namespace: 'new' }, { limit: 9 });
  expect(items.map(({ externalId, value }) => [externalId, value])).toEqual([
    ['1', 2],
    ['2', 4],
  ]);
});

test('a large namespace is moved and deleted as a whole, and leaves nothing', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  for (let at = 0; at < 230; at += 1) await tenant.putItem(item(at % 2 ? 'm' : 'm.n', String(at), at, { content: '' }));
  expect(await tenant.moveNamespace({ userId: 'ana', namespace: 'm', to: 'o' })).toEqual({ items: 230, namespaces: 2 });
  expect(await namespacesOf(tenant, {})).toEqual([
    ['o', 115],
    ['o.n', 115],
  ]);
  const place = { userId: 'ana', namespace: 'o' };
  expect((await tenant.deleteNamespace(place)).memories).toBe(230);
  expect((await tenant.deleteNamespace(place)).memories).toBe(0);
  expect(fixture.get('SELECT count(*) FROM namespaces')).toBe(0);
});

test('a move of more than 1,000 items takes several commits, and a key that is taken moves none of them', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const keys = Array.from({ length: 2_100 }, (_, at) => String(at).padStart(5, '0'));
  await Promise.all(keys.map((key) => tenant.putItem(item('m', key, 1, { tags: ['red'] }))));
  await tenant.putItem(item('m', 'blue', 1, { tags: ['blue'] }));
  await tenant.putItem(item('m.n', '1', 1, { tags: ['red'] }));
  await tenant.putItem(item('o', keys.at(-1)!));
  const move = (to: string) => tenant.moveNamespace({ userId: 'ana', namespace: 'm', to }, { withinTags: ['red'] });
  await expect(move('o')).rejects.toMatchObject({ code: 'conflict' });
  expect(await namespacesOf(tenant, {})).toEqual([
    ['m', 2_101],
    ['m.n', 1],
    ['o', 1],
  ]);
  expect(await move('p')).toEqual({ items: 2_101, namespaces: 2 });
  expect(await namespacesOf(tenant, {})).toEqual([
    ['m', 1],
    ['o', 1],
    ['p', 2_100],
    ['p.n', 1],
  ]);
  const renames = await tenant.listAudit({ limit: 100, action: 'namespace.rename' });
  expect(renames.map(({ detail }) => detail['items']).sort()).toEqual([1_000, 1_000, 101]);
});

test('a move that was interrupted is ended by the same request, whatever its first commit left', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  const context = { store: fixture.store, now: clock.now() } as unknown as WriteContext;
  for (const key of ['1', '2', '3']) await tenant.putItem(item('a', key));
  await tenant.putItem(item('a.b', '1'));
  await tenant.putItem(item('z', '4'));
  const move = { userId: 'ana', namespace: 'a', to: 'z' };
  const first = moveNamespace(context, { ...move, after: null, limit: 2, withinTags: [] });
  expect(first).toEqual({ items: 2, namespaces: 1, next: { path: 'a', key: '2', isCounted: true } });
  expect(await namesOf(tenant)).toEqual(['a/3', 'a.b/1', 'z/1', 'z/2', 'z/4']);
  expect(await tenant.moveNamespace(move)).toEqual({ items: 2, namespaces: 2 });
  expect(await namesOf(tenant)).toEqual(['z/1', 'z/2', 'z/3', 'z/4', 'z.b/1']);
});

test('expired items that give way are erased a hundred in a commit', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  const keys = Array.from({ length: 230 }, (_, at) => String(at).padStart(5, '0'));
  await Promise.all(keys.map((key) => tenant.putItem(item('old', key, 1, { expiresAt: START + 1_000 }))));
  await Promise.all(keys.map((key) => tenant.putItem(item('new', key))));
  clock.advance(1_000);
  const move = { userId: 'ana', namespace: 'new', to: 'old', limit: 1_000, withinTags: [] };
  const slices: (readonly [items: number, memories: number])[] = [];
  for (let after: MoveSlice['after'] = null, isDone = false; !isDone;) {
    const { items, next } = runCommand(fixture, (context) => moveNamespace(context, { ...move, after }));
    slices.push([items, fixture.get<number>('SELECT count(*) FROM memories')]);
    [after, isDone] = [next, next === null];
  }
  expect(slices).toEqual([
    [0, 360],
    [0, 260],
    [230, 230],
  ]);
  expect(await namespacesOf(tenant, {})).toEqual([['old', 230]]);
});

test('a caller bound to a user and tags lists, moves and deletes its own items alone', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  await tenant.putItem(item('n', 'red', 1, { tags: ['red'] }));
  await tenant.putItem(item('n', 'blue', 1, { tags: ['blue'] }));
  await tenant.putItem(item('secret', 'blue', 1, { tags: ['blue'] }));
  await tenant.putItem(item('n', 'ben', 1, { userId: 'ben', tags: ['red'] }));
  const bound = boundTenant(tenant, { userId: 'ana', tags: ['red'] });
  expect(await namesOf(bound, { userId: '' })).toEqual(['n/red']);
  expect(await namespacesOf(bound, {})).toEqual([['n', 1]]);
  await expect(namesOf(bound, { userId: 'ben' })).rejects.toMatchObject({ code: 'forbidden' });
  expect(await bound.moveNamespace({ userId: '', namespace: 'n', to: 'secret' })).toEqual({ items: 1, namespaces: 1 });
  expect((await bound.deleteNamespace({ userId: '', namespace: 'secret' })).memories).toBe(1);
  expect(await namesOf(tenant)).toEqual(['n/blue', 'secret/blue']);
});
