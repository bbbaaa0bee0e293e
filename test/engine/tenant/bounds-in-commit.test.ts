/** A key that is bound to tags changes nothing that leaves its bounds between the check of a call and its commit. */
import { text as textOf } from 'node:stream/consumers';
import { beforeEach, afterEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Tenant } from '../../../src/engine/engine.ts';
import { EngineError, isEngineError } from '../../../src/engine/errors.ts';
import { boundTenant } from '../../../src/engine/tenant/bound-tenant.ts';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { importDocument } from '../../support/import-document.ts';
import { newDocument, upload } from '../../support/new-document.ts';
import { newMemory } from '../../support/new-memory.ts';

const TAGS = ['team'];
const notFound = (error: unknown) => isEngineError(error, 'not_found');

let fixture: TestEngine;
beforeEach(async () => (fixture = await openTestEngine()));
afterEach(() => fixture.close());

/** The view of a bound key. Once its call has found what it asks for, the owner acts, and then the call goes on. */
function boundWhile(act: () => Promise<unknown>): Tenant {
  const { tenant } = fixture;
  let hasActed = false;
  const thenAct = async <Found>(found: Promise<Found>): Promise<Found> => {
    const before = await found;
    if (!hasActed) {
      hasActed = true;
      await act();
    }
    return before;
  };
  return boundTenant(
    {
      ...tenant,
      getMemory: (id) => thenAct(tenant.getMemory(id)),
      getDocument: (id) => thenAct(tenant.getDocument(id)),
      getItem: (place) => thenAct(tenant.getItem(place)),
      listPresent: (ids, filter) => thenAct(tenant.listPresent(ids, filter)),
      async deleteDocument(id, options) {
        await thenAct(Promise.resolve(id));
        return tenant.deleteDocument(id, options);
      },
    },
    { tags: TAGS },
  );
}

describe('a memory that leaves the bounds of a key before the commit', () => {
  type Call = (bound: Tenant, ids: { readonly id: string; readonly other: string }) => Promise<unknown>;
  const calls: Readonly<Record<string, Call>> = {
    'a PATCH of a field': (bound, { id }) => bound.patchMemory(id, { importance: 0.9 }),
    'a PATCH that gives the tags back': (bound, { id }) => bound.patchMemory(id, { tags: [] }),
    'a reinforcement': (bound, { id }) => bound.reinforceMemory(id, 0.5),
    'a delete': (bound, { id }) => bound.deleteMemory(id),
    'a link from it': (bound, { id, other }) => bound.linkMemories({ src: id, dst: other, type: 'supports' }),
    'a link to it': (bound, { id, other }) => bound.linkMemories({ src: other, dst: id, type: 'supports' }),
    'the removal of a link': (bound, { id, other }) => bound.unlinkMemories({ src: id, dst: other, type: 'mentions' }),
    'a successor': (bound, { id, other }) => bound.supersedeMemory({ oldId: id, newId: other }),
    'a predecessor': (bound, { id, other }) => bound.supersedeMemory({ oldId: other, newId: id }),
    'a contradiction': (bound, { id, other }) => bound.contradictMemories({ a: id, b: other, winner: other }),
    'an add that supersedes it': async (bound, { id }) => {
      const { outcomes } = await bound.addMemories([newMemory({ content: 'newer words', supersedes: id })], {
        allOrNothing: true,
      });
      return outcomes;
    },
    'an add derived from it': async (bound, { id }) => {
      const derived = [{ item: 0, from: [id] }];
      return bound.addMemories([newMemory({ content: 'a sum of it' })], { derived, allOrNothing: true });
    },
  };

  test.each(Object.keys(calls))('is not found by %s, and stays as it is', async (name) => {
    const { tenant } = fixture;
    const { id } = await fixture.add({ content: 'words of the team', tags: TAGS });
    const { id: other } = await fixture.add({ content: 'other words of the team', tags: TAGS });
    await tenant.linkMemories({ src: id, dst: other, type: 'mentions' });
    const bound = boundWhile(() => tenant.patchMemory(id, { tags: [], content: 'private' }));
    await expect(calls[name]!(bound, { id, other })).rejects.toSatisfy(notFound);
    const after = await tenant.getMemory(id);
    expect(after).toMatchObject({ content: 'private', tags: [], version: 2, importance: null, status: 'active' });
    expect((await tenant.getMemory(other)).status).toBe('active');
    expect((await tenant.listLinks(id)).map(({ type }) => type)).toEqual(['mentions']);
    expect((await tenant.listMemories({}, { limit: 10, offset: 0 })).length).toBe(2);
  });

  test('is not found by a read that comes after the check either', async () => {
    const { tenant } = fixture;
    const reads: readonly ((bound: Tenant, id: string) => Promise<unknown>)[] = [
      (bound, id) => bound.listRevisions(id),
      (bound, id) => bound.timeline(id, { before: 1, after: 1, sameSession: false }),
    ];
    for (const read of reads) {
      const { id } = await fixture.add({ content: 'words of the team', tags: TAGS, onDuplicate: 'keep' });
      const bound = boundWhile(async () => {
        await tenant.patchMemory(id, { tags: [], content: 'private' });
        await tenant.patchMemory(id, { content: 'more private' });
      });
      await expect(read(bound, id)).rejects.toSatisfy(notFound);
    }
  });

  test('is found by each of these calls while it stays within them', async () => {
    for (const call of Object.values(calls)) {
      const { id } = await fixture.add({ content: 'words of the team', tags: TAGS, onDuplicate: 'keep' });
      const { id: other } = await fixture.add({ content: 'other words', tags: TAGS, onDuplicate: 'keep' });
      await fixture.tenant.linkMemories({ src: id, dst: other, type: 'mentions' });
      await call(
        boundWhile(async () => {}),
        { id, other },
      );
    }
  });
});

