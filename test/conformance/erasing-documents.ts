/** A document that a delete has hidden is erased by this delete, and recorded in its receipt. */
import { text as textOf } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import { runNextDocument } from '../../src/engine/batches/run-document.ts';
import type { WriteContext } from '../../src/engine/commands/write-context.ts';
import { DocumentError } from '../../src/engine/documents/document-error.ts';
import { DAY_MS } from '../../src/engine/dynamics.ts';
import { EngineError } from '../../src/engine/errors.ts';
import { showGeneration } from '../../src/engine/store/document-generations.ts';
import { getDocumentRow } from '../../src/engine/store/documents.ts';
import { saltedHash, tellingWords } from '../../src/engine/text/erased-words.ts';
import type { OpenErasure, Receipted } from '../../src/engine/types.ts';
import { purgeFinished } from '../../src/engine/upkeep/purge-finished.ts';
import { schedules } from '../../src/engine/upkeep/schedules.ts';
import { tendDocuments } from '../../src/engine/upkeep/tend-documents.ts';
import { WRITE_COMMANDS } from '../../src/engine/writer/commands.ts';
import { newMemory, type TestEngine } from '../support/engine-fixture.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { runCommand } from '../support/run-command.ts';

/** What a check needs: a tenant without data, and the store on which single commands run. */
export type ErasingFixture = Pick<TestEngine, 'tenant' | 'batch' | 'clock' | 'maintenance' | 'drain'> & {
  readonly store: WriteContext['store'];
};

const BENS: OpenErasure = { id: 'bens', kind: 'document', salt: 'a salt' };

const run = <T>(fixture: ErasingFixture, command: (context: WriteContext) => T): T =>
  runCommand(fixture as unknown as TestEngine, command);

/** Adds a document of Ben, and reads it. @returns its id and the ids of its memories */
async function addBens(fixture: ErasingFixture): Promise<{ readonly id: string; readonly bens: string[] }> {
  const { tenant } = fixture;
  const text = Array.from({ length: 120 }, (_, no) => `# Heron ${no}\n\n${`word${no} `.repeat(300)}`).join('\n\n');
  const { document } = await tenant.addDocument(newDocument(await upload(tenant, text), { userId: 'ben' }));
  await fixture.drain();
  const ids = fixture.store.prepare('SELECT id FROM memories').pluck().all() as string[];
  expect(ids.length).toBeGreaterThan(30);
  return { id: document.id, bens: ids.sort() };
}

/** Adds a document of Ben, and runs the first commit of its delete. @returns what `addBens` returns */
async function beginDelete(fixture: ErasingFixture): ReturnType<typeof addBens> {
  const added = await addBens(fixture);
  run(fixture, (context) => WRITE_COMMANDS.deleteDocument(context, { id: added.id, erasure: BENS }));
  return added;
}

/** Runs one further commit of the delete that was begun. @returns whether nothing was left */
const goOn = (fixture: ErasingFixture): boolean =>
  run(fixture, (context) => WRITE_COMMANDS.eraseAbandoned(context, { limit: 100, erasure: BENS })).isDone;

const idsOf = async ({ tenant }: ErasingFixture, { erasure }: Pick<Receipted, 'erasure'>): Promise<string[]> =>
  [...(await tenant.getErasure(erasure!.split('.')[0]!)).ids].sort();

/** Returns the numbers of rows of documents and of memories. */
const countRows = ({ store }: ErasingFixture): number[] =>
  ['documents', 'memories'].map((table) => store.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number);

const countMemories = ({ store }: ErasingFixture): number =>
  store.prepare('SELECT count(*) FROM memories').pluck().get() as number;

/** Checks deletes by others, and the upkeep, between two commits of a delete. */
async function leavesToOthers(fixture: ErasingFixture): Promise<void> {
  const { tenant } = fixture;
  const { bens } = await beginDelete(fixture);
  await tenant.addMemories([newMemory({ content: 'a memory of Ana', userId: 'ana' })]);
  const deleted = await tenant.deleteMemories({ userIds: ['ana'] });
  expect(deleted).toMatchObject({ memories: 1, documents: 0 });
  await tendDocuments(fixture.maintenance);
  expect((await tenant.getErasure(deleted.erasure!.split('.')[0]!)).ids).toHaveLength(1);

  expect(countMemories(fixture)).toBe(bens.length);
  while (!goOn(fixture));
  expect([countMemories(fixture), [...(await tenant.getErasure(BENS.id)).ids].sort()]).toEqual([0, bens]);
}

