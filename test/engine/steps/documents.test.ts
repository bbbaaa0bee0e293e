import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { uploadsFolder } from '../../../src/engine/documents/uploads.ts';
import { decayMemories } from '../../../src/engine/upkeep/decay-memories.ts';
import { expireMemories } from '../../../src/engine/upkeep/expire-memories.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import { tendDocuments } from '../../../src/engine/upkeep/tend-documents.ts';
import { runNextDocument } from '../../../src/engine/batches/run-document.ts';
import { rebuildText } from '../../../src/engine/admin/rebuild-text.ts';
import { DAY_MS } from '../../../src/engine/dynamics.ts';
import type { Embedder, PageFetcher } from '../../../src/engine/ports.ts';
import { getDocumentRow, hideDocument } from '../../../src/engine/store/documents.ts';
import type { Document, DocumentState, NewDocument } from '../../../src/engine/types.ts';
import {
  expectNoOrphans,
  idsWithWord,
  newMemory,
  openTestEngine,
  type TestEngine,
} from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';
import { listChunks } from '../../support/list-chunks.ts';

/** Chunks of a paragraph each, so that a page of text is a document of many. */
const SMALL_CHUNKS = { OM_CHUNK_TOKENS: '64', OM_CHUNK_OVERLAP_TOKENS: '0' };

async function open(settings: Record<string, string> = SMALL_CHUNKS): Promise<TestEngine> {
  const fixture = await openTestEngine({ settings });
  onTestFinished(() => fixture.close());
  return fixture;
}

const WORDS = 'harbour lantern meadow copper willow granite saffron violet timber anchor'.split(' ');

/** A section whose words no other has. */
function section(name: string, paragraphs = 2): string {
  const sentence = (at: number) =>
    `The ${WORDS[at % WORDS.length]} of ${name} was written down as note ${at} and kept beside the ${WORDS[(at + 3) % WORDS.length]} for later readers.`;
  const paragraph = (at: number) => [sentence(at), sentence(at + 1)].join(' ');
  return `## ${name}\n\n${Array.from({ length: paragraphs }, (_, at) => paragraph(2 * at)).join('\n\n')}\n\n`;
}

const HANDBOOK = `# Handbook\n\n${section('Alpaca')}${section('Bison')}${section('Capybara')}`;

async function ingest(fixture: TestEngine, text: string, document: Partial<NewDocument> = {}) {
  const reply = await fixture.tenant.addDocument(newDocument(await upload(fixture.tenant, text), document));
  return reply;
}

async function ingested(fixture: TestEngine, text: string, document: Partial<NewDocument> = {}): Promise<Document> {
  const reply = await ingest(fixture, text, document);
  await fixture.drain();
  return fixture.tenant.getDocument(reply.document.id);
}

function uploads({ file }: TestEngine): string[] {
  const folder = uploadsFolder(file);
  return fs.existsSync(folder) ? fs.readdirSync(folder) : [];
}

/** A try to read that ends for a reason which is not the file's. */
async function failReading({ batch }: TestEngine): Promise<void> {
  const documentParser = {
    ...batch.documentParser!,
    parse: () => Promise.reject(new Error('the reader is out of order')),
  };
  await runNextDocument({ ...batch, documentParser }, { alone: false, onClaimed: () => {} });
}

/** Hits whose text holds the word: with no floor, anything may come back that is near. */
async function find(fixture: TestEngine, word: string) {
  const query = { query: word, k: 20, filter: {}, minScore: 0, perDocument: 0, reinforce: false };
  const { hits } = await fixture.tenant.query(query);
  return hits.filter(({ memory }) => memory.content.toLowerCase().includes(word));
}

