/** A newer version of a document that waits or has failed outlives the version that queries find. */
import { text as textOf } from 'node:stream/consumers';
import { expect } from 'vitest';
import { runNextDocument } from '../../src/engine/batches/run-document.ts';
import type { BatchContext } from '../../src/engine/batches/batch-context.ts';
import { boundTenant } from '../../src/engine/tenant/bound-tenant.ts';
import type { DocumentReply } from '../../src/engine/types.ts';
import { expireMemories } from '../../src/engine/upkeep/expire-memories.ts';
import { tendDocuments } from '../../src/engine/upkeep/tend-documents.ts';
import type { TestEngine } from '../support/engine-fixture.ts';
import { listChunks } from '../support/list-chunks.ts';
import { newDocument, upload } from '../support/new-document.ts';

/** What a check needs: a tenant without data. */
export type ExpiringFixture = Pick<TestEngine, 'tenant' | 'batch' | 'clock' | 'maintenance' | 'drain'>;

type Parser = NonNullable<BatchContext['documentParser']>;

const MINUTE_MS = 60_000;

/** Settings of the checks: a paragraph is a chunk, and a reading that failed is not repeated. */
export const EXPIRING_SETTINGS = { OM_CHUNK_TOKENS: '64', OM_CHUNK_OVERLAP_TOKENS: '0', OM_JOB_ATTEMPTS: '1' };

/** Hands in a version of the one document, which expires after some minutes. */
async function handIn({ tenant, clock }: ExpiringFixture, text: string, minutes: number): Promise<DocumentReply> {
  const expiresAt = clock.now() + minutes * MINUTE_MS;
  return tenant.addDocument(newDocument(await upload(tenant, text), { externalId: 'menu', expiresAt }));
}

/** Hands in a version that is read and expires after one minute, and one that waits and expires after ten. */
async function handInTwo(fixture: ExpiringFixture, work: () => Promise<unknown> = fixture.drain): Promise<string> {
  const { document } = await handIn(fixture, '# Monday\n\nAlpaca stew.', 1);
  await work();
  expect(await handIn(fixture, '# Tuesday\n\nBison soup.', 10)).toMatchObject({
    outcome: 'replaced',
    document: { id: document.id, title: 'Monday' },
  });
  return document.id;
}

/** Reads the next document with a parser that calls `parse` in place of the real one's. */
const readWith = ({ batch }: ExpiringFixture, parse: (real: Parser) => Parser['parse']) =>
  runNextDocument(
    { ...batch, documentParser: { ...batch.documentParser!, parse: parse(batch.documentParser!) } },
    { alone: false, onClaimed: () => {} },
  );

async function sweep({ maintenance }: ExpiringFixture): Promise<void> {
  await expireMemories(maintenance);
  await tendDocuments(maintenance);
}

const countMemories = ({ batch }: ExpiringFixture): number =>
  batch.open().store.prepare('SELECT count(*) FROM memories').pluck().get() as number;

/** Titles of the documents that hits for a word come from. */
async function find({ tenant }: ExpiringFixture, word: string): Promise<(string | undefined)[]> {
  const { hits } = await tenant.query({ query: word, k: 5, filter: {}, minScore: 0, reinforce: false });
  return hits.map(({ document }) => document?.title);
}

/** Checks what callers see of a document whose old version has expired, before or after the expiry job. */
async function expectWaiting(fixture: ExpiringFixture, id: string, state: string): Promise<void> {
  const { tenant, clock } = fixture;
  const document = await tenant.getDocument(id);
  expect(document).toMatchObject({ state, rootMemoryId: null, title: '', chunks: 0 });
  expect(document.expiresAt).toBeGreaterThan(clock.now());
  expect(await tenant.listDocuments({}, { limit: 9, offset: 0 })).toEqual({ items: [document], total: 1 });
  expect(await find(fixture, 'alpaca')).toEqual([]);
  expect(await listChunks(tenant, id, { limit: 9, offset: 0 })).toEqual([]);
  await expect(tenant.documentContent(id)).rejects.toThrow(`a document that is ${state} has no content`);
  await expect(tenant.documentReceipt(id, { limit: 9, offset: 0 })).rejects.toThrow('has no receipt');
}

async function outlives(fixture: ExpiringFixture): Promise<void> {
  const { tenant, clock } = fixture;
  const id = await handInTwo(fixture);
  clock.advance(2 * MINUTE_MS);
  await expectWaiting(fixture, id, 'queued');
  await sweep(fixture);
  await expectWaiting(fixture, id, 'queued');
  expect(countMemories(fixture)).toBe(0);

  await fixture.drain();
  expect(await tenant.getDocument(id)).toMatchObject({ state: 'ready', title: 'Tuesday', receipt: { removed: 0 } });
  expect(await find(fixture, 'bison')).toContain('Tuesday');
  clock.advance(10 * MINUTE_MS);
  await sweep(fixture);
  expect(await tenant.listDocuments({}, { limit: 9, offset: 0 })).toEqual({ items: [], total: 0 });
  expect(countMemories(fixture)).toBe(0);
}

