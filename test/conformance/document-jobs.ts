/** What is expected of an older job of a document for which another file was handed in, on each engine. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { runNextDocument } from '../../src/engine/batches/run-document.ts';
import { DocumentError } from '../../src/engine/documents/document-error.ts';
import type { PageFetcher } from '../../src/engine/ports.ts';
import { uploadsFolder } from '../../src/engine/documents/uploads.ts';
import { tendDocuments } from '../../src/engine/upkeep/tend-documents.ts';
import { openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { exportText, portableLines } from '../support/portable.ts';

/** Hands in a file of the one document, and returns the id of its job. */
async function handIn({ tenant }: TestEngine, text: string): Promise<{ documentId: string; jobId: string }> {
  const { document, jobId } = await tenant.addDocument(
    newDocument(await upload(tenant, text), { externalId: 'handbook' }),
  );
  return { documentId: document.id, jobId: jobId! };
}

/** An attempt to read the next document that fails for a reason other than the file; the job is dead after it. */
async function failReading({ batch }: TestEngine): Promise<void> {
  const documentParser = {
    ...batch.documentParser!,
    parse: () => Promise.reject(new Error('the reader is out of order')),
  };
  await runNextDocument({ ...batch, documentParser }, { alone: false, onClaimed: () => {} });
}

const countUploads = ({ file }: TestEngine) => fs.readdirSync(uploadsFolder(file)).length;

/** Defines the test of a file that is handed in again. @param settings the database in which it stores memories */
export function testImportedTorso(settings: () => Promise<Record<string, string>>): void {
  test('a file whose import lacks a part is read when it is handed in again', async () => {
    await using fixture = await openTestEngine({ settings: await settings() });
    const { tenant } = fixture;
    const again = async () => tenant.addDocument(newDocument(await upload(tenant, '# Zoo\n\nAlpacas and bisons.')));
    const { document } = await again();
    await fixture.drain();
    const lines = portableLines(await exportText(tenant));
    const isPart = (line: (typeof lines)[number]) => line.type === 'memory' && line.document?.index === 0;
    expect(lines.filter(isPart)).toHaveLength(1);
    await tenant.deleteDocument(document.id);
    await tenant.importLines(lines.filter((line) => !isPart(line)));
    await fixture.drain();
    expect(await tenant.getDocument(document.id)).toMatchObject({ state: 'processing' });

    expect(await again()).toMatchObject({ outcome: 'replaced', document: { id: document.id } });
    await fixture.drain();
    expect(await tenant.getDocument(document.id)).toMatchObject({ state: 'ready', error: null });
    const { hits } = await tenant.query({ query: 'alpacas', k: 5, filter: {} });
    expect(hits).toHaveLength(1);
    expect(await again()).toMatchObject({ outcome: 'unchanged' });
  });
}

/** Defines the test of a page that is handed in again. @param settings the database in which it stores memories */
export function testImportedPageTorso(settings: () => Promise<Record<string, string>>): void {
  test('a page whose import lacks a part is read when it is handed in again', async () => {
    const bytes = Buffer.from('# Zoo\n\nAlpacas and bisons.');
    const sha256 = createHash('sha256').update(bytes).digest();
    const pageFetcher: PageFetcher = {
      async fetch(url, known) {
        const page = { url, bytes, sha256, declared: 'markdown' as const, charset: null, extension: 'md' };
        return known === null ? { ...page, etag: '"1"', lastModified: null } : 'unchanged';
      },
      close: async () => {},
    };
    await using fixture = await openTestEngine({ settings: await settings(), pageFetcher });
    const { tenant } = fixture;
    const page = newDocument({ kind: 'url', url: 'https://example.com/zoo' });
    const { document } = await tenant.addDocument(page);
    await fixture.drain();
    const lines = portableLines(await exportText(tenant));
    await tenant.deleteDocument(document.id);
    await tenant.importLines(lines.filter((line) => line.type !== 'memory' || line.document?.index !== 0));
    await fixture.drain();
    await tenant.addDocument(page);
    await fixture.drain();
    expect(await tenant.getDocument(document.id)).toMatchObject({ state: 'ready', error: null });
    expect((await tenant.query({ query: 'alpacas', k: 5, filter: {} })).hits).toHaveLength(1);
  });
}