describe('a document', () => {
  test('becomes a root and chunks that rejoin to its text, each with its place', async () => {
    const fixture = await open();
    const document = await ingested(fixture, HANDBOOK, { tags: ['manual'], metadata: { shelf: 3 }, userId: 'ann' });
    expect(document).toMatchObject({
      state: 'ready',
      format: 'markdown',
      title: 'Handbook',
      bytes: Buffer.byteLength(HANDBOOK),
      characters: HANDBOOK.length,
      error: null,
      receipt: { kept: 0, removed: 0 },
      progress: { failed: 0 },
    });
    const chunks = await listChunks(fixture.tenant, document.id, { limit: 100, offset: 0 });
    expect(chunks.length).toBe(document.chunks);
    expect(document.receipt?.stored).toBe(document.chunks);
    expect(document.progress).toMatchObject({ chunks: chunks.length, embedded: chunks.length, linked: chunks.length });
    expect(await textOf(await fixture.tenant.documentContent(document.id))).toBe(HANDBOOK);
    for (const { memoryId, provenance } of chunks) {
      const memory = await fixture.tenant.getMemory(memoryId);
      expect(memory.content).toBe(HANDBOOK.slice(provenance.startOffset!, provenance.endOffset!));
      expect(memory).toMatchObject({ userId: 'ann', tags: ['manual'], metadata: { shelf: 3 }, state: 'ready' });
      expect(memory.title.startsWith('Handbook')).toBe(true);
    }
    const root = await fixture.tenant.getMemory(document.rootMemoryId!);
    expect(root.content).toContain('Bison');
    expect(root.title).toBe('Handbook');
    expectNoOrphans(fixture.store);
    expect(uploads(fixture)).toEqual([]);
  });

  test('is found with its place, its heading and its neighbours', async () => {
    const fixture = await open();
    const document = await ingested(fixture, HANDBOOK);
    const { hits } = await fixture.tenant.query({
      query: 'capybara note 3',
      k: 3,
      filter: { documentIds: [document.id] },
      minScore: 0,
      perDocument: 0,
      expand: ['neighbours', 'document'],
      reinforce: false,
    });
    const hit = hits.find(({ memory }) => memory.content.includes('Capybara was written down as note 3'))!;
    expect(hit.document).toMatchObject({
      documentId: document.id,
      title: 'Handbook',
      fileName: 'notes.md',
      format: 'markdown',
      headingPath: ['Handbook', 'Capybara'],
      sha256: document.sha256,
    });
    expect(HANDBOOK.slice(hit.document!.startOffset!, hit.document!.endOffset!)).toBe(hit.memory.content);
    expect(hit.neighbours!.before.at(-1)!.content.length).toBeGreaterThan(0);
    expect(hit.sources![0]!.id).toBe(document.rootMemoryId);
  });

  test('at most two of its chunks come back while k is small', async () => {
    const fixture = await open();
    await ingested(fixture, HANDBOOK);
    const { hits } = await fixture.tenant.query({ query: 'note later readers', k: 10, filter: {}, minScore: 0 });
    expect(hits.length).toBe(2);
  });

  test('whose replacement has no text says that all chunks of the reading before are gone', async () => {
    const fixture = await open();
    const first = await ingested(fixture, HANDBOOK, { externalId: 'handbook' });
    const second = await ingested(fixture, ' \n', { externalId: 'handbook' });
    expect(second).toMatchObject({
      id: first.id,
      state: 'empty',
      receipt: { stored: 0, kept: 0, removed: first.chunks },
    });
  });

  test('without text ends empty, and leaves nothing behind', async () => {
    const fixture = await open();
    const document = await ingested(fixture, '  \n\n \n');
    expect(document).toMatchObject({ state: 'empty', error: { code: 'no_text_found' }, chunks: 0, rootMemoryId: null });
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(0);
    expect(uploads(fixture)).toEqual([]);
    expect(await fixture.tenant.countJobs()).toMatchObject({ done: 1, dead: 0 });
  });

  test('that cannot be read ends with its reason, in the list of dead jobs, and its file goes at once', async () => {
    const fixture = await open();
    const source = {
      ...(await upload(fixture.tenant, 'not a PDF at all', 'a.pdf')),
      declared: 'pdf',
    } as NewDocument['source'];
    const { document, jobId } = await fixture.tenant.addDocument(newDocument(source));
    await fixture.drain();
    expect(await fixture.tenant.getDocument(document.id)).toMatchObject({
      state: 'failed',
      error: { code: 'corrupt_document' },
    });
    expect(await fixture.tenant.getJob(jobId!)).toMatchObject({
      state: 'dead',
      kind: 'document',
      documentId: document.id,
    });
    expect(uploads(fixture)).toEqual([]);
    await expect(fixture.tenant.retryJob(jobId!)).rejects.toThrow('hand the document in again');
    await fixture.tenant.discardJob(jobId!);
    expect(await fixture.tenant.getDocument(document.id)).toMatchObject({
      state: 'failed',
      error: { code: 'corrupt_document' },
    });
  });

  test('whose reader failed keeps its file and can be read again', async () => {
    const fixture = await open({ ...SMALL_CHUNKS, OM_JOB_ATTEMPTS: '1' });
    const { document, jobId } = await ingest(fixture, HANDBOOK);
    await failReading(fixture);
    expect(await fixture.tenant.getDocument(document.id)).toMatchObject({
      state: 'failed',
      error: { code: 'internal' },
    });
    expect(uploads(fixture).length).toBe(1);
    await fixture.tenant.retryJob(jobId!);
    expect((await fixture.tenant.getDocument(document.id)).state).toBe('queued');
    await fixture.drain();
    expect(await fixture.tenant.getDocument(document.id)).toMatchObject({ state: 'ready', error: null });
    expect(uploads(fixture)).toEqual([]);
  });

  test('whose reader failed loses its file when the retention of jobs is over', async () => {
    const fixture = await open({ ...SMALL_CHUNKS, OM_JOB_ATTEMPTS: '1', OM_JOB_RETENTION_HOURS: '2' });
    const { jobId } = await ingest(fixture, HANDBOOK);
    await failReading(fixture);
    fixture.clock.advance(3_600_000);
    await runDueSchedules(fixture.maintenance);
    expect(uploads(fixture).length).toBe(1);
    fixture.clock.advance(3_600_001);
    await runDueSchedules(fixture.maintenance);
    expect(uploads(fixture)).toEqual([]);
    await expect(fixture.tenant.retryJob(jobId!)).rejects.toMatchObject({ code: 'conflict' });
  });

  test('whose file is gone says so', async () => {
    const fixture = await open();
    const { document } = await ingest(fixture, HANDBOOK);
    fs.rmSync(uploadsFolder(fixture.file), { recursive: true });
    await fixture.drain();
    expect(await fixture.tenant.getDocument(document.id)).toMatchObject({
      state: 'failed',
      error: { code: 'upload_missing' },
    });
  });
});