/** Checks that the upkeep erases what a delete has left that broke off. */
async function goesOnAfterBreak(fixture: ErasingFixture): Promise<void> {
  const { tenant, clock, maintenance } = fixture;
  const { bens } = await beginDelete(fixture);
  const { firstWorkAt } = schedules(maintenance.config).find(({ name }) => name === 'documents')!;
  expect(firstWorkAt!(fixture.store, clock.now())).toBe(clock.now() + 15 * 60_000 + 1);
  clock.advance(14 * 60_000);
  await tendDocuments(maintenance);
  expect(countMemories(fixture)).toBe(bens.length);
  clock.advance(2 * 60_000);
  await tendDocuments(maintenance);
  expect([countRows(fixture)[0], firstWorkAt!(fixture.store, clock.now())]).toEqual([0, Infinity]);
  expect([countMemories(fixture), [...(await tenant.getErasure(BENS.id)).ids].sort()]).toEqual([0, bens]);
}

/** Checks that the upkeep erases what a delete has left that broke off before the clock was set back. */
async function goesOnAfterSetBack(fixture: ErasingFixture): Promise<void> {
  const { tenant, clock, maintenance } = fixture;
  const { bens } = await beginDelete(fixture);
  clock.advance(-3_600_000);
  const { firstWorkAt } = schedules(maintenance.config).find(({ name }) => name === 'documents')!;
  expect(firstWorkAt!(fixture.store, clock.now())).toBeLessThan(clock.now());
  await tendDocuments(maintenance);
  expect([countRows(fixture)[0], countMemories(fixture)]).toEqual([0, 0]);
  expect([...(await tenant.getErasure(BENS.id)).ids].sort()).toEqual(bens);
}

/** Checks that a delete takes over at once what a delete has left that broke off before the clock was set back. */
async function takesOverAfterSetBack(fixture: ErasingFixture): Promise<void> {
  const { tenant, clock } = fixture;
  const { bens } = await beginDelete(fixture);
  clock.advance(-10_001);
  expect(await tenant.deleteMemories({ userIds: ['ben'] })).toMatchObject({ documents: 1, memories: bens.length });
  expect(countRows(fixture)).toEqual([0, 0]);
}

/** Checks that a delete takes over what a delete has left that broke off, also of a document that was not read yet. */
async function takesOverAfterBreak(fixture: ErasingFixture): Promise<void> {
  const { tenant, clock } = fixture;
  const { bens } = await beginDelete(fixture);
  expect(goOn(fixture)).toBe(false);
  const first = (await tenant.getErasure(BENS.id)).ids;
  const { document } = await tenant.addDocument({ ...newDocument(await upload(tenant, 'unread')), tags: ['birds'] });
  run(fixture, (context) => WRITE_COMMANDS.deleteDocument(context, { id: document.id, erasure: BENS }));
  clock.advance(10_001);

  expect(await tenant.deleteMemories({ tags: ['birds'] })).toMatchObject({ documents: 1, memories: 0 });
  expect(countRows(fixture)).toEqual([1, bens.length - first.length]);
  const repeated = await tenant.deleteMemories({ userIds: ['ben'] });
  expect(repeated).toMatchObject({ documents: 1, memories: bens.length - first.length });
  expect(countRows(fixture)).toEqual([0, 0]);
  expect([...first, ...(await idsOf(fixture, repeated))].sort()).toEqual(bens);
  const { words, phrases } = await tenant.getErasure(repeated.erasure!.split('.')[0]!);
  expect(words.length * phrases.length).toBeGreaterThan(0);
}

/** Checks that deletes by filter are answered once nothing is left of a document that another delete is erasing. */
async function waitsForOthers(fixture: ErasingFixture): Promise<void> {
  const { tenant } = fixture;
  const { bens } = await beginDelete(fixture);
  const left = tenant.deleteMemories({ userIds: ['ben'] }).then((receipt) => [receipt.memories, countRows(fixture)]);
  // More than one look.
  await pause(300);
  expect(countRows(fixture)).toEqual([1, bens.length]);
  while (!goOn(fixture));
  expect(await left).toEqual([0, [0, 0]]);
  expect([...(await tenant.getErasure(BENS.id)).ids].sort()).toEqual(bens);
}

/** Checks that a delete does not wait for another one forever. */
async function waitsNoLonger(fixture: ErasingFixture): Promise<void> {
  const { tenant, clock, store } = fixture;
  const { bens } = await beginDelete(fixture);
  const commit = () => store.write(() => store.prepare('UPDATE erasures SET sliced_at = ?').run(clock.now()));
  let isOver = false;
  const repeated = tenant.deleteMemories({ userIds: ['ben'] }).finally(() => (isOver = true));
  const refused = expect(repeated).rejects.toMatchObject({ code: 'unavailable' });
  const begun = clock.now();
  for (; !isOver; await pause(20)) {
    clock.advance(1_000);
    commit();
  }
  await refused;
  expect(clock.now() - begun).toBeGreaterThan(25_000);
  expect(countRows(fixture)).toEqual([1, bens.length]);
}