/**
 * Defines the tests of a page that is handed in again while its chunks are still to be embedded.
 * @param settings the database in which each test stores its memories
 */
export function testPageReadAgain(settings: () => Promise<Record<string, string>>): void {
  const url = 'https://example.com/zoo';
  const open = async (again: () => Promise<'unchanged'> = () => Promise.resolve('unchanged')) => {
    const bytes = Buffer.from('# Zoo\n\nAlpacas and bisons.');
    const sha256 = createHash('sha256').update(bytes).digest();
    const page = { bytes, sha256, declared: 'markdown' as const, charset: null, extension: 'md' };
    const pageFetcher: PageFetcher = {
      fetch: async (asked, known) =>
        known === null ? { ...page, url: asked, etag: '"1"', lastModified: null } : again(),
      close: async () => {},
    };
    const fixture = await openTestEngine({ settings: { ...(await settings()), OM_JOB_ATTEMPTS: '1' }, pageFetcher });
    onTestFinished(() => fixture.close());
    const { tenant } = fixture;
    const handIn = async () => {
      const { document, jobId, token } = await tenant.addDocument(newDocument({ kind: 'url', url }));
      return { documentId: document.id, jobId: jobId!, hasEnded: () => tenant.waitFor(token!, 0) };
    };
    const first = await handIn();
    await fixture.readDocument();
    return { fixture, tenant, first, second: await handIn() };
  };

  test('a page that has not changed is ready, and each receipt satisfied, once its chunks are embedded', async () => {
    const { fixture, tenant, first, second } = await open();
    await fixture.readDocument();
    expect(await tenant.getDocument(first.documentId)).toMatchObject({ state: 'processing', readyAt: null });
    for (const { jobId, hasEnded } of [first, second]) {
      expect(await tenant.getJob(jobId)).toMatchObject({ step: 'settle', state: 'queued' });
      expect(await hasEnded()).toBe(false);
    }
    await fixture.drain();
    expect(await tenant.getDocument(first.documentId)).toMatchObject({
      state: 'ready',
      readyAt: expect.any(Number),
      progress: { stages: { encode: expect.any(Number) } },
    });
    for (const { jobId, hasEnded } of [first, second]) {
      expect(await tenant.getJob(jobId)).toMatchObject({ state: 'done' });
      expect(await hasEnded()).toBe(true);
    }
  });

  test.each(['cancelled', 'failed'])('a second reading that is %s leaves a page processing until then', async (end) => {
    const error = new DocumentError('fetch_refused', 'the page may not be fetched any more');
    const { fixture, tenant, first, second } = await open(() => Promise.reject(error));
    if (end === 'cancelled') await tenant.cancelDocument(first.documentId);
    else await fixture.readDocument();
    const { progress } = await tenant.getDocument(first.documentId);
    expect(progress).toMatchObject({ chunks: 1, embedded: 0 });
    const seen = { error: end === 'failed' ? { code: error.code, message: error.message } : null };
    expect(await tenant.getDocument(first.documentId)).toMatchObject({ ...seen, state: 'processing' });
    expect([await first.hasEnded(), await second.hasEnded()]).toEqual([false, true]);
    await fixture.drain();
    expect(await tenant.getDocument(first.documentId)).toMatchObject({ ...seen, state: 'ready' });
    expect(await first.hasEnded()).toBe(true);
  });

  test('a page that is being read again when its chunks are embedded becomes ready after the reading', async () => {
    let seen: unknown;
    const { fixture, tenant, first, second } = await open(async () => {
      // Bulk jobs wait for half a minute while documents are read.
      fixture.clock.advance(31_000);
      while ((await fixture.runBatch()).claimed > 0);
      seen = [await first.hasEnded(), (await tenant.getDocument(first.documentId)).state];
      return 'unchanged';
    });
    await fixture.readDocument();
    expect(seen).toEqual([true, 'processing']);
    expect(await second.hasEnded()).toBe(true);
    expect(await tenant.getDocument(first.documentId)).toMatchObject({
      ...{ state: 'ready', error: null, readyAt: expect.any(Number) },
    });
  });

  test('the job of a reading waits no longer for chunks once another one is shown in its place', async () => {
    const { fixture, tenant, first } = await open();
    const other = newDocument({ kind: 'url', url }, { tags: ['zoo'] });
    const { jobId } = await tenant.addDocument(other);
    await fixture.readDocument();
    expect(await tenant.getJob(first.jobId)).toMatchObject({ state: 'cancelled' });
    expect(await tenant.getJob(jobId!)).toMatchObject({ step: 'settle', state: 'queued' });
    await fixture.drain();
    expect(await tenant.getDocument(first.documentId)).toMatchObject({ state: 'ready', tags: ['zoo'] });
  });
}

