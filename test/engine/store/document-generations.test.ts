/** Documents that wait or could not be read cost nothing where memories are read, or others are erased. */
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { findAbandonedGeneration } from '../../../src/engine/store/document-generations.ts';
import { failDocument, findErasedDocument } from '../../../src/engine/store/documents.ts';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import { getMemoryRow } from '../../../src/engine/store/memories.ts';
import { migrate } from '../../../src/engine/store/migrate.ts';
import type { Store } from '../../../src/engine/store/open-store.ts';
import { openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const MIGRATIONS = path.resolve(import.meta.dirname, '../../../src/engine/store/migrations');

/** Returns the plans of the statements that `work` prepares, as lines. */
function plansOf(fixture: TestEngine, work: (store: Store) => unknown): string[] {
  const { store } = fixture;
  const statements = new Set<string>();
  work({ ...store, prepare: (sql: string) => (statements.add(sql), store.prepare(sql)) });
  return [...statements].flatMap((sql) =>
    fixture
      .all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql.replaceAll('?', '1')}`)
      .map(({ detail }) => detail)
      .filter((detail) => detail !== ''),
  );
}

test('to read or to find a memory looks up the generation that it is of, and lists none', async () => {
  await using fixture = await openTestEngine();
  const { id } = await fixture.add({ content: 'a heron' });
  const filter = compileFilter({}, START);
  const plans = [
    plansOf(fixture, (store) => getMemoryRow(store, id, START)),
    plansOf(fixture, (store) =>
      store
        .prepare(
          `SELECT m.seq FROM memories m CROSS JOIN memory_dynamics d ON d.seq = m.seq WHERE m.seq = ? AND ${filter.sql}`,
        )
        .all(1, ...filter.parameters),
    ),
  ];
  for (const plan of plans) {
    expect(plan.join('\n')).toMatch(/CORRELATED SCALAR SUBQUERY/);
    expect(plan).toContain('SEARCH hidden_one USING INTEGER PRIMARY KEY (rowid=?)');
    expect(plan.join('\n')).not.toMatch(/LIST SUBQUERY|SCAN/);
  }
});

test('what must be erased is found without reading what waits or failed, of one document by its id', async () => {
  await using fixture = await openTestEngine();
  expect(plansOf(fixture, (store) => findAbandonedGeneration(store))).toEqual([
    expect.stringMatching(/^SCAN g USING (COVERING )?INDEX document_generations_abandoned$/),
  ]);
  const ofOne = plansOf(fixture, (store) => findAbandonedGeneration(store, 'an id'));
  expect(ofOne.slice(0, 2)).toEqual([
    expect.stringMatching(/^SEARCH o USING (COVERING )?INDEX sqlite_autoindex_documents_1 \(id=\?\)/),
    'SEARCH g USING INDEX document_generations_by_document (document_no=?)',
  ]);
  const erased = plansOf(fixture, (store) => findErasedDocument(store, 'an id'));
  expect(erased[0]).toMatch(/^SEARCH o USING INDEX sqlite_autoindex_documents_1 \(id=\?\)/);
});

test('what was replaced, cancelled, sent again after a failure or deleted must be erased, and nothing else', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const send = async (externalId: string, text: string) =>
    (await tenant.addDocument(newDocument(await upload(tenant, text), { externalId }))).document;
  const abandoned = () => findAbandonedGeneration(store)?.generationNo;
  const generations = () => fixture.all<{ generation_no: number }>('SELECT generation_no FROM document_generations');
  const newest = () => Math.max(...generations().map((row) => row.generation_no));
  const expectErased = (generationNo: number) => {
    expect(abandoned()).toBeUndefined();
    expect(generations().map((row) => row.generation_no)).not.toContain(generationNo);
  };

  await send('kept', '# Kept\n\nThe heron stands.');
  await fixture.drain();
  await send('waiting', '# Waiting');
  const failed = await send('failed', '# Failed');
  const fail = () =>
    store.write(() =>
      failDocument(store, fixture.get<number>(`SELECT document_no FROM documents WHERE id = '${failed.id}'`), {
        ...{ code: 'fetch_refused', message: 'no', now: START },
      }),
    );
  fail();
  expect(abandoned()).toBeUndefined();

  const failedNo = newest();
  await send('failed', '# Sent again');
  expect(abandoned()).toBe(failedNo);
  await fixture.drain();
  expectErased(failedNo);

  const cancelled = await send('cancelled', '# Cancelled');
  const cancelledNo = newest();
  await tenant.cancelDocument(cancelled.id);
  expectErased(cancelledNo);

  const keptNo = fixture.get<number>(`SELECT live_no FROM documents WHERE external_id = 'kept'`);
  await send('kept', '# Changed\n\nThe heron flies.');
  expect(abandoned()).toBeUndefined();
  await fixture.drain();
  expectErased(keptNo);

  await tenant.deleteDocument(failed.id);
  expect(fixture.all('SELECT * FROM documents WHERE external_id = ?', 'failed')).toEqual([]);
});

test('the migration marks what must be erased in a file of before', () => {
  const folder = tempFolder();
  const steps = fs.readdirSync(MIGRATIONS).sort().slice(0, 20);
  for (const step of steps) fs.copyFileSync(path.join(MIGRATIONS, step), path.join(folder, step));
  const file = path.join(folder, 'a.sqlite');
  const db = new Database(file);
  migrate(db, file, folder);
  db.exec(`
    INSERT INTO documents (document_no, id, user_id, external_id, session_id, source, url, state, live_no, next_no,
      created_at, updated_at)
    VALUES (1, 'a', '', '', '', 'upload', '', 'ready', 1, NULL, 0, 0), (2, 'b', '', '', '', 'upload', '', 'queued', 2,
      3, 0, 0), (3, 'c', '', '', '', 'upload', '', 'deleting', NULL, NULL, 0, 0);
    INSERT INTO document_generations (generation_no, document_no, hidden, created_at, source)
    VALUES (1, 1, 0, 0, 'upload'), (2, 2, 0, 0, 'upload'), (3, 2, 1, 0, 'upload'), (4, 2, 1, 0, 'upload'),
      (5, 3, 1, 0, 'upload')`);
  migrate(db, file);
  const hidden = db.prepare('SELECT hidden FROM document_generations ORDER BY generation_no').pluck().all();
  expect(hidden).toEqual([0, 0, 1, 2, 2]);
  db.close();
});