describe('all or nothing', () => {
  test('nothing of a document is seen before all of its words are', async () => {
    const fixture = await open();
    const long = `# Handbook\n\n${Array.from({ length: 100 }, (_, at) => section(`Alpaca ${at}`)).join('')}`;
    const { document, jobId } = await ingest(fixture, long);
    // A claim that loses its lease while it writes: what it wrote stays hidden.
    const reading = fixture.readDocument();
    const written = () => fixture.get<number>('SELECT count(*) FROM memories');
    await expect.poll(written, { interval: 1 }).toBeGreaterThan(1);
    fixture.store.write(() =>
      fixture.store.prepare(`UPDATE jobs SET lease_epoch = lease_epoch + 1, state = 'queued' WHERE id = ?`).run(jobId!),
    );
    await reading;
    expect(written()).toBeGreaterThan(1);
    expect(await find(fixture, 'alpaca')).toEqual([]);
    expect(await fixture.tenant.listMemories({}, { limit: 100, offset: 0 })).toEqual([]);
    const [hidden] = fixture.all<{ id: string }>('SELECT id FROM memories');
    await expect(fixture.tenant.getMemory(hidden!.id)).rejects.toThrow('no memory with this id');
    await expect(fixture.tenant.documentContent(document.id)).rejects.toThrow('has no content');
    // Read again, it stands once.
    await fixture.drain();
    const ready = await fixture.tenant.getDocument(document.id);
    expect(ready.state).toBe('ready');
    expect(written()).toBe(ready.chunks + 1);
    expect(await textOf(await fixture.tenant.documentContent(document.id))).toBe(long);
    expectNoOrphans(fixture.store);
  });

  test('a replacement is seen at once and whole, and what it replaced is gone', async () => {
    const fixture = await open();
    const first = await ingested(fixture, HANDBOOK, { externalId: 'handbook' });
    const changed = `# Handbook\n\n${section('Alpaca')}${section('Dingo')}${section('Capybara')}`;
    const reply = await ingest(fixture, changed, { externalId: 'handbook' });
    expect(reply).toMatchObject({ outcome: 'replaced', document: { id: first.id, state: 'queued' } });
    expect((await find(fixture, 'bison')).length).toBeGreaterThan(0);
    expect(await find(fixture, 'dingo')).toEqual([]);
    const keptIds = new Set(
      (await listChunks(fixture.tenant, first.id, { limit: 100, offset: 0 })).map((c) => c.memoryId),
    );
    await fixture.drain();
    await tendDocuments(fixture.maintenance);
    expect(await find(fixture, 'bison')).toEqual([]);
    expect((await find(fixture, 'dingo')).length).toBeGreaterThan(0);
    const second = await fixture.tenant.getDocument(first.id);
    expect(second.state).toBe('ready');
    const { stored, kept, removed } = second.receipt!;
    expect(kept).toBeGreaterThan(0);
    expect(stored + kept).toBe(second.chunks);
    expect(kept + removed).toBe(first.chunks);
    const now = await listChunks(fixture.tenant, first.id, { limit: 100, offset: 0 });
    expect(now.filter(({ memoryId }) => keptIds.has(memoryId)).length).toBe(kept);
    expect(await textOf(await fixture.tenant.documentContent(first.id))).toBe(changed);
    expect(idsWithWord(fixture, 'bison')).toEqual([]);
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(second.chunks + 1);
    expectNoOrphans(fixture.store);
  });

  test('a chunk that is kept is not embedded again', async () => {
    let texts = 0;
    const counting = (embedder: Embedder): Embedder => ({
      ...embedder,
      embed(batch, options) {
        texts += batch.length;
        return embedder.embed(batch, options);
      },
    });
    const fixture = await openTestEngine({ settings: SMALL_CHUNKS, embedder: counting });
    onTestFinished(() => fixture.close());
    const first = await ingested(fixture, HANDBOOK, { externalId: 'handbook' });
    expect(texts).toBe(first.chunks + 1);
    const second = await ingested(fixture, `${HANDBOOK}${section('Emu')}`, { externalId: 'handbook' });
    expect(second.receipt!.kept).toBeGreaterThan(0);
    // The new chunks, and the root, whose outline names the new section.
    expect(texts).toBe(first.chunks + 1 + second.receipt!.stored + 1);
    expectNoOrphans(fixture.store);
  });

  test('a replacement that cannot be read leaves what was there', async () => {
    const fixture = await open();
    const first = await ingested(fixture, HANDBOOK, { externalId: 'handbook' });
    const bad = { ...(await upload(fixture.tenant, 'no PDF', 'a.pdf')), declared: 'pdf' } as NewDocument['source'];
    await fixture.tenant.replaceDocument(first.id, newDocument(bad));
    await fixture.drain();
    expect(await fixture.tenant.getDocument(first.id)).toMatchObject({
      state: 'ready',
      error: { code: 'corrupt_document' },
    });
    expect((await find(fixture, 'bison')).length).toBeGreaterThan(0);
  });
});

describe('the same document again', () => {
  test('is recognised by its bytes; nothing is done and its file is removed', async () => {
    const fixture = await open();
    const first = await ingested(fixture, HANDBOOK);
    const again = await ingest(fixture, HANDBOOK);
    expect(again).toMatchObject({ outcome: 'unchanged', jobId: null, token: null, document: { id: first.id } });
    expect(uploads(fixture)).toEqual([]);
    expect(await fixture.tenant.countJobs()).toMatchObject({ queued: 0 });
  });

  test('of another user is another document', async () => {
    const fixture = await open();
    const first = await ingested(fixture, HANDBOOK, { userId: 'ann' });
    const second = await ingested(fixture, HANDBOOK, { userId: 'ben' });
    expect(second.id).not.toBe(first.id);
    expect((await fixture.tenant.listDocuments({ userIds: ['ben'] }, { limit: 10, offset: 0 })).items).toMatchObject([
      { id: second.id },
    ]);
  });

  test('with other tags keeps its chunks, which carry them', async () => {
    const fixture = await open();
    const first = await ingested(fixture, HANDBOOK, { tags: ['old'] });
    const second = await ingested(fixture, HANDBOOK, { tags: ['new'] });
    expect(second).toMatchObject({ id: first.id, tags: ['new'], receipt: { kept: first.chunks } });
    await tendDocuments(fixture.maintenance);
    expect(await fixture.tenant.listMemories({ tags: ['old'] }, { limit: 9, offset: 0 })).toEqual([]);
    expect((await fixture.tenant.listMemories({ tags: ['new'] }, { limit: 99, offset: 0 })).length).toBe(
      second.chunks + 1,
    );
  });

  test('that failed before is read again', async () => {
    const fixture = await open();
    const { document } = await ingest(fixture, HANDBOOK);
    fs.rmSync(uploadsFolder(fixture.file), { recursive: true });
    await fixture.drain();
    expect((await fixture.tenant.getDocument(document.id)).state).toBe('failed');
    expect(await ingested(fixture, HANDBOOK)).toMatchObject({ id: document.id, state: 'ready', error: null });
  });
});

