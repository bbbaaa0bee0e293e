import { expect, onTestFinished, test } from 'vitest';
import { findEntity, listEntities } from '../../../src/engine/store/entity-lists.ts';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import { createWorkBudget, ROW_BYTES, runWithin } from '../../../src/engine/store/work-budget.ts';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';

const NAMES = Array.from({ length: 12 }, (_, no) => `Mill ${String.fromCodePoint(65 + no)}`);
const MEMORIES = 60;
/** Tags of some 8 KB, as many and as long as a memory may have. */
const LONG_TAGS = Array.from({ length: 62 }, (_, no) => `${no} ${'x'.repeat(120)}`);

/** Memories that all mention all names; every fifth is within the bounds `red`. */
async function filled(settings: Readonly<Record<string, string>> = {}) {
  const fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none', ...settings } });
  onTestFinished(() => fixture.close());
  const notes = Array.from({ length: MEMORIES }, (_, no) =>
    newMemory({ content: `Note ${no}.`, entities: NAMES, tags: [...LONG_TAGS, no % 5 === 4 ? 'red' : 'blue'] }),
  );
  await fixture.tenant.addMemories(notes);
  await fixture.drain(256);
  return fixture;
}

test('the tags of a memory are parsed once for a list, however many names it mentions', async () => {
  const { store, clock } = await filled();
  const filter = compileFilter({ tags: ['red'] }, clock.now());
  const budget = createWorkBudget({ bytes: Number.MAX_SAFE_INTEGER, deadlineMs: 600_000 });
  const before = budget.left;
  const listing = { prefix: '', userId: undefined, filter };
  const list = runWithin(budget, () => listEntities(store, listing, { limit: 100, offset: 0 }));
  expect(list).toMatchObject({ items: NAMES.map((label) => ({ label, mentions: MEMORIES / 5 })), isCut: false });
  const tagBytes = JSON.stringify([...LONG_TAGS, 'blue']).length + ROW_BYTES;
  const mentionBytes = 3 * ROW_BYTES * NAMES.length * MEMORIES;
  expect(before - budget.left).toBeLessThan(MEMORIES * tagBytes + mentionBytes);

  const left = budget.left;
  const mill = runWithin(budget, () => findEntity(store, 'mill a', { userId: undefined, filter }));
  expect(mill).toMatchObject({ mentions: MEMORIES / 5, isCut: false });
  // Once for the latest memories, and once for those that count.
  expect(left - budget.left).toBeLessThan(2 * MEMORIES * tagBytes + mentionBytes);
});

test('pages of names follow each other, and hold only names that the caller sees', async () => {
  const fixture = await filled();
  await fixture.add({ content: 'Hidden.', entities: ['Aardvark'], tags: ['blue'] });
  await fixture.add({ content: 'Seen.', entities: ['Zebra'], tags: ['red'] });
  await fixture.drain();
  const bound = boundTenant(fixture.tenant, { tags: ['red'] });
  const pages = await Promise.all(
    [0, 5, 10, 15].map((offset) => bound.listEntities({ prefix: '', userId: undefined }, { limit: 5, offset })),
  );
  expect(pages.map(({ items }) => items.map(({ label }) => label))).toEqual([
    NAMES.slice(0, 5),
    NAMES.slice(5, 10),
    [...NAMES.slice(10), 'Zebra'],
    [],
  ]);
});

test('a list and a name that need too much work say that they were cut', async () => {
  const fixture = await filled({ OM_QUERY_WORK_MB: '1' });
  const notes = Array.from({ length: 100 }, (_, no) =>
    newMemory({ content: `Other note ${no}.`, entities: ['Mill A'], tags: [...LONG_TAGS, 'blue'] }),
  );
  await fixture.tenant.addMemories(notes);
  await fixture.drain(256);
  const bound = boundTenant(fixture.tenant, { tags: ['red'] });
  const page = { limit: 10, offset: 0 };
  const list = await bound.listEntities({ prefix: '', userId: undefined }, page);
  expect(list.isCut).toBe(true);
  expect(list.items.length).toBeGreaterThan(0);
  expect(await bound.getEntity('Mill A', undefined)).toMatchObject({ name: 'mill a', isCut: true });
  expect(await fixture.tenant.listEntities({ prefix: '', userId: undefined }, page)).toMatchObject({ isCut: false });
});

