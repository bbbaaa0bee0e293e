/** Finds the memory, document or other thing that each event is about, and its user: for many events at once. */

import { EVENT_KINDS } from '../types.ts';
import type { Store } from './open-store.ts';

/** A row of the change feed. */
export interface EventRow {
  readonly event_no: number;
  readonly at: number;
  readonly kind: number;
  /**
   * Number of the memory that the event is about, from which id and user are read; it stays when the memory is erased.
   * Null if the event is about no memory, or about the erasure of one.
   */
  readonly memory: number | null;
  readonly user_no: number | null;
  readonly subject: Buffer | string | null;
}

/** The memory, document or other thing that an event is about, and its user. */
export interface Subject {
  readonly id: string | null;
  /** Number of the user; null if there is none or it is not known. */
  readonly userNo: number | null;
  /** Name of the user; null if there is none, or if nothing of the user is stored any more. */
  readonly userId: string | null;
}

/**
 * Reads the subjects of events, in at most three statements however many events there are.
 * @returns the function that returns the subject of one of these events; undefined if it is a memory that was erased
 *   since
 */
export function readSubjects(store: Store, rows: readonly EventRow[]): (row: EventRow) => Subject | undefined {
  const memories = readMemories(store, numbersOf(rows.map(({ memory }) => memory)));
  const others = rows.filter(({ memory }) => memory === null);
  const users = readUsers(store, numbersOf(others.map(({ user_no: userNo }) => userNo)));
  const documents = readDocuments(store, others.filter(namesDocument));
  return (row) => {
    const { memory, user_no: userNo, subject } = row;
    if (memory !== null) return memories.get(memory);
    const id = uuidOf(subject);
    if (userNo !== null) return { id, userNo, userId: users.get(userNo) ?? null };
    return { id, userNo, userId: namesDocument(row) ? (documents.get(id!) ?? null) : null };
  };
}

/**
 * Tells whether the user of an event must be read from its document's row. The event of a document may have been
 * written before its user had a number, which a user gets with the first memory.
 */
const namesDocument = ({ kind, user_no: userNo, subject }: EventRow) =>
  userNo === null && subject !== null && EVENT_KINDS[kind]!.startsWith('document.');

const numbersOf = (numbers: readonly (number | null)[]) => [...new Set(numbers.filter((number) => number !== null))];

function readMemories(store: Store, memoryNos: readonly number[]): ReadonlyMap<number, Subject> {
  if (memoryNos.length === 0) return new Map();
  const rows = store
    .prepare(
      `SELECT m.seq, m.id, m.user_no AS userNo, u.user_id AS userId FROM json_each(?) AS w
       CROSS JOIN memories m ON m.seq = w.value JOIN users u ON u.user_no = m.user_no`,
    )
    .all(JSON.stringify(memoryNos)) as (Subject & { readonly seq: number })[];
  return new Map(rows.map(({ seq, ...subject }) => [seq, subject]));
}

function readUsers(store: Store, userNos: readonly number[]): ReadonlyMap<number, string> {
  if (userNos.length === 0) return new Map();
  const rows = store
    .prepare('SELECT user_no AS userNo, user_id AS userId FROM users WHERE user_no IN (SELECT value FROM json_each(?))')
    .all(JSON.stringify(userNos)) as { readonly userNo: number; readonly userId: string }[];
  return new Map(rows.map(({ userNo, userId }) => [userNo, userId]));
}

/**
 * Reads the users of the documents that events are about, as a map from document id to user id; '' for a document
 * without a user. A document that was deleted has no entry.
 */
function readDocuments(store: Store, rows: readonly EventRow[]): ReadonlyMap<string, string | null> {
  if (rows.length === 0) return new Map();
  const documents = store
    .prepare('SELECT id, user_id AS userId FROM documents WHERE id IN (SELECT value FROM json_each(?))')
    .all(JSON.stringify(rows.map(({ subject }) => uuidOf(subject)))) as { id: string; userId: string | null }[];
  return new Map(documents.map(({ id, userId }) => [id, userId]));
}

/**
 * Returns the subject of an event as a text: a UUID is stored in 16 bytes. null, for an event without a subject, stays
 * null.
 */
export function uuidOf(subject: Buffer | string | null): string | null {
  if (subject === null || typeof subject === 'string') return subject;
  const hex = subject.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