describe('deleting', () => {
  test('a document removes its chunks, words, vectors, links, jobs and its file', async () => {
    const fixture = await open();
    const document = await ingested(fixture, HANDBOOK);
    const other = await fixture.add({ content: 'An unrelated note about zebras.' });
    const receipt = await fixture.tenant.deleteDocument(document.id);
    expect(receipt.memories).toBe(document.chunks + 1);
    expect(receipt.vectors).toBeGreaterThanOrEqual(document.chunks);
    await expect(fixture.tenant.getDocument(document.id)).rejects.toThrow('no document with this id');
    expect(fixture.all<{ id: string }>('SELECT id FROM memories')).toEqual([{ id: other.id }]);
    for (const table of ['documents', 'document_generations', 'chunks']) {
      expect(fixture.get(`SELECT count(*) FROM ${table}`), table).toBe(0);
    }
    expect(idsWithWord(fixture, 'alpaca')).toEqual([]);
    expectNoOrphans(fixture.store);
  });

  test('while it waits to be read cancels the reading', async () => {
    const fixture = await open();
    const { document } = await ingest(fixture, HANDBOOK);
    await fixture.tenant.deleteDocument(document.id);
    expect(await fixture.drain()).toBe(0);
    expect(uploads(fixture)).toEqual([]);
    expect(await fixture.tenant.countJobs()).toMatchObject({ cancelled: 1, queued: 0 });
  });

  test('its root deletes the document; one of its chunks is refused', async () => {
    const fixture = await open();
    const document = await ingested(fixture, HANDBOOK);
    const [chunk] = await listChunks(fixture.tenant, document.id, { limit: 1, offset: 0 });
    await expect(fixture.tenant.deleteMemory(chunk!.memoryId)).rejects.toMatchObject({ code: 'conflict' });
    await expect(fixture.tenant.patchMemory(chunk!.memoryId, { content: 'other' })).rejects.toMatchObject({
      code: 'conflict',
    });
    await expect(fixture.tenant.patchMemory(chunk!.memoryId, { tags: ['read'] })).resolves.toMatchObject({
      tags: ['read'],
    });
    await fixture.tenant.deleteMemory(document.rootMemoryId!);
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(0);
    expect(fixture.get('SELECT count(*) FROM documents')).toBe(0);
  });

  test('by a filter that meets a part takes the whole document', async () => {
    const fixture = await open();
    const document = await ingested(fixture, HANDBOOK);
    const [chunk] = await listChunks(fixture.tenant, document.id, { limit: 1, offset: 0 });
    await fixture.tenant.patchMemory(chunk!.memoryId, { tags: ['odd'] });
    const receipt = await fixture.tenant.deleteMemories({ tags: ['odd'] });
    expect(receipt.memories).toBe(document.chunks + 1);
    expect(fixture.get('SELECT count(*) FROM documents')).toBe(0);
    expectNoOrphans(fixture.store);
  });

  test('of a user takes documents that are still being read', async () => {
    const fixture = await open();
    await ingested(fixture, HANDBOOK, { userId: 'ann' });
    await fixture.tenant.deleteMemories({ userIds: ['ann'] });
    expect(fixture.get('SELECT count(*) FROM documents')).toBe(0);
    expectNoOrphans(fixture.store);
  });

  test('happens by itself when it expires', async () => {
    const fixture = await open();
    await ingested(fixture, HANDBOOK, { expiresAt: fixture.clock.now() + 60_000 });
    fixture.clock.advance(61_000);
    expect(await find(fixture, 'alpaca')).toEqual([]);
    await expireMemories(fixture.maintenance);
    await tendDocuments(fixture.maintenance);
    for (const table of ['documents', 'document_generations', 'chunks', 'memories']) {
      expect(fixture.get(`SELECT count(*) FROM ${table}`), table).toBe(0);
    }
  });
});

describe('erasing by a filter', () => {
  const LONG = `# Handbook\n\n${Array.from({ length: 100 }, (_, at) => section(`Alpaca ${at}`)).join('')}`;
  const ANN = { userId: 'ann' };

  /** Brings a document of Ann's into a state. @returns what is still under way */
  const bring: Record<DocumentState, (fixture: TestEngine) => Promise<unknown>> = {
    queued: (fixture) => ingest(fixture, HANDBOOK, ANN),
    async processing(fixture) {
      await ingest(fixture, LONG, ANN);
      const reading = fixture.readDocument();
      const written = () => fixture.get<number>('SELECT count(*) FROM memories');
      await expect.poll(written, { interval: 1 }).toBeGreaterThan(1);
      return { reading };
    },
    ready: (fixture) => ingested(fixture, HANDBOOK, ANN),
    empty: (fixture) => ingested(fixture, ' \n', ANN),
    async failed(fixture) {
      await ingest(fixture, HANDBOOK, ANN);
      await failReading(fixture);
    },
    async cancelled(fixture) {
      const { document } = await ingest(fixture, HANDBOOK, ANN);
      await fixture.tenant.cancelDocument(document.id);
    },
  };

  test.each(Object.keys(bring) as DocumentState[])(
    'a user’s memories takes a document that is %s, and nothing of it turns up later',
    async (state) => {
      const fixture = await open({ ...SMALL_CHUNKS, OM_JOB_ATTEMPTS: '1' });
      const others = await ingested(fixture, `# Other\n\n${section('Zebra')}`, { userId: 'ben' });
      const underWay = await bring[state](fixture);
      expect((await fixture.tenant.listDocuments({ userIds: ['ann'] }, { limit: 9, offset: 0 })).items).toMatchObject([
        { state },
      ]);

      expect(await fixture.tenant.deleteMemories({ userIds: ['ann'] })).toMatchObject({ documents: 1 });
      await (underWay as { readonly reading?: Promise<boolean> } | undefined)?.reading;
      await fixture.drain();
      await tendDocuments(fixture.maintenance);
      expect(fixture.all('SELECT user_id FROM documents')).toEqual([{ user_id: 'ben' }]);
      expect(fixture.get('SELECT count(*) FROM document_generations')).toBe(1);
      expect(fixture.get('SELECT count(*) FROM memories')).toBe(others.chunks + 1);
      expect(uploads(fixture)).toEqual([]);
      expectNoOrphans(fixture.store);
    },
  );

  test('a session, or tags, takes a document whose reading under way says so', async () => {
    for (const filter of [{ sessionIds: ['next'] }, { tags: ['new', 'b'] }, { sessionIds: ['next'], tags: ['new'] }]) {
      const fixture = await open();
      await ingested(fixture, HANDBOOK, { externalId: 'h', sessionId: 'first', tags: ['old'] });
      await ingest(fixture, `${HANDBOOK}more`, { externalId: 'h', sessionId: 'next', tags: ['new', 'b'] });
      const misses = { sessionIds: ['first'], tags: ['new'] };
      expect(await fixture.tenant.deleteMemories(misses)).toMatchObject({ documents: 0, memories: 0 });
      expect(await fixture.tenant.deleteMemories(filter)).toMatchObject({ documents: 1 });
      await fixture.drain();
      for (const table of ['documents', 'document_generations', 'memories'])
        expect(fixture.get(`SELECT count(*) FROM ${table}`), table).toBe(0);
    }
  });

  test('takes more documents than a slice has, none of which is read yet', async () => {
    const fixture = await open();
    for (let n = 0; n < 130; n++) await ingest(fixture, `Number ${n} of many.`, ANN);
    expect(await fixture.tenant.deleteMemories({ userIds: ['ann'] })).toMatchObject({ documents: 130, jobs: 130 });
    expect(fixture.get('SELECT count(*) FROM documents')).toBe(0);
    expect(uploads(fixture)).toEqual([]);
  });
});

