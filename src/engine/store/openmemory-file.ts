/** Reads the SQLite files of OpenMemory, of every version since 1.0. It writes nothing to them. */

import type Database from 'better-sqlite3';
import { EngineError } from '../errors.ts';
import { type Json, type Metadata, type Sector, SECTORS } from '../types.ts';
import { openDatabase } from './open-database.ts';
import { sqliteCode } from './storage-errors.ts';

/** A memory or fact of OpenMemory, in the form of the body of `POST /memory/add`. */
interface OpenMemoryItem {
  readonly content: string;
  readonly user_id: string;
  readonly tags: readonly string[];
  readonly metadata: Metadata;
  readonly type?: string;
  readonly event_time?: number;
  readonly valid_from?: number;
  readonly valid_to?: number;
  readonly importance?: number;
  readonly confidence?: number;
  readonly external_id: string;
}

/** An open file of OpenMemory (another memory service), with the counts of what it contains. */
export interface OpenMemoryFile {
  /** Number of memories in the file. */
  readonly memories: number;
  /** Number of facts in the file, which have a time of validity; they are not among `memories`. */
  readonly facts: number;
  /**
   * How many things of each kind are not imported: links, vectors and summaries of users, which Cairn makes itself;
   * relations between facts and rows of logs, for which Cairn has no counterpart.
   */
  readonly leftOut: Readonly<Record<'waypoints' | 'vectors' | 'summaries' | 'relations' | 'logs', number>>;
  /**
   * Yields the memories in the file, oldest first, then its facts. The file is closed after the last one, so call it
   * once.
   */
  readonly items: () => Generator<OpenMemoryItem>;
  /** Closes the file; needed only if `items` was not read to its end. */
  readonly close: () => void;
}

/**
 * Opens a file of OpenMemory for reading.
 * @throws EngineError `invalid` for a file that cannot be read as a database or is not one of OpenMemory
 */
export function openOpenMemoryFile(file: string): OpenMemoryFile {
  const db = openReadOnly(file);
  const columns = columnsOf(db, 'memories');
  if (!['id', 'content', 'primary_sector', 'salience'].every((name) => columns.has(name))) {
    db.close();
    throw new EngineError('invalid', `${file} is no database of OpenMemory: it has no table of its memories`);
  }
  const vectors = Math.max(count(db, 'vectors'), count(db, 'openmemory_vectors'));
  return {
    memories: count(db, 'memories'),
    facts: count(db, 'temporal_facts'),
    leftOut: {
      waypoints: count(db, 'waypoints'),
      vectors,
      summaries: count(db, 'users'),
      relations: count(db, 'temporal_edges'),
      logs: count(db, 'embed_logs') + count(db, 'stats'),
    },
    *items() {
      yield* memoriesOf(db);
      yield* factsOf(db);
      db.close();
    },
    close: () => void db.close(),
  };
}

function openReadOnly(file: string): Database.Database {
  let db: Database.Database | undefined;
  try {
    db = openDatabase(file, { readonly: true, fileMustExist: true, key: null });
    db.prepare('SELECT count(*) FROM sqlite_schema').get();
    return db;
  } catch (cause) {
    db?.close();
    if (sqliteCode(cause) === undefined && !(cause instanceof TypeError)) throw cause;
    throw new EngineError('invalid', `${file} cannot be read as a SQLite database`, { cause });
  }
}

/** Tables that some version of OpenMemory has. */
type Table =
  | 'memories'
  | 'vectors'
  | 'openmemory_vectors'
  | 'waypoints'
  | 'users'
  | 'temporal_facts'
  | 'temporal_edges'
  | 'embed_logs'
  | 'stats';

/** Returns the names of a table's columns; empty if there is no such table. */
function columnsOf(db: Database.Database, table: Table): Set<string> {
  return new Set(db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[]);
}

function count(db: Database.Database, table: Table): number {
  if (columnsOf(db, table).size === 0) return 0;
  return db.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number;
}

