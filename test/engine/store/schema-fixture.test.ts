import fs from 'node:fs';
import path from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { rebuildText } from '../../../src/engine/admin/rebuild-text.ts';
import { rebuildVectorIndex } from '../../../src/engine/admin/rebuild-vector-index.ts';
import { listModels } from '../../../src/engine/store/embeddings.ts';
import { migrate } from '../../../src/engine/store/migrate.ts';
import { readCodes } from '../../../src/engine/store/vector-codes.ts';
import { createManualClock, expectNoOrphans, newMemory, openTestEngine, START } from '../../support/engine-fixture.ts';
import {
  CLAIM,
  DOCUMENT,
  DRAFT,
  listFixtures,
  SAID,
  unpackFixture,
  writeFixture,
} from '../../support/schema-fixture.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { sqliteOf } from '../../support/sqlite-of.ts';
import { listChunks } from '../../support/list-chunks.ts';

const MIGRATIONS = path.resolve(import.meta.dirname, '../../../src/engine/store/migrations');
const STEPS = fs.readdirSync(MIGRATIONS).sort();
const NEWEST = STEPS.length;

test.runIf(process.env['WRITE_FIXTURE'] === '1')('the fixture of the newest schema is written', async () => {
  await using fixture = await openTestEngine();
  await writeFixture(fixture, NEWEST);
});

test('every schema has its fixture (test/support/schema-fixture.ts says how it is written)', () => {
  expect(listFixtures()).toEqual(STEPS.map((_, index) => index + 1));
});

describe.each(listFixtures())('the fixture of schema %i', (version) => {
  test('has the schema that the migrations up to it make, so that none of them is edited unseen', () => {
    const folder = tempFolder();
    for (const step of STEPS.slice(0, version)) fs.copyFileSync(path.join(MIGRATIONS, step), path.join(folder, step));
    const made = path.join(tempFolder(), 'made.sqlite');
    const db = new Database(made);
    migrate(db, made, folder);
    db.close();
    expect(describeSchema(unpackFixture(version))).toEqual(describeSchema(made));
  });

  test('is read by the code of today', async () => {
    await using fixture = await openFixture(version);
    const { tenant } = fixture;
    expect(fixture.get('SELECT user_version FROM pragma_user_version')).toBe(NEWEST);
    const statuses = ['active', 'superseded', 'contradicted'] as const;
    const memories = await tenant.listMemories({ userIds: ['ann'], statuses }, { limit: 100, offset: 0 });
    const idOf = (content: string) => memories.find((memory) => memory.content === content)!.id;
    expect(memories.map(({ content }) => content)).toEqual(expect.arrayContaining(Object.values(SAID)));
    expect(await tenant.getMemory(idOf(SAID.names))).toMatchObject({
      tags: ['work'],
      metadata: { team: 'core' },
      title: 'Ann',
    });
    expect((await tenant.getMemory(idOf(SAID.superseded))).status).toBe('superseded');
    expect((await tenant.getMemory(idOf(SAID.wrong))).status).toBe('contradicted');
    expect((await tenant.getMemory(idOf(SAID.code))).salience).toBeGreaterThan(0.6);
    expect(await tenant.listRevisions(idOf(SAID.patched))).toMatchObject([{ replaced: { content: DRAFT } }]);
    const links = (await tenant.listLinks(idOf(SAID.alike))).map(({ type }) => type);
    expect(links).toEqual(expect.arrayContaining(['supports', 'waypoint']));
    expect((await tenant.getEntity('acme', 'ann')).mentions).toBe(1);

    const { items } = await tenant.listDocuments({}, { limit: 9, offset: 0 });
    expect(items).toMatchObject([{ state: 'ready', externalId: 'harbour', userId: 'ann' }]);
    expect(await textOf(await tenant.documentContent(items[0]!.id))).toBe(DOCUMENT);
    const [chunk] = await listChunks(tenant, items[0]!.id, { limit: 9, offset: 0 });
    expect((await tenant.getMemory(chunk!.memoryId)).content).toContain('The ferry leaves');
    expectNoOrphans(fixture.store);
  });

  test.each([
    ['parse HTTP request', SAID.code],
    ['生日', SAID.chinese],
    ['where does Ann live, near the harbour', SAID.successor],
    ['pears and plums', SAID.long],
    ['waits to be encoded', SAID.waiting],
  ])('answers %j', async (query, expected) => {
    await using fixture = await openFixture(version);
    const { hits, degraded } = await fixture.tenant.query({ query, k: 3, filter: { userIds: ['ann'] } });
    expect(hits.map(({ memory }) => memory.content)).toContain(expected);
    expect(degraded).toBe(false);
  });

  test('is written to: work that was owed is done, and what was said is known', async () => {
    await using fixture = await openFixture(version);
    expect(await fixture.tenant.countWaitingJobs()).toBe(1);
    expect(await fixture.drain()).toBeGreaterThan(0);
    expect(fixture.all(`SELECT DISTINCT state FROM memory_dynamics`)).toEqual([{ state: 'ready' }]);
    const once = newMemory({ content: SAID.once, userId: 'ann', expiresAt: START * 2 });
    expect(await fixture.tenant.addMemories([once], { idempotency: CLAIM })).toMatchObject({ replayed: true });
    const again = newMemory({ content: SAID.chinese, userId: 'ann', sessionId: 'talk' });
    expect((await fixture.tenant.addMemories([again])).outcomes).toMatchObject([{ kind: 'duplicate' }]);
    await fixture.add({ content: 'Something new.', userId: 'ann' });
    await fixture.drain();
    expectNoOrphans(fixture.store);
  });

  test('has the words and the codes that the code of today makes of its memories', async () => {
    await using fixture = await openFixture(version);
    const { store, indexes } = fixture.batch.open();
    sqliteOf(store).db.exec('CREATE VIRTUAL TABLE temp.places USING fts5vocab (main, memory_text, instance)');
    const read = () => ({
      words: fixture.all('SELECT * FROM places ORDER BY term, doc, col, offset'),
      codes: listModels(store).map((model) => readCodes(store, model, { after: 0, limit: 1_000 }).codes),
    });
    const stored = read();
    expect(stored.words.length).toBeGreaterThan(100);
    expect(stored.codes.map((codes) => codes.length > 0)).toEqual([true, true]);
    rebuildText(store);
    for (const { modelNo } of listModels(store)) rebuildVectorIndex(store, indexes.get(modelNo)!, modelNo);
    expect(read()).toEqual(stored);
  });
});

function openFixture(version: number) {
  return openTestEngine({ file: unpackFixture(version), clock: createManualClock(START + 3_600_000) });
}

/** The tables and indexes of a file and how its word index is set, without comments and line breaks. */
function describeSchema(file: string) {
  const db = new Database(file, { readonly: true });
  try {
    const objects = db.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY rowid').all();
    return {
      version: db.pragma('user_version', { simple: true }),
      applicationId: db.pragma('application_id', { simple: true }),
      words: db.prepare('SELECT * FROM memory_text_config ORDER BY k').all(),
      objects: (objects as { sql: string | null }[]).map((object) => ({
        ...object,
        sql: object.sql?.replaceAll(/--.*/g, '').replaceAll(/\s+/g, ' '),
      })),
    };
  } finally {
    db.close();
  }
}