describe('what waits to be read', () => {
  const MB = 1024 * 1024;

  test('is bounded together with what is on its way', async () => {
    const { tenant } = await open({ OM_UPLOADS_MAX_MB: '1' });
    const first = await tenant.createUpload(0.6 * MB);
    await expect(tenant.createUpload(0.6 * MB)).rejects.toThrow('fill OM_UPLOADS_MAX_MB');
    await first.discard();
    expect(fs.existsSync(first.path)).toBe(false);
    await tenant.addDocument(newDocument(await upload(tenant, 'x'.repeat(0.6 * MB))));
    await expect(tenant.createUpload(0.6 * MB)).rejects.toThrow('fill OM_UPLOADS_MAX_MB');
    // Neither counted twice nor kept when it was known already.
    await tenant.addDocument(newDocument(await upload(tenant, 'y'.repeat(0.3 * MB))));
    await expect(tenant.createUpload(0.2 * MB)).rejects.toThrow('fill OM_UPLOADS_MAX_MB');
    await (await tenant.createUpload(0.05 * MB)).discard();
  });

  test('is removed without holding up the thread that serves requests', async () => {
    const { tenant } = await open({});
    const removeAtOnce = vi.spyOn(fs, 'rmSync');
    onTestFinished(() => removeAtOnce.mockRestore());
    const file = await tenant.createUpload(MB);
    await file.discard();
    expect(fs.existsSync(file.path)).toBe(false);
    expect(removeAtOnce.mock.calls.filter(([removed]) => removed === file.path)).toEqual([]);
  });

  test('does not hold files that nobody is going to read: failed documents stop no other', async () => {
    const fixture = await open({ OM_UPLOADS_MAX_MB: '1', OM_JOB_ATTEMPTS: '1' });
    const { tenant } = fixture;
    await ingest(fixture, `${HANDBOOK}${'x'.repeat(0.9 * MB)}`);
    await expect(tenant.createUpload(0.2 * MB)).rejects.toThrow('fill OM_UPLOADS_MAX_MB');
    await failReading(fixture);
    expect(uploads(fixture).length).toBe(1);
    await (await tenant.createUpload(0.2 * MB)).discard();
    expect(await ingested(fixture, `# Later\n\n${section('Okapi')}`)).toMatchObject({ state: 'ready' });
  });

  test('lets one file through that is larger than the bound', async () => {
    const { tenant } = await open({ OM_UPLOADS_MAX_MB: '1' });
    await (await tenant.createUpload(3 * MB)).discard();
  });
});

describe('cancelling', () => {
  test('ends the reading; a document that was found before stays', async () => {
    const fixture = await open();
    const first = await ingested(fixture, HANDBOOK, { externalId: 'h' });
    await ingest(fixture, `${HANDBOOK}more`, { externalId: 'h' });
    expect(await fixture.tenant.cancelDocument(first.id)).toMatchObject({ state: 'ready' });
    expect(uploads(fixture)).toEqual([]);
    expect((await find(fixture, 'alpaca')).length).toBeGreaterThan(0);
    await expect(fixture.tenant.cancelDocument(first.id)).rejects.toMatchObject({ code: 'conflict' });
    const { document, jobId } = await ingest(fixture, 'new text');
    await fixture.tenant.cancelJob(jobId!);
    expect((await fixture.tenant.getDocument(document.id)).state).toBe('cancelled');
    expect((await fixture.tenant.getJob(jobId!)).state).toBe('cancelled');
    await expect(fixture.tenant.retryJob(jobId!)).rejects.toMatchObject({ code: 'conflict' });
  });
});

describe('beside other memories', () => {
  test('chunks give no context to a conversation and take none', async () => {
    const fixture = await open();
    await fixture.add({ content: 'before comes the pangolin', sessionId: 's' });
    await ingested(fixture, HANDBOOK, { sessionId: 's' });
    const after = await fixture.add({ content: 'after comes the quokka', sessionId: 's' });
    expect(idsWithWord(fixture, 'pangolin', 'context')).toEqual([after.id]);
    expect(idsWithWord(fixture, 'alpaca', 'context')).toEqual([]);
    const sizes = () => fixture.all('SELECT id, sz FROM memory_text_docsize ORDER BY id');
    const before = sizes();
    rebuildText(fixture.store);
    expect(sizes()).toEqual(before);
  });

  test('a chunk is no duplicate of what somebody says', async () => {
    const fixture = await open();
    const document = await ingested(fixture, 'Only one sentence about okapis.');
    const said = await fixture.add({ content: 'Only one sentence about okapis.' });
    expect(said.id).not.toBe(document.rootMemoryId);
    expect(await ingested(fixture, 'Only one sentence about okapis.\n')).toMatchObject({ state: 'ready' });
  });

  test('decay and a token treat chunks like any memory', async () => {
    const fixture = await open();
    const { token, document } = await ingest(fixture, HANDBOOK);
    expect(await fixture.tenant.waitFor(token!, 0)).toBe(false);
    await fixture.drain();
    expect(await fixture.tenant.waitFor(token!, 0)).toBe(true);
    fixture.clock.advanceDays(30);
    expect(await decayMemories(fixture.maintenance)).toBe((await fixture.tenant.getDocument(document.id)).chunks + 1);
  });
});