type Row = Readonly<Record<string, unknown>>;

function* memoriesOf(db: Database.Database): Generator<OpenMemoryItem> {
  const rows = db.prepare('SELECT * FROM memories ORDER BY created_at, id').iterate() as IterableIterator<Row>;
  for (const row of rows) {
    const sector = SECTORS.find((name) => name === row['primary_sector']);
    yield {
      content: textOf(row['content']),
      user_id: userOf(row),
      tags: tagsOf(row['tags']),
      metadata: {
        ...objectOf(row['meta'] ?? row['metadata']),
        ...projectOf(row),
        ...scoresOf(row),
        ...withSector(sector),
      },
      ...timeAs('event_time', row['created_at']),
      ...shareAs('importance', row['salience']),
      external_id: textOf(row['id']),
    };
  }
}

function* factsOf(db: Database.Database): Generator<OpenMemoryItem> {
  if (columnsOf(db, 'temporal_facts').size === 0) return;
  const rows = db.prepare('SELECT * FROM temporal_facts ORDER BY valid_from, id').iterate() as IterableIterator<Row>;
  for (const row of rows) {
    const { subject, predicate, object, valid_from: from, valid_to: to } = row;
    yield {
      content: [subject, predicate, object].map(textOf).join(' '),
      user_id: userOf(row),
      tags: [],
      metadata: {
        ...objectOf(row['metadata']),
        ...projectOf(row),
        subject: textOf(subject),
        predicate: textOf(predicate),
      },
      type: 'fact',
      ...timeAs('event_time', from),
      ...timeAs('valid_from', from),
      // One that was replaced in its first millisecond ends before it begins; it must not come back as valid.
      ...(typeof to === 'number' && typeof from === 'number' ? timeAs('valid_to', Math.max(to, from + 1)) : {}),
      ...shareAs('confidence', row['confidence']),
      external_id: `fact:${textOf(row['id'])}`,
    };
  }
}

function projectOf(row: Row): Metadata {
  const project = textOf(row['project_id']);
  return project === '' ? {} : { project_id: project };
}

/**
 * Returns usage counts, which some versions of OpenMemory store with a memory, as metadata, since Cairn has no field
 * for them; counts of 0 are left out.
 */
function scoresOf(row: Row): Metadata {
  const scores = ['feedback_score', 'coactivations'].map((name) => [name, row[name]] as const);
  return Object.fromEntries(scores.filter(([, score]) => typeof score === 'number' && score !== 0)) as Metadata;
}

function withSector(sector: Sector | undefined) {
  return sector === undefined ? {} : { sector };
}

/**
 * Returns the user of a row. OpenMemory calls a caller without a name `anonymous`; in Cairn that is '', no particular
 * user.
 */
function userOf(row: Row): string {
  const userId = textOf(row['user_id']);
  return userId === 'anonymous' ? '' : userId;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}

function timeAs<Name extends string>(name: Name, value: unknown): { readonly [key in Name]?: number } {
  if (typeof value !== 'number' || !(value > 0)) return {};
  return { [name]: Math.round(value) } as { readonly [key in Name]?: number };
}

function shareAs<Name extends string>(name: Name, value: unknown): { readonly [key in Name]?: number } {
  if (typeof value !== 'number') return {};
  return { [name]: Math.min(1, Math.max(0, value)) } as { readonly [key in Name]?: number };
}

function tagsOf(text: unknown): string[] {
  const tags = parsed(text);
  return Array.isArray(tags) ? tags.filter((tag): tag is string => typeof tag === 'string' && tag !== '') : [];
}

function objectOf(text: unknown): Metadata {
  const value = parsed(text);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Metadata) : {};
}

/** Parses stored JSON; null for a text that is not JSON. */
function parsed(text: unknown): Json {
  try {
    return JSON.parse(textOf(text)) as Json;
  } catch {
    return null;
  }
}
