import { assert } from '../errors.ts';
import type { IndexedVector, IndexSearch, VectorIndex, VectorRole } from '../ports.ts';
import { getVectorSpace } from '../store/embeddings.ts';
import type { Store } from '../store/open-store.ts';
import { decodeVector, signBits } from '../store/vector-encoding.ts';
import { MEAN_WINDOW, roleOf } from '../store/vectors.ts';

/** sqlite-vec refuses a larger k. */
const MAX_K = 4_096;
const REBUILD_SLICE = 500;
const ROLE_CODES = { whole: 0n, window: 1n, mean: 2n } as const satisfies Record<VectorRole, bigint>;
/** Each purpose leaves out one role; `role <> ?` is a filter that vec0 applies before its top-k. */
const LEFT_OUT = { rank: ROLE_CODES.mean, link: ROLE_CODES.window } as const;

export interface Vec0IndexOptions {
  readonly modelNo: number;
  readonly dimensions: number;
  /** In place of the model's own table. */
  readonly table?: string;
}

/**
 * A vec0 table a model, with one sign bit a dimension, searched by Hamming distance: 24 times smaller than float32 and a scan of
 * 100,000 × 768 in 4 ms, which is why it scans at all. vec0 takes integers only as BigInt; better-sqlite3 binds a number as a float.
 * Makes the table if it is missing; call inside a write.
 */
export function createVec0Index(store: Store, options: Vec0IndexOptions): VectorIndex {
  store.db.exec(createTable(options));
  return openVec0Index(store, options);
}

/** The same for a table that exists; the only way on a connection that cannot write. */
export function openVec0Index(store: Store, options: Vec0IndexOptions): VectorIndex {
  const { dimensions } = options;
  const table = tableName(options);
  return {
    add(vectors: readonly IndexedVector[]): void {
      const statement = store.prepare(
        `INSERT INTO ${table} (rowid, embedding, user_no, role) VALUES (?, vec_bit(?), ?, ?)`,
      );
      for (const { vectorNo, userNo, role, embedding } of vectors) {
        assert(
          embedding.length === dimensions,
          `a vector of ${embedding.length} for an index of ${dimensions} dimensions`,
        );
        statement.run(BigInt(vectorNo), signBits(embedding), BigInt(userNo), ROLE_CODES[role]);
      }
    },

    remove(vectorNos: readonly number[]): void {
      const statement = store.prepare(`DELETE FROM ${table} WHERE rowid = ?`);
      for (const vectorNo of vectorNos) statement.run(BigInt(vectorNo));
    },

    search({ embedding, userNo, purpose, k }: IndexSearch): readonly number[] {
      assert(
        embedding.length === dimensions,
        `a query of ${embedding.length} for an index of ${dimensions} dimensions`,
      );
      assert(Number.isInteger(k) && k >= 1 && k <= MAX_K, `k = ${k} is not in 1..${MAX_K}`);
      const nearest = `SELECT rowid FROM ${table} WHERE embedding MATCH vec_bit(?) AND k = ? AND role <> ?`;
      const parameters = [signBits(embedding), BigInt(k), LEFT_OUT[purpose]];
      const rows =
        userNo === undefined
          ? store.prepare(`${nearest} ORDER BY distance`).all(...parameters)
          : store.prepare(`${nearest} AND user_no = ? ORDER BY distance`).all(...parameters, BigInt(userNo));
      return (rows as { rowid: number }[]).map((row) => row.rowid);
    },

    /** vec0 never gives chunks back, so the table is made anew. */
    clear(): void {
      store.db.exec(`DROP TABLE IF EXISTS ${table}; ${createTable(options)}`);
    },
  };
}

/**
 * Makes an index again from the canonical vectors, a short write a slice, so that other writers get in between. Vectors that they
 * add meanwhile have higher numbers than any at the start, and reach the index by their own way.
 * @returns how many vectors the index took
 */
export function rebuildVectorIndex(store: Store, index: VectorIndex, modelNo: number): number {
  const { encoding, dimensions } = getVectorSpace(store, modelNo);
  const last = store.write(() => {
    index.clear();
    return (store.prepare('SELECT max(vector_no) AS last FROM vectors').get() as { last: number | null }).last ?? 0;
  });
  let count = 0;
  for (let after = 0; after < last;) {
    after = store.write(() => {
      const rows = readSlice(store, modelNo, after, last);
      index.add(
        rows.map((row) => ({
          vectorNo: row.vector_no,
          userNo: row.user_no,
          role: roleOf(row.window_no, row.windows),
          embedding: decodeVector(row.embedding, encoding, dimensions),
        })),
      );
      count += rows.length;
      return rows.at(-1)?.vector_no ?? last;
    });
  }
  return count;
}

interface SliceRow {
  readonly vector_no: number;
  readonly user_no: number;
  readonly window_no: number;
  /** 1 for a text of one window: several always come with their mean. */
  readonly windows: number;
  readonly embedding: Buffer;
}

function readSlice(store: Store, modelNo: number, after: number, last: number): SliceRow[] {
  return store
    .prepare(
      `SELECT v.vector_no, m.user_no, v.window_no, v.embedding,
         1 + EXISTS (SELECT 1 FROM vectors mean WHERE mean.memory = v.memory AND mean.model_no = v.model_no
                       AND mean.sector = v.sector AND mean.window_no = ${MEAN_WINDOW}) AS windows
       FROM vectors v JOIN memories m ON m.seq = v.memory
       WHERE v.model_no = ? AND v.vector_no > ? AND v.vector_no <= ?
       ORDER BY v.vector_no LIMIT ${REBUILD_SLICE}`,
    )
    .all(modelNo, after, last) as SliceRow[];
}

function createTable(options: Vec0IndexOptions): string {
  const { dimensions } = options;
  return `CREATE VIRTUAL TABLE IF NOT EXISTS ${tableName(options)}
    USING vec0(embedding bit[${dimensions}], user_no integer, role integer)`;
}

function tableName({ modelNo, table }: Vec0IndexOptions): string {
  assert(Number.isSafeInteger(modelNo), 'a model number is an integer');
  return table ?? `vector_index_${modelNo}`;
}