describe('said anew of the same text', () => {
  /** Counts the texts that are embedded. */
  async function openCounting() {
    let texts = 0;
    const counting = (embedder: Embedder): Embedder => ({
      ...embedder,
      embed(batch, options) {
        texts += batch.length;
        return embedder.embed(batch, options);
      },
    });
    const fixture = await openTestEngine({ settings: SMALL_CHUNKS, embedder: counting });
    onTestFinished(() => fixture.close());
    return { fixture, embedded: () => texts };
  }
  const partsOf = async ({ tenant }: TestEngine, { rootMemoryId, id }: Document) => [
    rootMemoryId!,
    ...(await listChunks(tenant, id, { limit: 1_000, offset: 0 })).map(({ memoryId }) => memoryId),
  ];

  test('labels, times and session change on the parts, which are neither embedded again nor lose what was learned', async () => {
    const { fixture, embedded } = await openCounting();
    const said = { externalId: 'h', sessionId: 's1', tags: ['zebu'], metadata: { shelf: 1 }, type: 'note' };
    const first = await ingested(fixture, HANDBOOK, said);
    const [root, chunk] = await partsOf(fixture, first);
    await fixture.tenant.reinforceMemory(chunk!, 0.3);
    const { salience } = await fixture.tenant.getMemory(chunk!);
    const before = embedded();
    const expiresAt = fixture.clock.now() + DAY_MS;
    const eventTime = fixture.clock.now() - DAY_MS;
    const now = { sessionId: 's2', tags: ['yak'], metadata: { shelf: 2 }, type: 'manual', eventTime, expiresAt };
    const second = await ingested(fixture, HANDBOOK, { externalId: 'h', ...now });
    expect(second).toMatchObject({ id: first.id, ...now, receipt: { stored: 0, kept: first.chunks, removed: 0 } });
    expect(embedded()).toBe(before);
    expect(await partsOf(fixture, second)).toEqual(await partsOf(fixture, first));
    for (const part of [root!, chunk!]) expect(await fixture.tenant.getMemory(part)).toMatchObject(now);
    expect((await fixture.tenant.getMemory(chunk!)).salience).toBe(salience);
    expect(await fixture.tenant.listRevisions(chunk!)).toMatchObject([
      { replaced: { tags: ['zebu'], sessionId: 's1', metadata: { shelf: 1 } } },
    ]);
    expect([idsWithWord(fixture, 'zebu'), idsWithWord(fixture, 'yak').length]).toEqual([[], first.chunks + 1]);
    // What is not said again falls back to what a memory has by itself.
    const third = await ingested(fixture, HANDBOOK, { externalId: 'h' });
    expect(third.receipt).toMatchObject({ kept: first.chunks });
    expect(await fixture.tenant.getMemory(chunk!)).toMatchObject({
      tags: [],
      sessionId: '',
      type: null,
      expiresAt: null,
    });
    expect((await fixture.tenant.getMemory(chunk!)).eventTime).toBe((await fixture.tenant.getMemory(chunk!)).createdAt);
    expectNoOrphans(fixture.store);
  });

  test('a part that supersedes too many memories for another start keeps its own, and takes the other labels', async () => {
    const { fixture } = await openCounting();
    const first = await ingested(fixture, HANDBOOK, { externalId: 'h', tags: ['zebu'] });
    const [, chunk, other] = await partsOf(fixture, first);
    const { userId, eventTime: before } = await fixture.tenant.getMemory(chunk!);
    const notes = Array.from({ length: 201 }, (_, no) => newMemory({ content: `note ${no}`, userId }));
    for (const outcome of (await fixture.tenant.addMemories(notes)).outcomes)
      await fixture.tenant.supersedeMemory({ oldId: outcome.kind === 'accepted' ? outcome.id : '', newId: chunk! });
    await fixture.drain();
    const eventTime = fixture.clock.now() - DAY_MS;
    const second = await ingested(fixture, HANDBOOK, { externalId: 'h', tags: ['yak'], eventTime });
    expect(second).toMatchObject({ state: 'ready', eventTime });
    expect(await fixture.tenant.getMemory(chunk!)).toMatchObject({ tags: ['yak'], eventTime: before });
    expect(await fixture.tenant.getMemory(other!)).toMatchObject({ tags: ['yak'], eventTime });
    expect(fixture.get("SELECT count(*) FROM jobs WHERE state <> 'done'")).toBe(0);
  });

  test('what was changed on a part stays where the document says nothing new', async () => {
    const { fixture } = await openCounting();
    const first = await ingested(fixture, HANDBOOK, { externalId: 'h', tags: ['zebu'] });
    const [, chunk] = await partsOf(fixture, first);
    await fixture.tenant.patchMemory(chunk!, { tags: ['read'] });
    await ingested(fixture, `${HANDBOOK}${section('Emu')}`, { externalId: 'h', tags: ['zebu'] });
    expect((await fixture.tenant.getMemory(chunk!)).tags).toEqual(['read']);
  });

  test('another worker goes on where one was broken off', async () => {
    const fixture = await open();
    const long = `# Handbook\n\n${Array.from({ length: 100 }, (_, at) => section(`Alpaca ${at}`)).join('')}`;
    const first = await ingested(fixture, long, { externalId: 'h', tags: ['zebu'] });
    const { jobId } = await ingest(fixture, long, { externalId: 'h', tags: ['yak'] });
    const reading = fixture.readDocument();
    await expect.poll(() => idsWithWord(fixture, 'yak').length, { interval: 1 }).toBeGreaterThan(0);
    fixture.store.write(() =>
      fixture.store.prepare(`UPDATE jobs SET lease_epoch = lease_epoch + 1, state = 'queued' WHERE id = ?`).run(jobId!),
    );
    await reading;
    expect(idsWithWord(fixture, 'zebu').length).toBeGreaterThan(0);
    expect(await fixture.tenant.getDocument(first.id)).toMatchObject({
      state: 'processing',
      tags: ['yak'],
      readyAt: null,
    });
    await fixture.drain();
    expect(await fixture.tenant.getDocument(first.id)).toMatchObject({ state: 'ready', error: null });
    expect([idsWithWord(fixture, 'zebu'), idsWithWord(fixture, 'yak').length]).toEqual([[], first.chunks + 1]);
    expect(fixture.get(`SELECT count(*) FROM memories WHERE tags <> '["yak"]'`)).toBe(0);
    expect(await fixture.tenant.getJob(jobId!)).toMatchObject({ state: 'done', crashes: 0 });
  });

  test('a page that is handed in again meanwhile, and has not changed, goes on where it was broken off', async () => {
    const long = `# Handbook\n\n${Array.from({ length: 100 }, (_, at) => section(`Alpaca ${at}`)).join('')}`;
    const bytes = Buffer.from(long);
    const sha256 = createHash('sha256').update(bytes).digest();
    const pageFetcher: PageFetcher = {
      async fetch(url, known) {
        const page = { url, bytes, sha256, declared: 'markdown' as const, charset: null, extension: 'md' };
        return known === null ? { ...page, etag: '"1"', lastModified: null } : 'unchanged';
      },
      close: async () => {},
    };
    const fixture = await openTestEngine({ settings: SMALL_CHUNKS, pageFetcher });
    onTestFinished(() => fixture.close());
    const handIn = (tag: string) =>
      fixture.tenant.addDocument(newDocument({ kind: 'url', url: 'https://example.com/handbook' }, { tags: [tag] }));
    const { document } = await handIn('zebu');
    await fixture.drain();
    await handIn('yak');
    const reading = fixture.readDocument();
    await expect.poll(() => idsWithWord(fixture, 'yak').length, { interval: 1 }).toBeGreaterThan(0);
    await handIn('yak');
    await reading;
    expect(idsWithWord(fixture, 'zebu').length).toBeGreaterThan(0);
    await fixture.drain();
    expect(await fixture.tenant.getDocument(document.id)).toMatchObject({
      state: 'ready',
      readyAt: expect.any(Number),
    });
    expect(idsWithWord(fixture, 'zebu')).toEqual([]);
    expect(fixture.get(`SELECT count(*) FROM memories WHERE tags <> '["yak"]'`)).toBe(0);
  });

  test('another name, format or charset of the same bytes is read as that', async () => {
    const fixture = await open();
    const latin = Buffer.from('# Café\n\nCrème brûlée costs seven euros.', 'latin1');
    const put = async (charset: string, fileName: string, declared: 'markdown' | 'text') => {
      const source = { ...(await upload(fixture.tenant, latin, fileName)), charset, declared } as NewDocument['source'];
      const { outcome, document } = await fixture.tenant.addDocument(newDocument(source));
      await fixture.drain();
      return { outcome, document, text: await textOf(await fixture.tenant.documentContent(document.id)) };
    };
    const first = await put('windows-1251', 'a.txt', 'text');
    expect(first.text).not.toContain('Crème');
    const second = await put('iso-8859-1', 'a.txt', 'text');
    expect([second.outcome, second.document.id, second.text]).toEqual([
      'replaced',
      first.document.id,
      latin.toString('latin1'),
    ]);
    expect((await put('iso-8859-1', 'a.md', 'markdown')).outcome).toBe('replaced');
    expect(await fixture.tenant.getDocument(first.document.id)).toMatchObject({ format: 'markdown', fileName: 'a.md' });
    expect((await put('iso-8859-1', 'a.md', 'markdown')).outcome).toBe('unchanged');
  });

  test('a document that was empty is not read again; a replacement always is', async () => {
    const fixture = await open();
    const empty = await ingested(fixture, ' \n\n');
    expect(await ingest(fixture, ' \n\n')).toMatchObject({ outcome: 'unchanged', document: { id: empty.id } });
    const first = await ingested(fixture, HANDBOOK);
    const { outcome } = await fixture.tenant.replaceDocument(
      first.id,
      newDocument(await upload(fixture.tenant, HANDBOOK)),
    );
    expect(outcome).toBe('replaced');
    await fixture.drain();
    expect(await fixture.tenant.getDocument(first.id)).toMatchObject({
      state: 'ready',
      receipt: { kept: first.chunks },
    });
  });

  test('a page that has not changed is read again where it is told to replace', async () => {
    const asked: unknown[] = [];
    const bytes = Buffer.from(HANDBOOK);
    const pageFetcher: PageFetcher = {
      async fetch(url, known) {
        asked.push(known?.etag ?? null);
        const sha256 = createHash('sha256').update(bytes).digest();
        const page = { url, bytes, sha256, declared: 'markdown' as const, charset: null, extension: 'md' };
        return known === null ? { ...page, etag: '"1"', lastModified: null } : 'unchanged';
      },
      close: async () => {},
    };
    const fixture = await openTestEngine({ settings: SMALL_CHUNKS, pageFetcher });
    onTestFinished(() => fixture.close());
    const page = newDocument({ kind: 'url', url: 'https://example.com/handbook' });
    const { document } = await fixture.tenant.addDocument(page);
    await fixture.drain();
    await fixture.tenant.addDocument(page);
    await fixture.drain();
    await fixture.tenant.replaceDocument(document.id, page);
    await fixture.drain();
    expect(asked).toEqual([null, '"1"', null]);
    expect(await fixture.tenant.getDocument(document.id)).toMatchObject({
      state: 'ready',
      url: 'https://example.com/handbook',
    });
  });
});