test('a caller bound to tags learns nothing of memories outside them, neither from a list nor from a name', async () => {
  const fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  onTestFinished(() => fixture.close());
  await fixture.add({ content: 'First.', entities: ['TOPAZ', 'Amber', 'Onyx'], tags: ['red'] });
  const hidden = Array.from({ length: 2_050 }, (_, no) =>
    newMemory({ content: `Hidden ${no}.`, entities: no < 20 ? ['opal', 'AMBER', 'topaz'] : ['opal'], tags: ['blue'] }),
  );
  await fixture.tenant.addMemories(hidden);
  const own = ['Second', 'Third'].map((content) =>
    newMemory({ content, entities: ['Onyx', 'Amber', 'Opal'].slice(content === 'Second' ? 2 : 0), tags: ['red'] }),
  );
  await fixture.tenant.addMemories(own);
  await fixture.drain(256);
  fixture.store.prepare("UPDATE entities SET label = 'hidden', type = 'hidden'").run();
  const bound = boundTenant(fixture.tenant, { tags: ['red'] });
  const list = (limit: number, offset = 0) => bound.listEntities({ prefix: '', userId: undefined }, { limit, offset });
  const [amber, onyx, opal, topaz] = [
    { name: 'amber', label: 'Amber', type: 'other', mentions: 2 },
    { name: 'onyx', label: 'Onyx', type: 'other', mentions: 2 },
    { name: 'opal', label: 'Opal', type: 'other', mentions: 2 },
    { name: 'topaz', label: 'TOPAZ', type: 'other', mentions: 1 },
  ];
  expect(await list(100)).toEqual({ items: [amber, onyx, opal, topaz], isCut: false });
  expect(await list(1, 1)).toEqual({ items: [onyx], isCut: false });
  expect(await bound.getEntity('opal', undefined)).toMatchObject({ ...opal, isCut: false });
  expect(await bound.getEntity('Amber', undefined)).toMatchObject({ ...amber, isCut: false });
});

test('a caller bound to tags finds its own behind any number of names, mentions and relations of others', async () => {
  const fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  onTestFinished(() => fixture.close());
  const { id } = await fixture.add({ content: 'Own.', entities: ['Topaz', 'Zircon'], tags: ['red'] });
  const hidden = Array.from({ length: 2_050 }, (_, no) =>
    newMemory({ content: `Hidden ${no}.`, entities: ['topaz'], tags: ['blue'] }),
  );
  await fixture.tenant.addMemories(hidden);
  await fixture.drain(256);
  const { store } = fixture;
  store.write(() => {
    const names = `WITH RECURSIVE n AS (SELECT 1 AS no UNION ALL SELECT no + 1 FROM n WHERE no < ?)`;
    store
      .prepare(
        `INSERT INTO entities (user_no, name, label, type, mentions)
         ${names} SELECT user_no, 'a' || no, 'hidden', 'other', 1 FROM n CROSS JOIN users`,
      )
      .run(50_001);
    store
      .prepare(
        `INSERT INTO entity_mentions (entity_no, memory, label, type)
         SELECT entity_no, (SELECT max(seq) FROM memories), label, type FROM entities WHERE label = 'hidden'`,
      )
      .run();
    store
      .prepare(
        `INSERT INTO entity_relations (src, dst, relation, memory)
         ${names} SELECT t.entity_no, z.entity_no, 'a' || no, (SELECT max(seq) FROM memories)
         FROM n CROSS JOIN entities t CROSS JOIN entities z WHERE t.name = 'topaz' AND z.name = 'zircon'`,
      )
      .run(5_001);
    store
      .prepare(
        `INSERT INTO entity_relations (src, dst, relation, memory)
         SELECT t.entity_no, z.entity_no, 'uses', (SELECT min(seq) FROM memories)
         FROM entities t CROSS JOIN entities z WHERE t.name = 'topaz' AND z.name = 'zircon'`,
      )
      .run();
  });
  const bound = boundTenant(fixture.tenant, { tags: ['red'] });
  const [topaz, zircon] = ['Topaz', 'Zircon'].map((label) => {
    return { name: label.toLowerCase(), label, type: 'other', mentions: 1 };
  });
  const page = { limit: 10, offset: 0 };
  expect(await bound.listEntities({ prefix: '', userId: undefined }, page)).toEqual({
    items: [topaz, zircon],
    isCut: false,
  });
  const uses = { type: 'uses', memories: 1 };
  expect(await bound.getEntity('Topaz', undefined)).toEqual({
    ...topaz,
    relations: [{ ...uses, direction: 'out', name: 'zircon', label: 'Zircon' }],
    memoryIds: [id],
    isCut: false,
  });
  expect(await bound.getEntity('Zircon', undefined)).toMatchObject({
    relations: [{ ...uses, direction: 'in', name: 'topaz', label: 'Topaz' }],
    isCut: false,
  });
});
