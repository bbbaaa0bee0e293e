import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FIRST_TABLES, LATER_TABLES, MIDDLE_TABLES } from '../support/openmemory-schema.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { runCairn } from './run-cairn.ts';

let api: TestApi;
const folder = tempFolder();
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } })));
afterAll(() => api.stop());

const cairn = (...args: string[]) => runCairn([...args, '--url', api.url, '--key', ADMIN_KEY]);

function make(name: string, tables: string, fill: (db: Database.Database) => void): string {
  const file = path.join(folder, name);
  const db = new Database(file);
  db.exec(tables);
  fill(db);
  db.close();
  return file;
}

async function itemsOf(userId: string) {
  const { body } = await api.request('GET', `/memory/all?user_id=${userId}&l=100`);
  return body.items as unknown as readonly Readonly<Record<string, unknown>>[];
}

test('a file of the first version is imported with counts, and again as known', async () => {
  const file = make('first.sqlite', FIRST_TABLES, (db) => {
    const memory = db.prepare(
      `INSERT INTO memories (id, content, primary_sector, tags, meta, created_at, updated_at, last_seen_at, salience)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    const at = Date.parse('2025-10-01');
    memory.run('m1', 'The kettle whistles.', 'episodic', '["tea"]', '{"room":"kitchen"}', at, at, at, 0.72);
    memory.run('m2', 'The kettle whistles.', 'semantic', null, 'no json', at + 1, at, at, 1.4);
    memory.run('m3', '', 'semantic', '[]', '{}', at + 2, at, at, 0.5);
    db.prepare("INSERT INTO waypoints VALUES ('m1', 'm2', 0.8, 1, 1)").run();
    db.prepare("INSERT INTO vectors VALUES ('m1', 'episodic', x'00', 1), ('m2', 'semantic', x'00', 1)").run();
  });
  const before = fs.readFileSync(file);
  const first = await cairn('import', 'openmemory', file);
  expect(first.stdout).toContain('3 memories and 0 facts in ');
  expect(first.stdout).toMatch(/\n2 accepted, 0 known already, 1 rejected in /);
  expect(first.stdout).toContain('1 waypoint, 2 vectors, 0 summaries');
  expect(first.stdout).toMatch(/m3: content: must not be empty/);
  expect(first.code).toBe(1);
  expect(fs.readFileSync(file).equals(before)).toBe(true);
  expect(await itemsOf('')).toMatchObject([
    { external_id: 'm2', importance: 1, metadata: { sector: 'semantic' } },
    {
      external_id: 'm1',
      content: 'The kettle whistles.',
      tags: ['tea'],
      metadata: { room: 'kitchen', sector: 'episodic' },
      importance: 0.72,
      event_time: Date.parse('2025-10-01'),
    },
  ]);
  expect((await cairn('import', 'openmemory', file)).stdout).toMatch(/\n0 accepted, 2 known already, 1 rejected/);
});

test('a file of version 1.2 has users and facts of nobody, and its relations are counted', async () => {
  const file = make('middle.sqlite', MIDDLE_TABLES, (db) => {
    const at = Date.parse('2025-12-01');
    const memory = db.prepare(
      `INSERT INTO memories (id, user_id, content, primary_sector, tags, meta, created_at, salience, feedback_score)
       VALUES (?, ?, ?, 'emotional', '["cat"]', '{}', ?, 0.55, ?)`,
    );
    memory.run('p1', 'mia', 'The cat makes me happy.', at, 0.35);
    memory.run('p2', 'anonymous', 'Nobody said this.', at, 0);
    const fact = db.prepare(`INSERT INTO temporal_facts VALUES (?, 'The office', 'is in', ?, ?, ?, 0.8, 1, NULL)`);
    // OpenMemory ends a fact a millisecond before the next one begins.
    fact.run('g1', 'Lyon', at, at - 1);
    fact.run('g2', 'Turin', at, null);
    db.prepare("INSERT INTO temporal_edges VALUES ('e1', 'g1', 'g2', 'before', 1, NULL, 0.5, NULL)").run();
    db.prepare("INSERT INTO waypoints VALUES ('p1', 'p1', 'mia', 1, 1, 1)").run();
    db.prepare("INSERT INTO users VALUES ('mia', 'A summary.', 1, 1, 1)").run();
  });
  const { code, stdout } = await cairn('import', 'openmemory', file);
  expect([code, stdout]).toEqual([0, expect.stringContaining('4 accepted, 0 known already, 0 rejected')]);
  expect(stdout).toContain('1 waypoint, 0 vectors, 1 summary\nleft out: 1 relation between facts');
  expect(await itemsOf('mia')).toMatchObject([
    { external_id: 'p1', tags: ['cat'], importance: 0.55, metadata: { sector: 'emotional', feedback_score: 0.35 } },
  ]);
  expect((await itemsOf('')).find(({ external_id }) => external_id === 'p2')?.['metadata']).toEqual({
    sector: 'emotional',
  });
  const nobodys = (await itemsOf('')).map(({ content }) => content);
  expect(nobodys).toEqual(expect.arrayContaining(['Nobody said this.', 'The office is in Turin']));
  expect(nobodys).not.toContain('The office is in Lyon');
});

test('a later file has users, projects and facts with their time of validity', async () => {
  const file = make('later.sqlite', LATER_TABLES, (db) => {
    const at = Date.parse('2026-01-05');
    db.prepare(
      `INSERT INTO memories
         (id, user_id, project_id, content, primary_sector, tags, meta, created_at, salience, feedback_score,
          coactivations)
       VALUES ('n1', 'pia', 'roof', 'The ladder is short.', 'procedural', '[]', '{}', ?, 0.4, -0.5, 3)`,
    ).run(at);
    const fact = db.prepare(
      `INSERT INTO temporal_facts VALUES (?, 'pia', 'moves', 'Pia', 'lives in', ?, ?, ?, 0.9, 1, '{"by":"hand"}')`,
    );
    fact.run('f1', 'Rome', at, at + 86_400_000);
    fact.run('f2', 'Turin', at + 86_400_000, null);
    db.exec(`
      INSERT INTO openmemory_vectors VALUES ('n1', 'roof', 'procedural', 'pia', x'00', 1);
      INSERT INTO waypoints VALUES ('n1', 'n1', 'pia', 'roof', 1, 1, 1);
      INSERT INTO embed_logs VALUES ('l1', 'synthetic', 'completed', 1, NULL), ('l2', 'synthetic', 'failed', 2, 'x');
      INSERT INTO users VALUES ('pia', 'A summary.', 1, 1, 1);
      INSERT INTO stats (type, ts) VALUES ('add', 1);
      INSERT INTO temporal_edges VALUES ('e1', 'f1', 'f2', 'before', 1, NULL, 0.5, NULL);
    `);
  });
  const { code, stdout } = await cairn('import', 'openmemory', file);
  expect([code, stdout]).toEqual([0, expect.stringContaining('3 accepted, 0 known already, 0 rejected')]);
  expect(stdout).toContain('1 memory and 2 facts');
  expect(stdout).toContain('1 waypoint, 1 vector, 1 summary\nleft out: 1 relation between facts, 3 rows of logs');
  expect(await itemsOf('pia')).toMatchObject([
    {
      content: 'Pia lives in Turin',
      type: 'fact',
      confidence: 0.9,
      valid_to: null,
      metadata: { by: 'hand', project_id: 'moves' },
    },
    {
      content: 'The ladder is short.',
      metadata: { project_id: 'roof', sector: 'procedural', feedback_score: -0.5, coactivations: 3 },
    },
  ]);
  const before = await api.request('POST', '/memory/query', {
    body: { query: 'Where does Pia live?', user_id: 'pia', as_of: '2026-01-05T12:00:00Z', min_score: 0 },
  });
  expect(before.body.matches.map(({ content }) => content)).toContain('Pia lives in Rome');
});

test('what is no file of OpenMemory is refused', async () => {
  const text = path.join(folder, 'text.sqlite');
  fs.writeFileSync(text, 'not a database, but long enough to look like a file of some kind');
  const other = make('other.sqlite', 'CREATE TABLE notes (id TEXT)', () => {});
  for (const file of [text, path.join(folder, 'none.sqlite')])
    expect((await cairn('import', 'openmemory', file)).stderr).toMatch(/cannot be read as a SQLite database/);
  expect((await cairn('import', 'openmemory', other)).stderr).toMatch(/is no database of OpenMemory/);
  expect(await cairn('import', 'memo', other)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('unknown format memo') as unknown,
  });
});