describe('a replacement that does not come to be', () => {
  const PAGE = newDocument({ kind: 'url', url: 'http://127.0.0.1/private' }, { sessionId: 's2', tags: ['other'] });
  const OF_THE_READING = new Set(['state', 'error', 'jobId', 'progress', 'updatedAt']);
  const ends: Record<string, (fixture: TestEngine, id: string) => Promise<unknown>> = {
    fails: (fixture) => fixture.drain(),
    'is cancelled': (fixture, id) => fixture.tenant.cancelDocument(id),
  };

  test.each(Object.keys(ends))('%s, and the document says what it said before', async (end) => {
    const fixture = await open();
    const first = await ingested(fixture, HANDBOOK, { sessionId: 's1', tags: ['one'] });
    const { document } = await fixture.tenant.replaceDocument(first.id, PAGE);
    const { progress } = first;
    const content = Object.fromEntries(Object.entries(first).filter(([name]) => !OF_THE_READING.has(name)));
    expect(document).toMatchObject({ ...content, state: 'queued', progress: { chunks: 0, embedded: 0 } });
    await ends[end]!(fixture, first.id);
    const after = await fixture.tenant.getDocument(first.id);
    expect(after).toMatchObject({ ...content, state: 'ready', progress });
    expect(after.error).toEqual(end === 'fails' ? expect.objectContaining({ code: 'fetch_refused' }) : null);
    const listed = (sessionId: string) =>
      fixture.tenant.listDocuments({ sessionIds: [sessionId] }, { limit: 9, offset: 0 });
    expect([(await listed('s1')).total, (await listed('s2')).total]).toEqual([1, 0]);
    const [hit] = await find(fixture, 'bison');
    expect(hit!.document).toMatchObject({ url: null, fileName: 'notes.md' });
    expect((await ingest(fixture, HANDBOOK, { sessionId: 's1', tags: ['one'] })).document.id).toBe(first.id);
  });

  test('a page that is about to replace a document is not taken in beside it', async () => {
    const fixture = await open();
    const first = await ingested(fixture, HANDBOOK, { sessionId: 's1' });
    await fixture.tenant.replaceDocument(first.id, PAGE);
    expect(await fixture.tenant.addDocument(PAGE)).toMatchObject({ outcome: 'unchanged', document: { id: first.id } });
  });
});

