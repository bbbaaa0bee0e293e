/** Callers who do not reach the whole tenant are told no numbers of it, also where a part of their add was stored. */
import { expect, test } from 'vitest';
import { addOnlyTenant } from '../../../src/engine/tenant/add-only-tenant.ts';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import { openWithQuota, sections } from '../../support/document-quota.ts';
import { newMemory, openTestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';

const words = (from: number) => Array.from({ length: 9_000 }, (_, no) => `word${from + no}`).join(' ');

test('an add whose rest has no room names the quota to a bound key without numbers', async () => {
  await using fixture = await openTestEngine({ settings: { OM_TENANT_MAX_MB: '2' } });
  const messages = async (tenant: typeof fixture.tenant, first: number) => {
    const items = Array.from({ length: 12 }, (_, no) =>
      newMemory({ content: words(10_000 * (first + no)), userId: 'ana' }),
    );
    const { outcomes } = await tenant.addMemories(items);
    return [
      outcomes[0]!.kind,
      outcomes.flatMap((outcome) => (outcome.kind === 'rejected' ? [outcome.error.message] : [])),
    ];
  };
  const [kind, refused] = await messages(boundTenant(fixture.tenant, { userId: 'ana', tags: [] }), 0);
  expect(kind).toBe('accepted');
  expect(new Set(refused)).toEqual(
    new Set(['quota max_mb (OM_TENANT_MAX_MB): the tenant has no room for this; deletes still work']),
  );
  await expect(messages(addOnlyTenant(fixture.tenant, 'writer'), 20)).rejects.toThrow(/^[^\d]*$/);
});

test('a document that waits for the quota or exceeds it names the quota to a bound key without numbers', async () => {
  const quota = await openWithQuota(7);
  await using fixture = quota.fixture;
  const { tenant } = fixture;
  await quota.addText(sections(2, 'of others'));
  const waiting = await quota.addText(sections(5, 'waiting'), { tags: ['team'] });
  const failed = await quota.addText(sections(9, 'too large'), { tags: ['team'] });
  const adding = addOnlyTenant(tenant.as('writer'), 'writer');
  const added = await adding.addDocument(newDocument(await upload(tenant, sections(6, 'added'))));
  await quota.readAll();
  const wait = 'it waits: max_memories (OM_TENANT_MAX_MEMORIES)';
  const room = `${wait} leaves no room for it`;
  const numbers = `${wait} allows the tenant 7 memories, which leaves no room for it`;
  for (const bound of [boundTenant(tenant, { tags: ['team'] }), boundTenant(tenant, { userId: '' })])
    expect((await bound.getJob(waiting.jobId!)).error).toEqual({ code: 'storage_full', message: room });
  expect((await adding.getJob(added.jobId!)).error).toMatchObject({ message: room });
  expect((await tenant.getJob(waiting.jobId!)).error).toMatchObject({ message: numbers });
  const full = 'quota max_memories (OM_TENANT_MAX_MEMORIES): the tenant has no room for this; deletes still work';
  const bound = boundTenant(tenant, { userId: '' });
  expect((await bound.getDocument(failed.document.id)).error).toMatchObject({ message: full });
  expect((await bound.getJob(failed.jobId!)).error).toMatchObject({ message: full });
  const page = { limit: 9, offset: 0 };
  const listed = (await bound.listDocuments({}, page)).items;
  for await (const slice of (await bound.streamDocuments({}, page)).slices) listed.push(...slice);
  const errors = listed.flatMap(({ id, error }) => (id === failed.document.id ? [error?.message] : []));
  expect(errors).toEqual([full, full]);
});

test('the receipt of a delete by a bound key does not tell whether others have the text', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const counts = async (deleting: typeof tenant) => {
    const item = { ...newMemory({ content: '' }), content: null, value: 1, userId: 'ana', tags: ['a'] };
    const { id } = await fixture.add({ content: 'The gate code.', userId: 'ana' });
    await fixture.add({ content: 'The code of the gate.', userId: 'ana', tags: ['a'] });
    for (const namespace of ['one', 'two']) await tenant.putItem({ ...item, namespace, key: 'k' });
    const read = await tenant.addDocument(newDocument(await upload(tenant, 'The gate.'), { userId: 'ana' }));
    const receipts = [
      await deleting.deleteMemory(id),
      await deleting.deleteItem({ userId: 'ana', namespace: 'one', key: 'k' }),
      await deleting.deleteNamespace({ userId: 'ana', namespace: 'two' }),
      await deleting.deleteMemories({ tags: ['a'] }),
      await deleting.deleteDocument(read.document.id),
    ];
    return receipts.filter((receipt) => 'cachedEmbeddings' in receipt).length;
  };
  expect(await counts(tenant)).toBe(5);
  expect(await counts(boundTenant(tenant, { userId: 'ana' }))).toBe(0);
});
