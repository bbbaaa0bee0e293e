import { expect, test } from 'vitest';
import { runNextDocument } from '../../../src/engine/batches/run-document.ts';
import { createDocumentShares } from '../../../src/engine/control/document-shares.ts';
import { failDocument } from '../../../src/engine/store/documents.ts';
import type { PortableLine } from '../../../src/engine/types.ts';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';

const text = (name: string, letters = 200_000) => `# ${name}\n\n${'The heron stands here. '.repeat(letters / 23)}`;

/** Hands documents in, one after the other, until one is refused. @returns those that were accepted, and the refusal */
async function fillWithDocuments({ tenant }: TestEngine) {
  const accepted = [];
  for (let n = 0; n < 12; n += 1) {
    const source = await upload(tenant, text(`${n} ${accepted.length} ${Math.random()}`));
    try {
      accepted.push((await tenant.addDocument(newDocument(source))).document);
    } catch (error) {
      expect(error).toMatchObject({
        code: 'storage_full',
        message: expect.stringMatching(/^quota max_mb .*documents that wait to be read/),
      });
      return { accepted, refusal: error };
    }
  }
  return { accepted, refusal: null };
}

test('documents that wait to be read, and kept files of failed readings, count against the quota in MB', async () => {
  await using fixture = await openTestEngine({ settings: { OM_TENANT_MAX_MB: '3' } });
  const { tenant, store, clock } = fixture;
  const { accepted, refusal } = await fillWithDocuments(fixture);
  expect(refusal).toMatchObject({ retryAfterMs: 30_000 });
  expect(accepted.length).toBeGreaterThan(0);
  expect(accepted.length).toBeLessThan(4);
  // Memories are still added: what waits counts for documents alone.
  await fixture.add({ content: 'a memory has room' });
  await tenant.deleteDocument(accepted.pop()!.id);
  accepted.push(...(await fillWithDocuments(fixture)).accepted);

  // A file whose reading failed counts once, and no longer six times: more of them are taken in, but not without end.
  const failAll = () =>
    store.write(() => {
      const error = { code: 'parser_crashed', message: 'the reader ended', now: clock.now() };
      for (const documentNo of store.prepare('SELECT document_no FROM documents').pluck().all() as number[])
        failDocument(store, documentNo, error);
    });
  for (let rounds = 0, isFull = false; !isFull; rounds += 1) {
    failAll();
    const { accepted: more, refusal: next } = await fillWithDocuments(fixture);
    if (rounds === 0) expect(more.length).toBeGreaterThan(0);
    isFull = more.length === 0;
    // Failed readings keep their files until they are deleted: it does not help to wait.
    if (isFull) expect(next).toMatchObject({ retryAfterMs: undefined });
    accepted.push(...more);
    expect(accepted.length).toBeLessThanOrEqual(15);
  }
});

test('while a tenant is at its quota in MB, its documents wait unread, at no attempt, until there is room', async () => {
  await using fixture = await openTestEngine();
  const { engine, tenant, batch, clock } = fixture;
  const { document, jobId } = await tenant.addDocument(newDocument(await upload(tenant, text('one', 2_300))));
  for (let n = 0; n < 6; n += 1) await fixture.add({ content: `${n} ${'filling '.repeat(25_000)}` });
  engine.control.limits.change({ tenantId: 'default' }, { max_mb: 1 });
  const share = createDocumentShares(engine.control, engine.rates)('default');
  const readNext = () => runNextDocument({ ...batch, share }, { alone: false, onClaimed: () => {} });
  expect(await readNext()).toBe(false);
  expect(await tenant.getJob(jobId!)).toMatchObject({
    state: 'queued',
    attempts: 0,
    error: { code: 'storage_full', message: expect.stringMatching(/max_mb \(OM_TENANT_MAX_MB\)/) },
  });
  engine.control.limits.change({ tenantId: 'default' }, { max_mb: null });
  expect(await readNext()).toBe(false);
  clock.advance(10_000);
  expect(await readNext()).toBe(true);
  await fixture.drain();
  expect(await tenant.getDocument(document.id)).toMatchObject({ state: 'ready' });
});

test('at the quota in MB nothing is written that no delete frees: no reinforcement, no log without items', async () => {
  await using fixture = await openTestEngine();
  const { engine, tenant } = fixture;
  const { id } = await fixture.add({ content: `reinforced ${'filling '.repeat(25_000)}` });
  const place = { userId: 'ana', sessionId: 'empty' };
  const empty = { first: 0, removed: 0, total: 0, replayed: false };
  expect(await tenant.changeLog(place, { items: [], replaces: { from: 0 } })).toEqual(empty);
  expect(fixture.all('SELECT * FROM session_logs')).toEqual([]);
  const filled = { ...place, sessionId: 'filled' };
  await tenant.changeLog(filled, { items: ['one', 'two'] });
  for (let n = 0; n < 4; n += 1) await fixture.add({ content: `${n} ${'filling '.repeat(25_000)}` });
  engine.control.limits.change({ tenantId: 'default' }, { max_mb: 1 });
  const records = fixture.all('SELECT * FROM audit').length;
  await expect(tenant.reinforceMemory(id, 0.1)).rejects.toMatchObject({ code: 'storage_full' });
  const change = { items: [], replaces: { from: 0 }, operationId: 'one' };
  await expect(tenant.changeLog(place, change)).rejects.toMatchObject({ code: 'storage_full' });
  const nothing = { items: [], replaces: { from: 2 }, operationId: 'nothing' };
  await expect(tenant.changeLog(filled, nothing)).rejects.toMatchObject({ code: 'storage_full' });
  expect(fixture.all('SELECT * FROM audit')).toHaveLength(records);
  const cut = { items: [], replaces: { from: 1 }, operationId: 'cut' };
  expect(await tenant.changeLog(filled, cut)).toMatchObject({ removed: 1, total: 1 });
});

test('at the quota in MB no line of an import is stored, and no feedback on a recall', async () => {
  await using fixture = await openTestEngine({ settings: { OM_RECALL_DAYS: '30' } });
  const { engine, tenant } = fixture;
  const { id } = await fixture.add({ content: `heron ${'filling '.repeat(25_000)}`, userId: 'ana' });
  await fixture.add({ content: 'the heron is grey', userId: 'ana' });
  await fixture.drain();
  const { recallId, hits } = await tenant.query({ query: 'heron', k: 3, filter: {}, minScore: 0 });
  await tenant.getRecall(recallId);
  for (let n = 0; n < 4; n += 1) await fixture.add({ content: `${n} ${'filling '.repeat(25_000)}` });
  engine.control.limits.change({ tenantId: 'default' }, { max_mb: 1 });
  const full = { code: 'storage_full' };
  await expect(tenant.giveFeedback(recallId, 'used', [hits[0]!.memory.id])).rejects.toMatchObject(full);
  const line = {
    type: 'revision',
    memory: id,
    version: 1,
    replaced: { content: 'x' },
    replaced_at: 1,
    fields: ['content'],
  };
  await expect(tenant.importLines([line as unknown as PortableLine])).rejects.toMatchObject(full);
});
