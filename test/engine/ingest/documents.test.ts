import fs from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { uploadsFolder } from '../../../src/engine/documents/uploads.ts';
import { tendDocuments, expireMemories, decayMemories } from '../../../src/engine/ingest/maintain.ts';
import { rebuildText } from '../../../src/engine/admin/rebuild-text.ts';
import type { Embedder } from '../../../src/engine/ports.ts';
import type { Document, NewDocument } from '../../../src/engine/types.ts';
import { expectNoOrphans, idsWithWord, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';

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
  const reply = await fixture.tenant.addDocument(newDocument(upload(fixture.tenant, text), document));
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
    const chunks = fixture.tenant.listDocumentChunks(document.id, { limit: 100, offset: 0 });
    expect(chunks.length).toBe(document.chunks);
    expect(document.receipt?.stored).toBe(document.chunks);
    expect(document.progress).toMatchObject({ chunks: chunks.length, embedded: chunks.length, linked: chunks.length });
    expect([...fixture.tenant.documentContent(document.id)].join('')).toBe(HANDBOOK);
    for (const { memoryId, provenance } of chunks) {
      const memory = fixture.tenant.getMemory(memoryId);
      expect(memory.content).toBe(HANDBOOK.slice(provenance.startOffset!, provenance.endOffset!));
      expect(memory).toMatchObject({ userId: 'ann', tags: ['manual'], metadata: { shelf: 3 }, state: 'ready' });
      expect(memory.title.startsWith('Handbook')).toBe(true);
    }
    const root = fixture.tenant.getMemory(document.rootMemoryId!);
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

  test('without text ends empty, and leaves nothing behind', async () => {
    const fixture = await open();
    const document = await ingested(fixture, '  \n\n \n');
    expect(document).toMatchObject({ state: 'empty', error: { code: 'no_text_found' }, chunks: 0, rootMemoryId: null });
    expect(fixture.get('SELECT count(*) FROM memories')).toBe(0);
    expect(uploads(fixture)).toEqual([]);
    expect(fixture.tenant.countJobs()).toMatchObject({ done: 1, dead: 0 });
  });

  test('that cannot be read ends with its reason, in the list of dead jobs, and can be read again', async () => {
    const fixture = await open();
    const source = { ...upload(fixture.tenant, 'not a PDF at all', 'a.pdf'), declared: 'pdf' } as NewDocument['source'];
    const { document, jobId } = await fixture.tenant.addDocument(newDocument(source));
    await fixture.drain();
    expect(fixture.tenant.getDocument(document.id)).toMatchObject({
      state: 'failed',
      error: { code: 'corrupt_document' },
    });
    expect(fixture.tenant.getJob(jobId!)).toMatchObject({ state: 'dead', kind: 'document', documentId: document.id });
    expect(uploads(fixture).length).toBe(1);
    await fixture.tenant.retryJob(jobId!);
    expect(fixture.tenant.getDocument(document.id).state).toBe('queued');
    await fixture.drain();
    expect(fixture.tenant.getJob(jobId!).state).toBe('dead');
    await fixture.tenant.discardJob(jobId!);
    expect(uploads(fixture)).toEqual([]);
    expect(fixture.tenant.getDocument(document.id).state).toBe('failed');
  });

  test('whose file is gone says so', async () => {
    const fixture = await open();
    const { document } = await ingest(fixture, HANDBOOK);
    fs.rmSync(uploadsFolder(fixture.file), { recursive: true });
    await fixture.drain();
    expect(fixture.tenant.getDocument(document.id)).toMatchObject({
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
    await expect.poll(written, { interval: 1, timeout: 30_000 }).toBeGreaterThan(1);
    fixture.store.write(() =>
      fixture.store.prepare(`UPDATE jobs SET lease_epoch = lease_epoch + 1, state = 'queued' WHERE id = ?`).run(jobId!),
    );
    await reading;
    expect(written()).toBeGreaterThan(1);
    expect(await find(fixture, 'alpaca')).toEqual([]);
    expect(fixture.tenant.listMemories({}, { limit: 100, offset: 0 })).toEqual([]);
    const [hidden] = fixture.all<{ id: string }>('SELECT id FROM memories');
    expect(() => fixture.tenant.getMemory(hidden!.id)).toThrow('no memory with this id');
    expect(() => fixture.tenant.documentContent(document.id)).toThrow('has no content');
    // Read again, it stands once.
    await fixture.drain();
    const ready = fixture.tenant.getDocument(document.id);
    expect(ready.state).toBe('ready');
    expect(written()).toBe(ready.chunks + 1);
    expect([...fixture.tenant.documentContent(document.id)].join('')).toBe(long);
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
      fixture.tenant.listDocumentChunks(first.id, { limit: 100, offset: 0 }).map((c) => c.memoryId),
    );
    await fixture.drain();
    await tendDocuments(fixture.maintenance);
    expect(await find(fixture, 'bison')).toEqual([]);
    expect((await find(fixture, 'dingo')).length).toBeGreaterThan(0);
    const second = fixture.tenant.getDocument(first.id);
    expect(second.state).toBe('ready');
    const { stored, kept, removed } = second.receipt!;
    expect(kept).toBeGreaterThan(0);
    expect(stored + kept).toBe(second.chunks);
    expect(kept + removed).toBe(first.chunks);
    const now = fixture.tenant.listDocumentChunks(first.id, { limit: 100, offset: 0 });
    expect(now.filter(({ memoryId }) => keptIds.has(memoryId)).length).toBe(kept);
    expect([...fixture.tenant.documentContent(first.id)].join('')).toBe(changed);
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
    const bad = { ...upload(fixture.tenant, 'no PDF', 'a.pdf'), declared: 'pdf' } as NewDocument['source'];
    await fixture.tenant.replaceDocument(first.id, newDocument(bad));
    await fixture.drain();
    expect(fixture.tenant.getDocument(first.id)).toMatchObject({ state: 'ready', error: { code: 'corrupt_document' } });
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
    expect(fixture.tenant.countJobs()).toMatchObject({ queued: 0 });
  });

  test('of another user is another document', async () => {
    const fixture = await open();
    const first = await ingested(fixture, HANDBOOK, { userId: 'ann' });
    const second = await ingested(fixture, HANDBOOK, { userId: 'ben' });
    expect(second.id).not.toBe(first.id);
    expect(fixture.tenant.listDocuments({ userIds: ['ben'] }, { limit: 10, offset: 0 }).items).toMatchObject([
      { id: second.id },
    ]);
  });

  test('with other tags is read again and its chunks carry them', async () => {
    const fixture = await open();
    const first = await ingested(fixture, HANDBOOK, { tags: ['old'] });
    const second = await ingested(fixture, HANDBOOK, { tags: ['new'] });
    expect(second).toMatchObject({ id: first.id, tags: ['new'], receipt: { kept: 0 } });
    await tendDocuments(fixture.maintenance);
    expect(fixture.tenant.listMemories({ tags: ['old'] }, { limit: 9, offset: 0 })).toEqual([]);
    expect(fixture.tenant.listMemories({ tags: ['new'] }, { limit: 99, offset: 0 }).length).toBe(second.chunks + 1);
  });

  test('that failed before is read again', async () => {
    const fixture = await open();
    const { document } = await ingest(fixture, HANDBOOK);
    fs.rmSync(uploadsFolder(fixture.file), { recursive: true });
    await fixture.drain();
    expect(fixture.tenant.getDocument(document.id).state).toBe('failed');
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
    expect(() => fixture.tenant.getDocument(document.id)).toThrow('no document with this id');
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
    expect(fixture.tenant.countJobs()).toMatchObject({ cancelled: 1, queued: 0 });
  });

  test('its root deletes the document; one of its chunks is refused', async () => {
    const fixture = await open();
    const document = await ingested(fixture, HANDBOOK);
    const [chunk] = fixture.tenant.listDocumentChunks(document.id, { limit: 1, offset: 0 });
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
    const [chunk] = fixture.tenant.listDocumentChunks(document.id, { limit: 1, offset: 0 });
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
    expect(fixture.tenant.getDocument(document.id).state).toBe('cancelled');
    expect(fixture.tenant.getJob(jobId!).state).toBe('cancelled');
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
    expect(await decayMemories(fixture.maintenance)).toBe(fixture.tenant.getDocument(document.id).chunks + 1);
  });
});