async function staysOne(fixture: ExpiringFixture): Promise<void> {
  const { tenant, clock } = fixture;
  const id = await handInTwo(fixture);
  clock.advance(2 * MINUTE_MS);
  expect(await handIn(fixture, '# Wednesday\n\nCapybara pie.', 10)).toMatchObject({
    outcome: 'accepted',
    document: { id, state: 'queued', rootMemoryId: null },
  });
  await sweep(fixture);
  await fixture.drain();
  const { items } = await tenant.listDocuments({}, { limit: 9, offset: 0 });
  expect(items).toMatchObject([{ id, state: 'ready', title: 'Wednesday' }]);
}

async function keepsParts(fixture: ExpiringFixture): Promise<void> {
  const { tenant, clock } = fixture;
  const section = (day: string, dish: string) => `## ${day}\n\n${`${dish} for the guests. `.repeat(10)}\n\n`;
  const days = `# Menu\n\n${section('Monday', 'Alpaca stew')}${section('Tuesday', 'Bison soup')}`;
  const { document } = await handIn(fixture, days, 1);
  await fixture.drain();
  const text = `${days}${section('Wednesday', 'Capybara pie')}`;
  await handIn(fixture, text, 10);
  await readWith(fixture, (real) => async (...asked) => {
    const parsed = await real.parse(...asked);
    clock.advance(2 * MINUTE_MS);
    await sweep(fixture);
    return parsed;
  });
  await sweep(fixture);
  await fixture.drain();
  const read = await tenant.getDocument(document.id);
  expect(read).toMatchObject({ state: 'ready', error: null });
  expect(read.receipt!.kept).toBeGreaterThan(0);
  expect(await textOf(await tenant.documentContent(document.id))).toBe(text);
  expect(await find(fixture, 'alpaca')).toContain('Menu');
}

async function fails(fixture: ExpiringFixture, work = fixture.drain, state = 'ready'): Promise<void> {
  const { tenant, clock } = fixture;
  const id = await handInTwo(fixture, work);
  await readWith(fixture, () => () => Promise.reject(new Error('the reader is out of order')));
  const error = { message: expect.any(String) };
  expect(await tenant.getDocument(id)).toMatchObject({ state, title: 'Monday', error });
  clock.advance(2 * MINUTE_MS);
  const { jobId } = await tenant.getDocument(id);
  await expectWaiting(fixture, id, 'failed');
  await sweep(fixture);
  await expectWaiting(fixture, id, 'failed');
  await tenant.retryJob(jobId!);
  await fixture.drain();
  expect(await tenant.getDocument(id)).toMatchObject({ state: 'ready', title: 'Tuesday', error: null });
  expect(await tenant.countJobs()).toMatchObject({ queued: 0, dead: 0 });
}

/** Checks that the older version is not embedded yet when the newer one fails. */
async function failsEarly(fixture: ExpiringFixture): Promise<void> {
  await fails(fixture, async () => Number(await readWith(fixture, (real) => real.parse)), 'processing');
}

/** Checks that a key is bound by the tags of the version that has not expired. */
async function bindsByNext(fixture: ExpiringFixture): Promise<void> {
  const { tenant, clock } = fixture;
  const version = async (text: string, tag: string, minutes: number) => {
    const expiresAt = clock.now() + minutes * MINUTE_MS;
    const source = await upload(tenant, text);
    return tenant.addDocument(newDocument(source, { externalId: 'menu', tags: [tag], expiresAt }));
  };
  const { document } = await version('# Monday\n\nAlpaca stew.', 'kitchen', 1);
  await fixture.drain();
  await version('# Tuesday\n\nBison soup.', 'hall', 10);
  const [before, after] = ['kitchen', 'hall'].map((tag) => boundTenant(tenant, { tags: [tag] }));
  expect(await before!.getDocument(document.id)).toMatchObject({ title: 'Monday' });
  expect(await after!.deleteMemories({ tags: ['hall'] })).toMatchObject({ documents: 0 });
  clock.advance(2 * MINUTE_MS);
  for (const refused of [before!.getDocument(document.id), before!.deleteDocument(document.id)])
    await expect(refused).rejects.toMatchObject({ code: 'not_found' });
  expect(await before!.deleteMemories({ tags: ['kitchen'] })).toMatchObject({ documents: 0 });
  expect(await after!.getDocument(document.id)).toMatchObject({ state: 'queued', tags: ['hall'] });
  expect(await after!.deleteDocument(document.id)).toMatchObject({ documents: 1 });
}

async function isCancelled(fixture: ExpiringFixture): Promise<void> {
  const { tenant, clock } = fixture;
  const id = await handInTwo(fixture);
  clock.advance(2 * MINUTE_MS);
  await tenant.cancelDocument(id);
  await sweep(fixture);
  expect(countMemories(fixture)).toBe(0);
  expect(await find(fixture, 'alpaca')).toEqual([]);
}

/** The checks by what each is about. */
export const EXPIRING_CHECKS: readonly (readonly [string, (fixture: ExpiringFixture) => Promise<void>])[] = [
  ['a newer version that waits outlives the one that queries find', outlives],
  ['a document that is sent again after its first version expired stays one document', staysOne],
  ['a version that expires while the newer one is read leaves it the parts that both have', keepsParts],
  ['a newer version that failed outlives the one that queries find, and can be retried', (fixture) => fails(fixture)],
  ['a newer version that failed before the one that queries find was embedded outlives it, too', failsEarly],
  ['the tags of the version that has not expired say which keys reach a document', bindsByNext],
  ['an expired version goes, too, if the reading of the newer one is cancelled', isCancelled],
];
