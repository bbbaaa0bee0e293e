import type Database from 'better-sqlite3';
import * as sqliteVec from 'sqlite-vec';
import type { IndexedVector } from '../ports.ts';
import { openDatabase } from './open-database.ts';
import { encodeVector } from './vector-encoding.ts';
import { ROLES } from './vectors.ts';

/** Parameters of a search for the nearest vectors in a table. */
interface Vec0Question {
  readonly embedding: Float32Array;
  /** Number of the user whose vectors are searched; undefined for those of all users. */
  readonly userNo: number | undefined;
  /**
   * Purpose of the search. `rank` leaves out mean vectors of texts with several windows; `link` leaves out the windows
   * of such texts, so that each memory has one vector.
   */
  readonly purpose: 'rank' | 'link';
  /** Highest number of a memory whose vectors are searched; Infinity for all. */
  readonly upTo: number;
  /** Number of vectors to find, 1..4096. */
  readonly k: number;
}

/** A `vec0` table of the SQLite extension sqlite-vec in memory, with the vectors of one space. */
export interface Vec0Table {
  /** Number of vectors in the table. */
  readonly count: number;
  /** Number of removed vectors; the table does not reuse their memory. */
  readonly removed: number;
  /** Size of the table in memory, in bytes. */
  readonly bytes: number;
  /** Adds vectors whose numbers the table does not have yet. */
  append(vectors: readonly IndexedVector[]): void;
  /** Removes a vector by its number; an unknown number is ignored. */
  remove(vectorNo: number): void;
  /**
   * Runs several searches. Returns for each of them the numbers of at most `k` vectors, nearest by cosine first. Among
   * equally near vectors those with the lowest numbers are found, unless these and the nearer ones are over 4,096.
   */
  nearest(questions: readonly Vec0Question[]): number[][];
  /**
   * Lists the numbers of a user's vectors for ranking, ascending, without mean vectors; undefined if the user has more
   * than `limit` vectors, mean vectors counted.
   */
  listOf(userNo: number, limit: number): number[] | undefined;
  close(): void;
}

/**
 * Number of vectors that sqlite-vec stores in one chunk. A chunk has its full size even with few vectors: 0.4 MB at 768
 * dimensions.
 */
const CHUNK_VECTORS = 128;
/** Greatest number of vectors that sqlite-vec finds in one search. */
const MAX_FOUND = 4096;
/** Number of the role (see ROLES) whose vectors a search leaves out, by the purpose of the search. */
const LEFT_OUT = { rank: ROLES.indexOf('mean'), link: ROLES.indexOf('window') } as const;

/** Makes an empty table for vectors of this number of dimensions. */
export function createVec0Table(dimensions: number): Vec0Table {
  const db = openDatabase(':memory:');
  sqliteVec.load(db);
  db.exec(`
    CREATE VIRTUAL TABLE held USING vec0 (
      vector_no INTEGER PRIMARY KEY, embedding float[${dimensions}] distance_metric=cosine,
      user_no INTEGER, memory INTEGER, role INTEGER, chunk_size=${CHUNK_VECTORS});
    CREATE TABLE owners (vector_no INTEGER PRIMARY KEY, user_no INTEGER NOT NULL, role INTEGER NOT NULL);
    CREATE INDEX owners_by_user ON owners (user_no, vector_no);`);
  const insert = db.prepare('INSERT INTO held (vector_no, embedding, user_no, memory, role) VALUES (?, ?, ?, ?, ?)');
  const insertOwner = db.prepare('INSERT INTO owners (vector_no, user_no, role) VALUES (?, ?, ?)');
  const remove = db.prepare('DELETE FROM held WHERE vector_no = ?');
  const removeOwner = db.prepare('DELETE FROM owners WHERE vector_no = ?');
  const select = selectNearest(db);
  let [count, removed] = [0, 0];
  return {
    get count() {
      return count;
    },
    get removed() {
      return removed;
    },
    get bytes() {
      return (
        (db.pragma('page_count', { simple: true }) as number) * (db.pragma('page_size', { simple: true }) as number)
      );
    },
    append: db.transaction((vectors: readonly IndexedVector[]) => {
      for (const { vectorNo, userNo, memory, role, embedding } of vectors) {
        const roleNo = ROLES.indexOf(role);
        // sqlite-vec accepts whole numbers only as BigInt.
        const [no, owner, of] = [BigInt(vectorNo), BigInt(userNo), BigInt(memory)];
        insert.run(no, encodeVector(embedding, 'float32'), owner, of, BigInt(roleNo));
        insertOwner.run(vectorNo, userNo, roleNo);
      }
      count += vectors.length;
    }),
    remove: db.transaction((vectorNo: number) => {
      if (removeOwner.run(vectorNo).changes === 0) return;
      remove.run(BigInt(vectorNo));
      count -= 1;
      removed += 1;
    }),
    nearest: (questions) => questions.map(select),
    listOf(userNo, limit) {
      const rows = db.prepare('SELECT count(*) FROM owners WHERE user_no = ?').pluck().get(userNo) as number;
      if (rows > limit) return undefined;
      return db
        .prepare('SELECT vector_no FROM owners WHERE user_no = ? AND role <> ? ORDER BY vector_no')
        .pluck()
        .all(userNo, LEFT_OUT.rank) as number[];
    },
    close: () => void db.close(),
  };
}

function selectNearest(db: Database.Database): (question: Vec0Question) => number[] {
  const nearest =
    'SELECT vector_no, distance FROM held WHERE embedding MATCH ? AND k = ? AND role <> ? AND memory <= ?';
  const ofAll = db.prepare(nearest).raw();
  const ofUser = db.prepare(`${nearest} AND user_no = ?`).raw();
  return ({ embedding, userNo, purpose, upTo, k }) => {
    const [query, maxMemoryNo] = [encodeVector(embedding, 'float32'), BigInt(Math.min(upTo, Number.MAX_SAFE_INTEGER))];
    const find = (atMost: number): [vectorNo: number, distance: number][] => {
      const parameters = [query, BigInt(atMost), BigInt(LEFT_OUT[purpose]), maxMemoryNo];
      const rows = userNo === undefined ? ofAll.all(...parameters) : ofUser.all(...parameters, BigInt(userNo));
      return rows as [vectorNo: number, distance: number][];
    };
    let atMost = Math.min(k + 1, MAX_FOUND);
    let rows = find(atMost);
    // sqlite-vec leaves out any of the vectors that are equally near, so all of them are read before some are left out.
    while (rows.length === atMost && atMost < MAX_FOUND && rows[k - 1]![1] === rows.at(-1)![1]) {
      atMost = Math.min(2 * atMost, MAX_FOUND);
      rows = find(atMost);
    }
    return rows
      .sort((a, b) => a[1] - b[1] || a[0] - b[0])
      .slice(0, k)
      .map(([vectorNo]) => vectorNo);
  };
}