/** Defines the tests. @param settings the database in which each test stores its memories */
export function testOlderDocumentJobs(settings: () => Promise<Record<string, string>>): void {
  const open = async () => openTestEngine({ settings: { ...(await settings()), OM_JOB_ATTEMPTS: '1' } });

  test('an older job that was cancelled is discarded without the file that was handed in since', async () => {
    await using fixture = await open();
    const { tenant } = fixture;
    const older = await handIn(fixture, 'The first edition is about alpacas.');
    const newer = await handIn(fixture, 'The second edition is about bisons.');
    expect((await tenant.getJob(older.jobId)).state).toBe('cancelled');
    await tenant.discardJob(older.jobId);
    await fixture.drain();
    expect(await tenant.getDocument(older.documentId)).toMatchObject({ state: 'ready', error: null });
    expect((await tenant.getJob(newer.jobId)).state).toBe('done');
  });

  test('an older job that is dead is discarded without the file of a newer one that is dead, too', async () => {
    await using fixture = await open();
    const { tenant } = fixture;
    const older = await handIn(fixture, 'The first edition is about alpacas.');
    await failReading(fixture);
    const newer = await handIn(fixture, 'The second edition is about bisons.');
    await failReading(fixture);
    await tenant.discardJob(older.jobId);
    await tenant.retryJob(newer.jobId);
    await fixture.drain();
    expect(await tenant.getDocument(older.documentId)).toMatchObject({ state: 'ready', error: null });
  });

  test('the newest job is discarded with its file, although older jobs are in the ledger', async () => {
    await using fixture = await open();
    const { tenant } = fixture;
    await handIn(fixture, 'The first edition is about alpacas.');
    await failReading(fixture);
    const newer = await handIn(fixture, 'The second edition is about bisons.');
    await failReading(fixture);
    await tenant.discardJob(newer.jobId);
    await tendDocuments(fixture.maintenance);
    expect(countUploads(fixture)).toBe(0);
  });

  test('an older job that is dead is not retried beside a newer one, be that queued or dead', async () => {
    await using fixture = await open();
    const { tenant } = fixture;
    const older = await handIn(fixture, 'The first edition is about alpacas.');
    await failReading(fixture);
    const newer = await handIn(fixture, 'The second edition is about bisons.');
    const refused = { code: 'conflict', message: 'a newer job reads this document' };
    await expect(tenant.retryJob(older.jobId)).rejects.toMatchObject(refused);
    await failReading(fixture);
    await expect(tenant.retryJob(older.jobId)).rejects.toMatchObject(refused);
    await tenant.retryJob(newer.jobId);
    await fixture.drain();
    expect(await tenant.countJobs()).toMatchObject({ dead: 1, queued: 0, active: 0, failed: 0 });
    expect(await tenant.getDocument(older.documentId)).toMatchObject({ state: 'ready', error: null });
  });

  test('a job that waits for the chunks of its document is not cancelled, and the document becomes ready', async () => {
    await using fixture = await open();
    const { tenant } = fixture;
    const { documentId, jobId } = await handIn(fixture, 'The handbook is about alpacas.');
    await fixture.readDocument();
    expect(await tenant.getJob(jobId)).toMatchObject({ step: 'settle', state: 'queued' });
    await expect(tenant.cancelJob(jobId)).rejects.toMatchObject({ code: 'conflict' });
    await fixture.drain();
    expect(await tenant.getDocument(documentId)).toMatchObject({ state: 'ready' });
    expect(await tenant.getJob(jobId)).toMatchObject({ state: 'done' });
  });
}