/** Checks the repeated delete of a document by its id, before and after the first one breaks off. */
async function repeatsById(fixture: ErasingFixture): Promise<void> {
  const { tenant, clock } = fixture;
  const { id, bens } = await beginDelete(fixture);
  await expect(tenant.deleteDocument(id, { userId: 'ana' })).rejects.toMatchObject({ code: 'not_found' });
  await expect(tenant.deleteDocument(id, { withinTags: ['x'] })).rejects.toMatchObject({ code: 'not_found' });
  const repeated = tenant.deleteDocument(id, { userId: 'ben' });
  await pause(300);
  expect(countRows(fixture)).toEqual([1, bens.length]);
  clock.advance(10_001);
  const receipt = await repeated;
  expect([receipt.memories, countRows(fixture), await idsOf(fixture, receipt)]).toEqual([bens.length, [0, 0], bens]);
  await expect(tenant.deleteDocument(id)).rejects.toMatchObject({ code: 'not_found' });
}

/** Checks two deletes of a document that are asked for at the same time. */
async function deletesTwice(fixture: ErasingFixture): Promise<void> {
  const { tenant } = fixture;
  const { id, bens } = await addBens(fixture);
  const both = await Promise.allSettled([tenant.deleteDocument(id), tenant.deleteDocument(id)]);
  const told = both.map((one) =>
    one.status === 'fulfilled' ? one.value.memories : (one.reason as { readonly code: string }).code,
  );
  expect([told.sort(), countRows(fixture)]).toEqual([
    [bens.length, 'not_found'],
    [0, 0],
  ]);
}

/** Checks that the documents of a delete that fails are free at once. */
async function freesAfterError(fixture: ErasingFixture): Promise<void> {
  const { tenant, maintenance } = fixture;
  await addBens(fixture);
  const failing = vi.spyOn(WRITE_COMMANDS, 'eraseAbandoned').mockImplementation(() => {
    throw new EngineError('unavailable', 'the writer has ended');
  });
  await expect(tenant.deleteMemories({ userIds: ['ben'] })).rejects.toMatchObject({ code: 'unavailable' });
  failing.mockRestore();
  expect(countRows(fixture)[0]).toBe(1);
  await tendDocuments(maintenance);
  expect(countRows(fixture)).toEqual([0, 0]);
}

/**
 * Checks that a repeated delete takes over a document of which only one part matches, however often it breaks off: what
 * is left of the document has a part that matches.
 */
async function takesOverByPart(fixture: ErasingFixture): Promise<void> {
  const { tenant } = fixture;
  const { bens: parts } = await addBens(fixture);
  const [part] = fixture.store.prepare('SELECT id FROM memories ORDER BY seq DESC').pluck().all() as string[];
  await tenant.patchMemory(part!, { tags: ['birds'] });
  // Queries find what rests on a part until the part is erased.
  const derived = [{ item: 0, from: [parts.find((id) => id !== part)!] }];
  await tenant.addMemories([newMemory({ content: 'word99 summed up', userId: 'ben' })], { derived });
  const bens = (fixture.store.prepare('SELECT id FROM memories').pluck().all() as string[]).sort();
  const { eraseAbandoned } = WRITE_COMMANDS;
  for (let [breaks, rows] = [0, countRows(fixture)]; rows[0] === 1; breaks += 1) {
    let commits = 0;
    const breaking = vi.spyOn(WRITE_COMMANDS, 'eraseAbandoned').mockImplementation((context, options) => {
      commits += 1;
      if (commits > 2) throw new EngineError('unavailable', 'the writer has ended');
      return eraseAbandoned(context, options);
    });
    await tenant.deleteMemories({ tags: ['birds'] }).catch(() => {});
    breaking.mockRestore();
    const left = countRows(fixture);
    expect([breaks, left[1]! < rows[1]!]).toEqual([breaks, true]);
    rows = left;
  }
  expect(countRows(fixture)).toEqual([0, 0]);
  const { items } = await tenant.listErasures({ limit: 100, offset: 0 });
  expect(items.length).toBeGreaterThan(2);
  const ids = await Promise.all(items.map(async ({ id }) => (await tenant.getErasure(id)).ids));
  expect(ids.flat().sort()).toEqual(bens);
}

