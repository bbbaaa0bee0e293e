import { expect, test } from 'vitest';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import {
  appendAudit,
  listAudit,
  purgeAudit,
  readAuditSlice,
  verifyAudit,
} from '../../../src/engine/store/audit-chain.ts';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';

test('adds of a key that share a commit share a record, and other commands have their own', async () => {
  await using fixture = await openTestEngine();
  const own = fixture.tenant.as('ann');
  await Promise.all(Array.from({ length: 20 }, (_, n) => own.addMemories([newMemory({ content: `number ${n}` })])));
  await fixture.tenant.as('ben').addMemories([newMemory({ content: 'number 20' })]);
  const records = await own.listAudit({ limit: 100 });
  const added = (keyId: string) => records.filter((record) => record.keyId === keyId);
  expect(added('ann').reduce((sum, { detail }) => sum + Number(detail['added']), 0)).toBe(20);
  expect(added('ann').length).toBeLessThan(20);
  expect(added('ben')).toMatchObject([{ action: 'memory.add', detail: { added: 1 } }]);
  const ids = (await own.listMemories({ writtenBy: ['ann'] }, { limit: 100, offset: 0 })).map(({ id }) => id);
  await Promise.all(ids.map((id) => own.deleteMemory(id)));
  const deleted = (await own.listAudit({ limit: 100, action: 'memory.delete' })).map(({ detail }) => detail['id']);
  expect(deleted.sort()).toEqual(ids.sort());
});

test('a record of several adds counts those that supersede a memory', async () => {
  await using fixture = await openTestEngine();
  const own = fixture.tenant.as('ann');
  const ids: string[] = [];
  for (let n = 0; n < 20; n += 1) ids.push((await fixture.add({ content: `number ${n}` })).id);
  const [kept, ...superseded] = ids;
  const newer = superseded.map((supersedes, n) => newMemory({ content: `the newer number ${n}`, supersedes }));
  await Promise.all(newer.map((item) => own.addMemories([item])));
  const records = (await own.listAudit({ limit: 100 })).filter(({ keyId }) => keyId === 'ann');
  expect(records.length).toBeLessThan(newer.length);
  expect(records.reduce((sum, { detail }) => sum + Number(detail['superseding'] ?? 0), 0)).toBe(newer.length);
  expect((await own.getMemory(kept!)).status).toBe('active');
});

test('a command that is refused leaves no record, even if others of its commit are stored', async () => {
  await using fixture = await openTestEngine();
  const { id } = await fixture.add({ content: 'one' });
  const results = await Promise.allSettled([
    fixture.tenant.deleteMemory('no such memory'),
    fixture.tenant.patchMemory(id, { tags: ['a'] }),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  const actions = (await fixture.tenant.listAudit({ limit: 9 })).map(({ action }) => action);
  expect(actions).toEqual(['memory.patch', 'memory.add']);
});

test('after old records were removed the rest can still be checked, even if none is left', async () => {
  await using fixture = await openTestEngine();
  const { store, clock, tenant } = fixture;
  for (let n = 0; n < 6; n += 1) {
    await fixture.add({ content: `number ${n}` });
    clock.advance(DAY_MS);
  }
  expect(store.write(() => purgeAudit(store, clock.now() - 3 * DAY_MS, 2))).toBe(2);
  expect(store.write(() => purgeAudit(store, clock.now() - 3 * DAY_MS, 2))).toBe(1);
  expect(store.write(() => purgeAudit(store, clock.now() - 3 * DAY_MS, 2))).toBe(0);
  expect(verifyAudit(store)).toMatchObject({ records: 3, brokenAt: null });
  expect(store.write(() => purgeAudit(store, clock.now(), 9))).toBe(3);
  expect(verifyAudit(store)).toMatchObject({ records: 0, brokenAt: null });
  await fixture.add({ content: 'afterwards' });
  expect(await tenant.listAudit({ limit: 9 })).toMatchObject([{ no: 7 }]);
  expect(verifyAudit(store)).toMatchObject({ records: 1, brokenAt: null });
});

test('a long log is examined in slices, however few of its records match', async () => {
  await using fixture = await openTestEngine();
  const { store, tenant } = fixture;
  const [last, rare] = [25_000, new Set([3, 9_999, 10_000, 15_001, 15_002, 25_000])];
  store.write(() => {
    for (let no = 1; no <= last; no += 1) {
      appendAudit(store, { at: no, keyId: 'ann', action: rare.has(no) ? 'rare' : 'often', detail: { no } });
    }
  });
  const found = [...rare].sort((a, b) => b - a);
  const numbers = (records: readonly { readonly no: number }[]) => records.map(({ no }) => no);
  expect(numbers(await tenant.listAudit({ limit: 100, action: 'rare' }))).toEqual(found);
  expect(numbers(await tenant.listAudit({ limit: 3, action: 'rare', before: 25_000 }))).toEqual(found.slice(1, 4));
  expect(numbers(await tenant.listAudit({ limit: 100, action: 'rare', from: 4, to: 15_002 }))).toEqual(
    found.filter((no) => no >= 4 && no < 15_002),
  );
  expect(await tenant.listAudit({ limit: 100, action: 'never' })).toEqual([]);
  const ends: (number | undefined)[] = [];
  await listAudit({ limit: 100, action: 'never' }, (part) => {
    ends.push(part.before);
    return readAuditSlice(store, part);
  });
  expect(ends).toEqual([undefined, 15_001, 5_001]);
  await expect(tenant.listAudit({ limit: 1 }, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
});
