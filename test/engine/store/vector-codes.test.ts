import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import * as sqliteVec from 'sqlite-vec';
import { expect, onTestFinished, test } from 'vitest';
import { openTenant } from '../../../src/engine/open-tenant.ts';
import { rebuildVectorIndex } from '../../../src/engine/admin/rebuild-vector-index.ts';
import { migrate } from '../../../src/engine/store/migrate.ts';
import { encodeVector } from '../../../src/engine/store/vector-encoding.ts';
import { randomVectors } from '../../conformance/vector-index.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const MIGRATIONS = path.join(import.meta.dirname, '../../../src/engine/store/migrations');
const DIMENSIONS = 72;

test('a file from before has the codes that a rebuild gives it, and none of its old indexes', () => {
  const folder = tempFolder();
  const older = path.join(folder, 'migrations');
  fs.mkdirSync(older);
  for (const name of fs.readdirSync(MIGRATIONS)) {
    if (name < '0007') fs.copyFileSync(path.join(MIGRATIONS, name), path.join(older, name));
  }
  const file = path.join(folder, 'old.sqlite');
  const old = new Database(file);
  sqliteVec.load(old);
  migrate(old, file, older);
  old.exec(`INSERT INTO models (model_no, provider, model, dimensions, encoding, created_at) VALUES
    (1, 'test', 'small', ${DIMENSIONS}, 'int8', 1), (2, 'test', 'exact', ${DIMENSIONS}, 'float32', 1);
    INSERT INTO users (user_no, user_id) VALUES (5, 'ann');
    CREATE VIRTUAL TABLE vector_index_1 USING vec0(embedding bit[${DIMENSIONS}], user_no integer, role integer);
    CREATE VIRTUAL TABLE relink_index_1 USING vec0(embedding bit[${DIMENSIONS}], user_no integer, role integer)`);
  const random = randomVectors(1, DIMENSIONS);
  const insertMemory = old.prepare(
    `INSERT INTO memories (seq, id, user_no, event_time, event_time_given, created_at, updated_at, content_hash, content)
     VALUES (?, ?, ?, 1, 0, 1, 1, x'00', 'text')`,
  );
  const insertVector = old.prepare('INSERT INTO vectors (memory, model_no, window_no, embedding) VALUES (?, ?, ?, ?)');
  for (let memory = 1; memory <= 40; memory += 1) {
    insertMemory.run(memory, crypto.randomUUID(), memory % 2 === 0 ? 5 : 0);
    for (const [modelNo, encoding] of [[1, 'int8'] as const, [2, 'float32'] as const]) {
      // Also what rounds to nothing, on either side of it.
      const vector = random().map((value, i) => (i % 9 === 0 ? value / 1_000 : value));
      for (const windowNo of memory % 10 === 0 ? [0, 1, -1] : [0]) {
        insertVector.run(memory, modelNo, windowNo, encodeVector(vector, encoding));
      }
    }
  }
  old.close();

  const tenant = openTenant(file, { role: 'worker', identity: null, now: 1 });
  onTestFinished(() => tenant.close());
  const { store, indexes } = tenant;
  const all = (sql: string) => store.db.prepare(sql).all();
  const codes = () => all('SELECT * FROM vector_codes ORDER BY vector_no');
  const migrated = codes();
  expect(all('SELECT role, count(*) AS n FROM vector_codes GROUP BY role')).toEqual([
    { role: 0, n: 72 },
    { role: 1, n: 16 },
    { role: 2, n: 8 },
  ]);
  expect(all(`SELECT name FROM sqlite_schema WHERE sql LIKE '%vec0%'`)).toEqual([]);
  for (const [modelNo, index] of indexes) rebuildVectorIndex(store, index, modelNo);
  expect(codes()).toEqual(migrated);
});
