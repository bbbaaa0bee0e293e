/** What is expected of an older job of a document for which another file was handed in, on each engine. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { expect, test } from 'vitest';
import { runNextDocument } from '../../src/engine/batches/run-document.ts';
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
