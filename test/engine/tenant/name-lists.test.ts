import { expect, test } from 'vitest';
import type { Tenant } from '../../../src/engine/engine.ts';
import { listNames } from '../../../src/engine/store/name-lists.ts';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import { NAME_KINDS, type NameFilter, type NameKind } from '../../../src/engine/types.ts';
import { expectNoOrphans, openTestEngine, START } from '../../support/engine-fixture.ts';

/** Names with their counts, from pages of one. */
async function namesOf(tenant: Tenant, kind: NameKind, filter: Partial<NameFilter> = {}): Promise<[string, number][]> {
  const all: [string, number][] = [];
  for (let cursor: string | undefined; ;) {
    const { items, next } = await tenant.listNames(kind, { prefix: '', ...filter }, { limit: 1, cursor });
    all.push(...items.map(({ name, memories }): [string, number] => [name, memories]));
    if (next === null) return all;
    cursor = next;
  }
}

test('users, sessions, types and tags are listed with counts, by prefix, and are gone with their memories', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  await fixture.add({ content: 'a', userId: 'ana', sessionId: 's1', type: 'note', tags: ['work', 'ui'] });
  clock.advance(1_000);
  const { id } = await fixture.add({ content: 'b', userId: 'ana', sessionId: 's2', type: 'fact', tags: ['work'] });
  await fixture.add({ content: 'c', userId: 'ben', sessionId: 's1', type: 'note', tags: ['work', 'Work', 'x'] });
  await fixture.add({ content: 'd', tags: ['x'], expiresAt: START + 5_000 });
  await fixture.add({ content: 'e', userId: 'anton' });

  expect(await namesOf(tenant, 'users')).toEqual([
    ['', 1],
    ['ana', 2],
    ['anton', 1],
    ['ben', 1],
  ]);
  expect(await namesOf(tenant, 'users', { prefix: 'an' })).toEqual([
    ['ana', 2],
    ['anton', 1],
  ]);
  expect(await namesOf(tenant, 'users', { userId: 'ben' })).toEqual([['ben', 1]]);
  expect(await namesOf(tenant, 'sessions', { userId: 'ana' })).toEqual([
    ['s1', 1],
    ['s2', 1],
  ]);
  expect(await namesOf(tenant, 'types')).toEqual([
    ['fact', 1],
    ['note', 2],
  ]);
  expect(await namesOf(tenant, 'types', { userId: 'ben' })).toEqual([['note', 1]]);
  expect(await namesOf(tenant, 'tags')).toEqual([
    ['Work', 1],
    ['ui', 1],
    ['work', 3],
    ['x', 2],
  ]);
  expect(await namesOf(tenant, 'tags', { userId: 'ana', prefix: 'w' })).toEqual([['work', 2]]);
  const [first] = (await tenant.listNames('tags', { userId: 'ana', prefix: 'work' }, { limit: 1 })).items;
  expect(first).toEqual({ name: 'work', memories: 2, lastUsedAt: START + 1_000 });

  await tenant.patchMemory(id, { tags: ['later'], type: null });
  expect(await namesOf(tenant, 'tags', { userId: 'ana' })).toEqual([
    ['later', 1],
    ['ui', 1],
    ['work', 1],
  ]);
  clock.set(START + 5_000);
  expect((await namesOf(tenant, 'users')).map(([name]) => name)).toEqual(['ana', 'anton', 'ben']);
  expect(await namesOf(tenant, 'tags', { prefix: 'x' })).toEqual([['x', 1]]);
  await tenant.deleteMemories({ userIds: ['ana', 'anton', 'ben'] });
  await tenant.deleteMemories({ tags: ['x'] });
  for (const kind of NAME_KINDS) expect(await namesOf(tenant, kind, { userId: '' })).toEqual([]);
  expect(fixture.get('SELECT count(*) FROM labels')).toBe(0);
  expect(fixture.get('SELECT count(*) FROM memory_labels')).toBe(0);
  expectNoOrphans(fixture.store);
});

