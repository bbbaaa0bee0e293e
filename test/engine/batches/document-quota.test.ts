/** The quota of memories holds for documents: those that wait, those that are read, and those that replace others. */
import { expect, test } from 'vitest';
import { runNextDocument } from '../../../src/engine/batches/run-document.ts';
import { createTenantShares } from '../../../src/engine/parts/tenant-shares.ts';
import { listChunks } from '../../support/list-chunks.ts';
import { expectToWaitForRoom, expectWaitingToCount, openWithQuota, sections } from '../../support/document-quota.ts';

test('documents that wait count as one memory each where others are handed in, and wait while there is no room', () =>
  expectWaitingToCount());

test('a document for whose parts there is too little room waits, and is read once there is enough', () =>
  expectToWaitForRoom());

test('a document of more parts than may be stored fails, says so, and can be retried under a higher limit', async () => {
  const quota = await openWithQuota(4);
  await using fixture = quota.fixture;
  const { tenant } = quota;
  const { document, jobId } = await quota.addText(sections(4, 'large'));
  await quota.readAll();
  const error = {
    code: 'storage_full',
    message: 'quota max_memories (OM_TENANT_MAX_MEMORIES): the document has 5 parts, 4 are allowed',
  };
  expect(await tenant.getDocument(document.id)).toMatchObject({ state: 'failed', error });
  expect(quota.countStored()).toBe(0);
  quota.setLimit(5);
  await tenant.retryJob(jobId!);
  await quota.readAll();
  expect(quota.countStored()).toBe(5);
  await fixture.drain();
  expect(await tenant.getDocument(document.id)).toMatchObject({ state: 'ready', chunks: 4 });
});

test('a replacement has the room of what it replaces, and no more', async () => {
  const quota = await openWithQuota(5);
  await using fixture = quota.fixture;
  const { tenant } = quota;
  const { document } = await quota.addText(sections(2, 'first'), { externalId: 'one' });
  const firstChunk = async () =>
    (await tenant.getMemory((await listChunks(tenant, document.id, { limit: 1, offset: 0 }))[0]!.memoryId)).content;
  await fixture.add({ content: 'a memory' });
  await fixture.add({ content: 'another memory' });
  await quota.readAll();
  expect(quota.countStored()).toBe(5);
  // The tenant is full: a new document is refused, one of equal size takes the place of the other.
  await expect(quota.addText(sections(1, 'new'))).rejects.toMatchObject({ code: 'storage_full' });
  expect((await quota.addText(sections(2, 'second'), { externalId: 'one' })).outcome).toBe('replaced');
  await quota.readAll();
  expect(quota.countStored()).toBe(5);
  expect(await firstChunk()).toContain('second');
  // A larger one waits, and queries find what they found before.
  const { jobId } = await quota.addText(sections(3, 'third'), { externalId: 'one' });
  await quota.readAll();
  expect(await tenant.getJob(jobId!)).toMatchObject({ state: 'queued', attempts: 0, error: { code: 'storage_full' } });
  expect(quota.countStored()).toBe(5);
  expect(await firstChunk()).toContain('second');
});

test('of two documents that are read at once and do not both fit, one waits', async () => {
  const quota = await openWithQuota(6);
  await using fixture = quota.fixture;
  for (const name of ['one', 'two']) await quota.addText(sections(3, name));
  await Promise.all([quota.readNext(), quota.readNext()]);
  expect([quota.parses(), quota.countStored()]).toEqual([2, 4]);
  const waiting = fixture.all(`SELECT attempts FROM jobs WHERE step = 'ingest' AND error_code = 'storage_full'`);
  expect(waiting).toEqual([{ attempts: 0 }]);
});

test('a document whose reading broke off has the room that its parts take', async () => {
  const quota = await openWithQuota(130);
  await using fixture = quota.fixture;
  const { clock, batch } = fixture;
  const { document } = await quota.addText(sections(120, 'long'));
  let made = 0;
  const share = createTenantShares(fixture.engine.control, fixture.engine.rates)(fixture.file);
  const failing = {
    ...{ ...batch, share },
    newId: () => {
      made += 1;
      if (made > 100) throw new Error('the disk has gone');
      return batch.newId();
    },
  };
  await runNextDocument(failing, { alone: false, onClaimed: () => {} });
  expect(quota.countStored()).toBeGreaterThan(10);
  clock.advanceDays(1);
  await quota.readAll();
  expect(quota.countStored()).toBe(121);
  await fixture.drain();
  expect(await quota.tenant.getDocument(document.id)).toMatchObject({ state: 'ready', chunks: 120 });
});
