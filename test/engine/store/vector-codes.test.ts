import { expect, onTestFinished, test } from 'vitest';
import { rebuildVectorIndex } from '../../../src/engine/admin/rebuild-vector-index.ts';
import { openTenant } from '../../../src/engine/tenant-file/open-tenant.ts';
import { readCodes, type VectorCode } from '../../../src/engine/store/vector-codes.ts';
import { decodeVector, encodeVector, signBits } from '../../../src/engine/store/vector-encoding.ts';
import { roleOf, type VectorSpace } from '../../../src/engine/store/vectors.ts';
import { randomVectors } from '../../conformance/vector-index.ts';
import { makeOlderFile } from '../../support/older-file.ts';

const DIMENSIONS = 72;
const MOST = 1_000;

/** As vectors of the offline embedder were stored. */
function int8Of(vector: Float32Array): Buffer {
  const scale = 127 / Math.max(...vector.map(Math.abs));
  return Buffer.from(Int8Array.from(vector, (component) => Math.round(component * scale)).buffer);
}

test.each(['0007', '0010'])('a file from before %s has the vectors and the codes of one from today', (before) => {
  const { db: old, file } = makeOlderFile(before);
  old.exec(`INSERT INTO models (model_no, provider, model, dimensions, encoding, created_at) VALUES
    (1, 'test', 'small', ${DIMENSIONS}, 'int8', 1), (2, 'test', 'exact', ${DIMENSIONS}, 'float32', 1);
    INSERT INTO users (user_no, user_id) VALUES (5, 'ann')`);
  if (before === '0007') {
    old.exec(`
      CREATE VIRTUAL TABLE vector_index_1 USING vec0(embedding bit[${DIMENSIONS}], user_no integer, role integer);
      CREATE VIRTUAL TABLE relink_index_1 USING vec0(embedding bit[${DIMENSIONS}], user_no integer, role integer)`);
  }
  const random = randomVectors(1, DIMENSIONS);
  const insertMemory = old.prepare(
    `INSERT INTO memories (seq, id, user_no, event_time, event_time_given, created_at, updated_at, content_hash, content)
     VALUES (?, ?, ?, 1, 0, 1, 1, x'00', 'text')`,
  );
  const insertVector = old.prepare('INSERT INTO vectors (memory, model_no, window_no, embedding) VALUES (?, ?, ?, ?)');
  const insertCode = before === '0007' ? null : old.prepare('INSERT INTO vector_codes VALUES (?, ?, ?, ?, ?, ?)');
  const expected: Record<'small' | 'exact', (VectorCode & { readonly embedding: Buffer })[]> = { small: [], exact: [] };
  for (let memory = 1; memory <= 41; memory += 1) {
    const userNo = memory % 2 === 0 ? 5 : 0;
    insertMemory.run(memory, crypto.randomUUID(), userNo);
    for (const [modelNo, model] of [[1, 'small'] as const, [2, 'exact'] as const]) {
      // Also what rounds to nothing, on either side of it.
      const vector = random().map((value, i) => (i % 9 === 0 ? value / 1_000 : value));
      const windows = memory % 10 === 0 ? [0, 1, -1] : [0];
      for (const windowNo of windows) {
        const stored = model === 'small' ? int8Of(vector) : encodeVector(vector, 'float32');
        const vectorNo = Number(insertVector.run(memory, modelNo, windowNo, stored).lastInsertRowid);
        const role = roleOf(windowNo, windows.length);
        const values = model === 'small' ? Float32Array.from(new Int8Array(stored)) : vector;
        const code = signBits(values);
        insertCode?.run(vectorNo, modelNo, memory, userNo, ['whole', 'window', 'mean'].indexOf(role), code);
        const embedding = model === 'small' ? encodeVector(values, 'int5') : stored;
        expected[model].push({ vectorNo, memory, userNo, role, code, embedding });
      }
    }
  }
  // The last number was given, and is given to nobody else.
  old.exec('DELETE FROM vectors WHERE vector_no = (SELECT max(vector_no) FROM vectors)');
  if (before !== '0007')
    old.exec('DELETE FROM vector_codes WHERE vector_no = (SELECT max(vector_no) FROM vector_codes)');
  const removed = expected.exact.pop()!;
  old.close();

  const tenant = openTenant(file, { role: 'worker', identity: null, now: 1 });
  onTestFinished(() => tenant.close());
  const { store, indexes } = tenant;
  const all = (sql: string) => store.db.prepare(sql).all();
  const spaces = {
    small: { modelNo: 1, dimensions: DIMENSIONS, encoding: 'int5' },
    exact: { modelNo: 2, dimensions: DIMENSIONS, encoding: 'float32' },
  } as const satisfies Record<string, VectorSpace>;
  expect(all('SELECT model_no AS modelNo, dimensions, encoding FROM models ORDER BY 1')).toEqual(Object.values(spaces));
  for (const model of ['small', 'exact'] as const) {
    const rows = store.db
      .prepare('SELECT embedding FROM vectors WHERE model_no = ? ORDER BY vector_no')
      .pluck()
      .all(spaces[model].modelNo);
    expect(rows).toEqual(expected[model].map(({ embedding }) => embedding));
    const codes = () => readCodes(store, spaces[model], { after: 0, limit: MOST }).codes;
    const migrated = codes();
    expect(migrated).toEqual(expected[model].map(({ embedding: _, ...code }) => code));
    rebuildVectorIndex(store, indexes.get(spaces[model].modelNo)!, spaces[model].modelNo);
    expect(codes()).toEqual(migrated);
  }
  expect(all('SELECT DISTINCT model_no FROM vector_codes')).toEqual([{ model_no: 2 }]);
  expect(all(`SELECT name FROM sqlite_schema WHERE sql LIKE '%vec0%'`)).toEqual([]);
  expect(all(`SELECT seq FROM sqlite_sequence WHERE name = 'vectors'`)).toEqual([{ seq: removed.vectorNo }]);
  const [first] = expected.small;
  const query = decodeVector(first!.embedding, 'int5', DIMENSIONS);
  expect(indexes.get(1)!.search({ embedding: query, userNo: 0, purpose: 'rank', k: 1 })).toEqual([first!.vectorNo]);
});