const PAGE = { limit: 10, offset: 0 };
const pageAt = (url: string) => ({ kind: 'url', url }) as const;

describe('a document that leaves the bounds of a key before the commit', () => {
  const calls: Readonly<Record<string, (bound: Tenant, id: string) => Promise<unknown>>> = {
    'a replacement': (bound, id) => bound.replaceDocument(id, newDocument(pageAt('https://example.org/new'))),
    'a delete': (bound, id) => bound.deleteDocument(id),
    'a cancellation': (bound, id) => bound.cancelDocument(id),
  };

  test.each(Object.keys(calls))('is not found by %s, and stays as it is', async (name) => {
    const { tenant } = fixture;
    const page = pageAt('https://example.org/');
    const { document } = await tenant.addDocument(newDocument(page, { externalId: 'page', tags: TAGS }));
    const bound = boundWhile(() => tenant.addDocument(newDocument(page, { externalId: 'page', title: 'private' })));
    await expect(calls[name]!(bound, document.id)).rejects.toSatisfy(notFound);
    const after = await tenant.getDocument(document.id);
    expect(after).toMatchObject({ tags: [], url: 'https://example.org/', state: 'queued' });
    await calls[name]!(boundTenant(tenant, { userId: '' }), document.id);
  });
});

test('a version that takes a document out of the bounds of a key is neither dropped nor replaced by that key', async () => {
  const { tenant } = fixture;
  const { id } = await importDocument(tenant, TAGS);
  const { jobId } = await tenant.replaceDocument(
    id,
    newDocument(pageAt('https://example.org/'), { externalId: 'page' }),
  );
  const bound = boundTenant(tenant, { tags: TAGS });
  expect((await bound.getDocument(id)).tags).toEqual(TAGS);
  const own = newDocument(pageAt('https://example.org/own'), { externalId: 'page' });
  await expect(bound.cancelDocument(id)).rejects.toSatisfy(notFound);
  await expect(bound.replaceDocument(id, own)).rejects.toSatisfy(notFound);
  await expect(bound.addDocument(own)).rejects.toMatchObject({ code: 'conflict' });
  expect((await tenant.getJob(jobId!)).state).toBe('queued');
  // A version within the bounds is the key's to drop.
  await tenant.replaceDocument(id, newDocument(pageAt('https://example.org/'), { tags: TAGS }));
  expect(await bound.cancelDocument(id)).toMatchObject({ state: 'ready', tags: TAGS });
});

test('an item that was read before it came into the bounds is not found, though it is within them now', async () => {
  const { tenant } = fixture;
  const place = { userId: '', namespace: 'settings', key: 'theme' };
  const item = { ...newMemory({ content: '' }), ...place, content: null };
  await tenant.putItem({ ...item, value: 'private' });
  const bound = boundWhile(() => tenant.putItem({ ...item, value: 'of the team', tags: TAGS }));
  await expect(bound.getItem(place)).rejects.toSatisfy(notFound);
  expect((await bound.getItem(place)).value).toBe('of the team');
});

test('the text of a document that leaves the bounds after the check is not shown', async () => {
  const { tenant, store } = fixture;
  const reads: readonly ((bound: Tenant, id: string) => Promise<unknown>)[] = [
    async (bound, id) => textOf(await bound.documentContent(id)),
    async (bound, id) => bound.streamDocumentChunks(id, PAGE)[Symbol.asyncIterator]().next(),
  ];
  for (const read of reads) {
    const id = (await importDocument(tenant, TAGS)).id;
    await read(boundTenant(tenant, { tags: TAGS }), id);
    // As a new version without the tags would leave it, of which the text is shown from then on.
    const bound = boundWhile(async () =>
      store.write(() => store.prepare(`UPDATE document_generations SET tags = '[]'`).run()),
    );
    await expect(read(bound, id)).rejects.toSatisfy(notFound);
  }
});

test('the upload of a replacement is removed if the check of the bounds fails', async () => {
  const tight = await openTestEngine({ settings: { OM_UPLOADS_MAX_MB: '1' } });
  onTestFinished(() => tight.close());
  const { tenant } = tight;
  const { document } = await tenant.addDocument(newDocument(pageAt('https://example.org/'), { tags: TAGS }));
  const busy = new EngineError('unavailable', 'too many reads wait');
  const bound = boundTenant({ ...tenant, getDocument: () => Promise.reject(busy) }, { tags: TAGS });
  const source = await upload(bound, 'x'.repeat(700_000));
  await expect(bound.replaceDocument(document.id, newDocument(source))).rejects.toBe(busy);
  await (await tenant.createUpload(700_000)).discard();
});