describe('progress', () => {
  test('grows from nothing while chunks are stored and embedded, also where another reading was found before', async () => {
    const fixture = await open();
    const long = `# Handbook\n\n${Array.from({ length: 60 }, (_, at) => section(`Alpaca ${at}`)).join('')}`;
    const first = await ingested(fixture, HANDBOOK, { externalId: 'h' });
    await ingest(fixture, long, { externalId: 'h' });
    const reading = fixture.readDocument();
    const progress = async () => (await fixture.tenant.getDocument(first.id)).progress;
    const stored = () => fixture.get<number>('SELECT count(*) FROM chunks') - first.chunks - 1;
    await expect.poll(stored, { interval: 1 }).toBeGreaterThan(0);
    const whileStored = await progress();
    expect(whileStored.chunks).toBeGreaterThan(first.chunks);
    await reading;
    const seen = [whileStored, await progress()];
    while ((await fixture.runBatch(8)).claimed > 0) seen.push(await progress());
    const { chunks } = await fixture.tenant.getDocument(first.id);
    for (const count of ['embedded', 'linked'] as const) {
      const counts = seen.map((at) => at[count]);
      expect(counts).toEqual(counts.toSorted((a, b) => a - b));
      expect(counts[0]).toBeLessThan(chunks / 2);
      expect(counts.at(-1)).toBe(chunks);
    }
  });
});

describe('an expired document', () => {
  test('is seen by nobody, whether the sweep was there or not, and does not swallow a new one', async () => {
    const fixture = await open();
    const expiresAt = fixture.clock.now() + 60_000;
    const { id } = await ingested(fixture, HANDBOOK, { externalId: 'h', expiresAt });
    fixture.clock.advance(61_000);
    const { tenant } = fixture;
    const gone = 'no document with this id';
    await expect(tenant.getDocument(id)).rejects.toThrow(gone);
    await expect(tenant.documentContent(id)).rejects.toThrow(gone);
    await expect(listChunks(tenant, id, { limit: 1, offset: 0 })).rejects.toThrow(gone);
    expect(await tenant.listDocuments({}, { limit: 9, offset: 0 })).toEqual({ items: [], total: 0 });
    const again = await ingest(fixture, HANDBOOK, { externalId: 'h' });
    expect(again.outcome).toBe('accepted');
    await expireMemories(fixture.maintenance);
    await tendDocuments(fixture.maintenance);
    await fixture.drain();
    expect((await tenant.listDocuments({}, { limit: 9, offset: 0 })).items).toMatchObject([
      { id: again.document.id, state: 'ready', expiresAt: null },
    ]);
    expectNoOrphans(fixture.store);
  });
});

describe('its text', () => {
  const LONG = `# Handbook\n\n${Array.from({ length: 40 }, (_, at) => section(`Alpaca ${at}`)).join('')}`;

  test.each(['replaced', 'deleted'])('is not cut off in silence where the document is %s meanwhile', async (what) => {
    const fixture = await open();
    const { id } = await ingested(fixture, LONG);
    const pieces = await fixture.tenant.documentContent(id);
    const first = await pieces[Symbol.asyncIterator]().next();
    expect(first.done).toBe(false);
    if (what === 'deleted') await fixture.tenant.deleteDocument(id);
    else await fixture.tenant.replaceDocument(id, newDocument(await upload(fixture.tenant, 'Something else.')));
    await fixture.drain();
    await expect(textOf(pieces)).rejects.toThrow('replaced or deleted');
  });
});

describe('the receipt of a delete', () => {
  test('counts what went with the document, not what others had left', async () => {
    const fixture = await open();
    const other = await ingested(fixture, HANDBOOK, { userId: 'ann' });
    const document = await ingested(fixture, 'Only one sentence about okapis.');
    const { store } = fixture;
    store.write(() =>
      hideDocument(store, getDocumentRow(store, other.id, 0).document_no, { erasure: null, now: fixture.clock.now() }),
    );
    expect(await fixture.tenant.deleteDocument(document.id)).toMatchObject({ memories: document.chunks + 1 });
    await tendDocuments(fixture.maintenance);
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(0);
  });
});
