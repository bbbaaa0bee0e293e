/** Documents that wait or could not be read cost nothing where memories are read, or others are erased. */
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { deleteMatching } from '../../../src/engine/commands/erase.ts';
import { findAbandoned } from '../../../src/engine/store/document-generations.ts';
import { failDocument, findOldestErasing, findKnownDocument } from '../../../src/engine/store/documents.ts';
import { compileFilter } from '../../../src/engine/store/filter.ts';
import { getMemoryRow } from '../../../src/engine/store/memories.ts';
import { migrate } from '../../../src/engine/store/migrate.ts';
import type { Store } from '../../../src/engine/store/open-store.ts';
import { newMemory, openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';
import { runCommand } from '../../support/run-command.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const MIGRATIONS = path.resolve(import.meta.dirname, '../../../src/engine/store/migrations');

/** Returns the plans of the statements that `work` prepares, as lines. */
function plansOf(fixture: TestEngine, work: (store: Store) => unknown): string[] {
  const { store } = fixture;
  const statements = new Set<string>();
  work({ ...store, prepare: (sql: string) => (statements.add(sql), store.prepare(sql)) });
  return [...statements].flatMap((sql) =>
    fixture
      .all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql.replaceAll(/\?|:\w+/g, '1')}`)
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

test('what must be erased is found without reading what waits, failed or is being erased by others', async () => {
  await using fixture = await openTestEngine();
  expect(plansOf(fixture, (store) => findAbandoned(store)).slice(0, 2)).toEqual([
    'SCAN document_generations USING INDEX document_generations_abandoned',
    'SCAN o USING INDEX documents_abandoned',
  ]);
  const ofErasure = plansOf(fixture, (store) => findAbandoned(store, 'an id'));
  expect(ofErasure).toEqual([
    'SEARCH o USING COVERING INDEX documents_erasing (erasure=?)',
    'CORRELATED SCALAR SUBQUERY 1',
    'SEARCH g USING COVERING INDEX document_generations_by_document (document_no=?)',
  ]);
  expect(plansOf(fixture, (store) => findOldestErasing(store, Infinity))).toEqual([
    'SEARCH documents USING COVERING INDEX documents_erasing (erasure>?)',
    'SEARCH erasures USING INDEX sqlite_autoindex_erasures_1 (id=?)',
  ]);
});

test('what was replaced, cancelled, sent again after a failure or deleted must be erased, and nothing else', async () => {
  await using fixture = await openTestEngine();
  const { tenant, store } = fixture;
  const send = async (externalId: string, text: string) =>
    (await tenant.addDocument(newDocument(await upload(tenant, text), { externalId }))).document;
  const abandoned = () => findAbandoned(store)?.generationNo;
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

test('a document that is handed in again is looked up among those of its user without an external id', async () => {
  await using fixture = await openTestEngine();
  const file = await upload(fixture.tenant, 'The heron stands in the river.');
  const page = { kind: 'url', url: 'https://example.com/herons' } as const;
  for (const source of [file, page]) {
    const plan = plansOf(fixture, (store) => findKnownDocument(store, newDocument(source), START));
    expect(plan.filter((step) => /document_generations|documents_/.test(step)).length).toBeGreaterThan(0);
    for (const step of plan) {
      if (/ document_generations /.test(step)) {
        expect(step).toMatch(
          /USING INDEX document_generations_nameless_by_(url|hash) \(nameless_of=\? AND (url|file_hash)=\?/,
        );
      }
      expect(step).not.toMatch(/^SCAN/);
    }
  }
});

test('a document that gets an external id is found by it, and no longer by its file', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const text = 'The heron stands in the river.';
  const first = await tenant.addDocument(newDocument(await upload(tenant, text)));
  await fixture.drain();
  const again = await tenant.addDocument(newDocument(await upload(tenant, text)));
  expect([again.outcome, again.document.id]).toEqual(['unchanged', first.document.id]);
  const named = { ...newDocument(await upload(tenant, text)), externalId: 'herons' };
  await tenant.replaceDocument(first.document.id, named);
  await fixture.drain();
  const other = await tenant.addDocument(newDocument(await upload(tenant, text)));
  expect([other.outcome, other.document.id === first.document.id]).toEqual(['accepted', false]);
  await fixture.drain();
  expect((await tenant.addDocument(newDocument(await upload(tenant, text)))).document.id).toBe(other.document.id);
});

test('a delete by files and namespace looks at its own memories, and not at all that the files and paths have', async () => {
  await using fixture = await openTestEngine();
  const { tenant } = fixture;
  const item = { ...newMemory({ content: '' }), content: null };
  const put = (key: string, namespace: string, files: readonly string[]) =>
    tenant.putItem({ ...item, namespace, key, value: key, files });
  const kept = [await put('a', 'birds', ['other.md']), await put('b', 'birdsong', ['heron.md', 'river.md'])];
  const gone = [await put('c', 'birds', ['heron.md']), await put('d', 'birds.grey', ['river.md', 'other.md'])];
  const memoryNos = fixture.all<{ seq: number }>('SELECT seq FROM memories').map(({ seq }) => seq);
  const filter = { namespace: 'birds', files: ['heron.md', 'river.md'] };
  const plan = plansOf(fixture, (store) =>
    runCommand(fixture, (context) => deleteMatching({ ...context, store }, { filter, memoryNos })),
  );
  expect(plan).toContain('SEARCH x USING COVERING INDEX memory_labels_by_memory (memory=?)');
  expect(plan.join('\n')).not.toMatch(
    /(SCAN|SEARCH) (l|namespaces) USING (COVERING )?INDEX (?!sqlite_autoindex_labels)/,
  );
  for (const { memory } of kept) await expect(tenant.getMemory(memory.id)).resolves.toMatchObject({ id: memory.id });
  for (const { memory } of gone) await expect(tenant.getMemory(memory.id)).rejects.toMatchObject({ code: 'not_found' });
});