/** Checks that a delete erases the documents that it has hidden before all else that it has to look for. */
async function erasesDocumentsFirst(fixture: ErasingFixture): Promise<void> {
  const { tenant } = fixture;
  await addBens(fixture);
  const { abandonLogs } = WRITE_COMMANDS;
  const left: number[][] = [];
  const next = vi.spyOn(WRITE_COMMANDS, 'abandonLogs').mockImplementation((context, options) => {
    left.push(countRows(fixture));
    return abandonLogs(context, options);
  });
  await tenant.deleteMemories({ userIds: ['ben'] });
  next.mockRestore();
  expect(left).toEqual([[0, 0]]);
}

/** Checks that the receipt of a delete that broke off is removed as late as others, and its documents even so. */
async function forgetsOldReceipt(fixture: ErasingFixture): Promise<void> {
  const { tenant, clock, maintenance } = fixture;
  await beginDelete(fixture);
  clock.advance(maintenance.config.OM_AUDIT_DAYS * DAY_MS);
  await purgeFinished(maintenance);
  expect(await tenant.getErasure(BENS.id)).toMatchObject({ closedAt: null });
  clock.advance(1);
  await purgeFinished(maintenance);
  await expect(tenant.getErasure(BENS.id)).rejects.toMatchObject({ code: 'not_found' });
  await tendDocuments(maintenance);
  expect(countRows(fixture)).toEqual([0, 0]);
}

/** Checks that the receipt of every delete of a document has hashes of the document's names, of all versions. */
async function recordsNames(fixture: ErasingFixture): Promise<void> {
  const { tenant, store } = fixture;
  const names = ['Quillfeather notes', 'brindlefox.txt', 'https://zanzibarite.example/', 'snarkwhistle'];
  for (const erase of [
    (id: string) => tenant.deleteDocument(id),
    () => tenant.deleteMemories({ userIds: ['ben'] }),
    () => tenant.deleteMemories({ tags: ['birds'] }),
  ]) {
    const { document } = await tenant.addDocument(newDocument(await upload(tenant, 'It flies.'), { userId: 'ben' }));
    await fixture.drain();
    const [part] = store.prepare('SELECT id FROM memories').pluck().all() as string[];
    await tenant.patchMemory(part!, { tags: ['birds'] });
    store.write(() => {
      const set = 'UPDATE document_generations SET title = ?, file_name = ?, url = ?';
      store.prepare(set).run(...names.slice(0, 3));
      store.prepare('UPDATE documents SET external_id = ?').run(names[3]);
    });
    const { erasure, documents } = await erase(document.id);
    const [receipt = '', salt = ''] = erasure!.split('.');
    const { words } = await tenant.getErasure(receipt);
    const telling = [...tellingWords(names.join(' '))].map((word) => saltedHash(salt, word));
    expect([documents, words]).toEqual([1, expect.arrayContaining(telling)]);
  }
}

const section = (name: string) => `## ${name}\n\n${`${name} for the guests. `.repeat(600)}\n\n`;

/** Adds a version of the one document of two keys, in the name of one of them. */
async function addAs({ tenant }: ErasingFixture, key: string, ...names: string[]): Promise<string> {
  const source = await upload(tenant, `# Menu\n\n${names.map(section).join('')}`);
  return (await tenant.as(key).addDocument(newDocument(source, { externalId: 'menu' }))).document.id;
}