test('names of others stay unseen by a bound caller, and cursors are those of the list', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  await fixture.add({ content: 'a', userId: 'ana', sessionId: 's1', type: 'note', tags: ['red', 'mine'] });
  await fixture.add({ content: 'b', userId: 'ana', sessionId: 's2', type: 'hidden', tags: ['blue'] });
  await fixture.add({ content: 'c', userId: 'ben', sessionId: 's3', type: 'foreign', tags: ['red', 'theirs'] });
  const bound = boundTenant(tenant, { userId: 'ana', tags: ['red'] });
  expect(await namesOf(bound, 'users')).toEqual([['ana', 1]]);
  expect(await namesOf(bound, 'sessions')).toEqual([['s1', 1]]);
  expect(await namesOf(bound, 'types')).toEqual([['note', 1]]);
  expect(await namesOf(bound, 'tags')).toEqual([
    ['mine', 1],
    ['red', 1],
  ]);
  await expect(namesOf(bound, 'tags', { userId: 'ben' })).rejects.toMatchObject({ code: 'forbidden' });
  const byTag = boundTenant(tenant, { tags: ['red'] });
  expect(await namesOf(byTag, 'users')).toEqual([
    ['ana', 1],
    ['ben', 1],
  ]);
  await expect(namesOf(tenant, 'sessions')).rejects.toMatchObject({ code: 'invalid' });
  const { next } = await tenant.listNames('types', { prefix: '' }, { limit: 1 });
  await expect(tenant.listNames('tags', { prefix: '' }, { limit: 1, cursor: next! })).rejects.toMatchObject({
    code: 'invalid',
  });
});

test('users and sessions that have only session logs are listed, with the number of items, and not when cleared', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  await fixture.add({ content: 'a', userId: 'ben', sessionId: 's2' });
  clock.advance(1_000);
  await tenant.changeLog({ userId: 'ana', sessionId: 's1' }, { items: [1, 2] });
  await tenant.changeLog({ userId: 'ben', sessionId: 's1' }, { items: [1] });
  await tenant.changeLog({ userId: '', sessionId: 's9' }, { items: [1] });
  const all = async (kind: NameKind, filter: Partial<NameFilter> = {}) =>
    (await tenant.listNames(kind, { prefix: '', ...filter }, { limit: 10 })).items;
  expect(await all('users')).toEqual([
    { name: '', memories: 0, logItems: 1, lastUsedAt: START + 1_000 },
    { name: 'ana', memories: 0, logItems: 2, lastUsedAt: START + 1_000 },
    { name: 'ben', memories: 1, logItems: 1, lastUsedAt: START + 1_000 },
  ]);
  expect(await namesOf(tenant, 'users')).toHaveLength(3);
  expect(await all('users', { userId: 'ana' })).toMatchObject([{ name: 'ana' }]);
  expect(await all('sessions', { userId: 'ana' })).toMatchObject([{ name: 's1', memories: 0, logItems: 2 }]);
  expect(await all('sessions', { userId: 'ben' })).toMatchObject([{ name: 's1' }, { name: 's2', logItems: 0 }]);
  expect(await all('types', { userId: 'ana' })).toEqual([]);
  // A log has no tags by which it could lie within the bounds of a key.
  expect(await boundTenant(tenant, { tags: ['x'] }).listNames('users', { prefix: '' }, { limit: 10 })).toEqual({
    items: [],
    next: null,
  });
  await tenant.clearLog({ userId: 'ana', sessionId: 's1' });
  expect(await all('users', { prefix: 'a' })).toEqual([]);
});

test('each statement of a list of names steps along an index', async () => {
  await using fixture = await openTestEngine();
  const { store } = fixture;
  await fixture.add({ content: 'a', userId: 'ana', sessionId: 's', type: 't', tags: ['x'] });
  const statements = new Set<string>();
  const spied = { ...store, prepare: (sql: string) => (statements.add(sql), store.prepare(sql)) };
  for (const kind of NAME_KINDS)
    for (const userId of kind === 'sessions' ? ['ana'] : ['ana', undefined])
      for (const prefix of ['', 'a'])
        listNames(spied, kind, { filter: { userId, prefix }, page: { limit: 1 }, now: 1 });
  for (const sql of statements) {
    const explained = `EXPLAIN QUERY PLAN ${sql.replaceAll('?', '1')}`;
    const plan = fixture.all<{ detail: string }>(explained).map(({ detail }) => detail);
    expect(plan.join('; '), sql).not.toMatch(/SCAN (m|u|l|x|d)\b|TEMP B-TREE/);
  }
});