/** Checks that a document is the own key's, ready and with the given sections alone. */
async function expectOwn({ tenant }: ErasingFixture, id: string, ...names: string[]): Promise<void> {
  expect(await tenant.getDocument(id)).toMatchObject({ state: 'ready', error: null, writtenBy: 'own' });
  const content = await textOf(await tenant.documentContent(id));
  expect([...content.matchAll(/^## (.*)$/gm)].map(([, name]) => name)).toEqual(names);
  const { hits } = await tenant.query({ query: names[0]!, k: 5, filter: { writtenBy: ['own'] }, minScore: 0 });
  expect(hits.length).toBeGreaterThan(0);
}

/** Checks the undo of a key that handed in a version of another key's document, which was not read yet. */
async function dropsReadings(fixture: ErasingFixture): Promise<void> {
  const { tenant, batch } = fixture;
  const id = await addAs(fixture, 'own', 'Alpaca stew');
  await fixture.drain();
  await addAs(fixture, 'leaked', 'Bison soup');
  const name = `UPDATE document_generations SET file_name = 'leaked.md' WHERE generation_no = (SELECT next_no FROM documents)`;
  fixture.store.write(() => fixture.store.prepare(name).run());
  const undone = await tenant.deleteMemories({ writtenBy: ['leaked'] });
  expect(undone).toMatchObject({ documents: 0, jobs: 1, memories: 0 });
  const [receipt = '', salt = ''] = undone.erasure!.split('.');
  expect((await tenant.getErasure(receipt)).words).toContain(saltedHash(salt, 'leaked'));
  // Its row is gone before the answer, and with it the uploaded file.
  expect(fixture.store.prepare('SELECT count(*) FROM document_generations').pluck().get()).toBe(1);
  await expectOwn(fixture, id, 'Alpaca stew');

  const failing = {
    ...batch.documentParser!,
    parse: () => Promise.reject(new DocumentError('corrupt_document', 'it is torn')),
  };
  await addAs(fixture, 'leaked', 'Bison soup');
  await runNextDocument({ ...batch, documentParser: failing }, { alone: false, onClaimed: () => {} });
  expect(await tenant.getDocument(id)).toMatchObject({ state: 'ready', error: { code: 'corrupt_document' } });
  expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ documents: 0, memories: 0 });
  await expectOwn(fixture, id, 'Alpaca stew');
  await tendDocuments(fixture.maintenance);
  expect(countRows(fixture)).toEqual([1, (await tenant.getDocument(id)).chunks + 1]);
}

/** Checks the undo of a key whose document another key has replaced, with the same text in part. */
async function keepsReplacements(fixture: ErasingFixture): Promise<void> {
  const { tenant } = fixture;
  const id = await addAs(fixture, 'leaked', 'Alpaca stew', 'Bison soup', 'Capybara pie');
  await fixture.drain();
  await addAs(fixture, 'own', 'Alpaca stew', 'Bison soup', 'Dingo roast');
  await fixture.drain();
  const { receipt } = await tenant.getDocument(id);
  expect(receipt!.kept).toBeGreaterThan(0);
  const before = countRows(fixture);
  expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ documents: 0, memories: 0 });
  await expectOwn(fixture, id, 'Alpaca stew', 'Bison soup', 'Dingo roast');
  expect(countRows(fixture)).toEqual(before);
}

/** Checks the undo of a key whose version of a document was replaced just now, and not erased yet. */
async function erasesReplaced(fixture: ErasingFixture): Promise<void> {
  const { tenant, store } = fixture;
  const id = await addAs(fixture, 'leaked', 'Alpaca stew');
  await fixture.drain();
  const [, memories] = countRows(fixture);
  await addAs(fixture, 'own', 'Bison soup');
  run(fixture, ({ now }) => {
    const { document_no: documentNo, next_no: generationNo } = getDocumentRow(store, id, now);
    showGeneration(store, {
      documentNo,
      generationNo: generationNo!,
      receipt: { stored: 0, kept: 0, removed: 1 },
      now,
    });
  });
  expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ documents: 0, memories });
  expect(await tenant.getDocument(id)).toMatchObject({ writtenBy: 'own' });
  await tendDocuments(fixture.maintenance);
  expect(countRows(fixture)).toEqual([1, 0]);
}

/** The checks by what each is about. */
export const ERASING_CHECKS: readonly (readonly [string, (fixture: ErasingFixture) => Promise<void>])[] = [
  ['others leave a document alone that a delete is erasing', leavesToOthers],
  ['the upkeep erases a document whose delete broke off, and adds it to the receipt', goesOnAfterBreak],
  ['the upkeep erases a document whose delete broke off before the clock was set back', goesOnAfterSetBack],
  ['a repeated delete takes over what one has left that broke off', takesOverAfterBreak],
  ['a repeated delete takes over what broke off before the clock was set back', takesOverAfterSetBack],
  ['a repeated delete is answered once the first one has erased everything', waitsForOthers],
  ['a repeated delete waits for 25 s at most', waitsNoLonger],
  ['a repeated delete of a document by its id takes it over from one that broke off', repeatsById],
  ['of two deletes of a document at the same time one erases it, and the other finds nothing', deletesTwice],
  ['what a delete has hidden that fails is free at once', freesAfterError],
  ['a repeated delete takes over a document of which one part matches', takesOverByPart],
  ['a delete erases the documents that it has hidden before all else', erasesDocumentsFirst],
  ['the upkeep removes the old receipt of a delete that broke off', forgetsOldReceipt],
  ['a receipt has the words of the names of documents, whatever the delete names', recordsNames],
  ['an undo of a key leaves a document alone of which it handed in a version that nobody has read', dropsReadings],
  ['an undo of a key leaves a document alone that another key has handed in since', keepsReplacements],
  ['an undo of a key erases a version that another key has replaced, and not the document', erasesReplaced],
];
