/**
 * Notes which users and sessions deletes have named lately. Another process, or a query that is still being answered,
 * may log a question about them later, although it was asked before the delete. The notes are one entry of
 * `store_info`; they hold no names but their hashes, with a key of the file.
 */

import { strict as assert } from 'node:assert';
import type { ErasureFilter } from '../types.ts';
import { keyedHash } from './keyed-hash.ts';
import type { Store } from './open-store.ts';
import { deleteInfo, findInfo, putInfo } from './store-info.ts';
import { parseStored } from './stored-json.ts';

/** Key of the entry in `store_info` that holds the notes, as JSON. */
const ERASED_QUESTIONS = 'erased_questions';
/** How long a note is kept (ms). No answer takes an hour, nor does what waits to be logged. */
const KEPT_MS = 3_600_000;
/**
 * Greatest number of hashes in the notes. If there are more, the oldest notes are replaced by their latest time,
 * `allUntil`: no question asked until then is logged.
 */
const MAX_HASHES = 500;
/** How far the clocks of several machines may differ (ms), which only PostgreSQL lets share a tenant. */
const CLOCKS_DIFFER_MS = 1_000;

/** Users and sessions that a delete named; undefined if its filter had no such condition. */
interface Note {
  /** Time of the delete, Unix ms. */
  readonly at: number;
  readonly users?: readonly string[] | undefined;
  readonly sessions?: readonly string[] | undefined;
}

interface Notes {
  /** Questions that were asked at this time (Unix ms) or earlier are not logged, whatever they named. */
  readonly allUntil: number;
  readonly notes: readonly Note[];
}

/** What a question named, and when it was asked (Unix ms). */
interface Question {
  readonly at: number;
  readonly asked: Pick<ErasureFilter, 'userIds' | 'sessionIds'>;
}

/** Notes the users and sessions of a delete. Call inside a write. */
export function noteErasedQuestions(
  store: Store,
  { userIds, sessionIds }: Pick<ErasureFilter, 'userIds' | 'sessionIds'>,
  now: number,
): void {
  const hashOf = hashes(store);
  const { allUntil, notes } = read(store);
  const note = { at: now, users: userIds?.map(hashOf.user), sessions: sessionIds?.map(hashOf.session) };
  const kept = [...notes.filter(({ at }) => at > now - KEPT_MS), note];
  let merged = allUntil;
  for (let left = kept.reduce((sum, one) => sum + sizeOf(one), 0); left > MAX_HASHES;) {
    const oldest = kept.shift()!;
    merged = Math.max(merged, oldest.at);
    left -= sizeOf(oldest);
  }
  putInfo(store, ERASED_QUESTIONS, JSON.stringify({ allUntil: merged, notes: kept } satisfies Notes));
}

/**
 * Makes the function that tells whether a question must not be logged because of a delete of the last hour: it was
 * asked before the delete (in PostgreSQL up to a second after it), and named one of the users and one of the sessions
 * that the delete named (a delete that named only users or only sessions asks for no more), or it was asked by
 * `allUntil`. Removes all notes if all are older than an hour. Call inside a write.
 */
export function createErasedCheck(store: Store, now: number): (question: Question) => boolean {
  const { allUntil, notes } = read(store);
  if (notes.length === 0 && allUntil === 0) return () => false;
  if (Math.max(allUntil, ...notes.map(({ at }) => at)) < now - KEPT_MS) {
    deleteInfo(store, ERASED_QUESTIONS);
    return () => false;
  }
  const hashOf = hashes(store);
  const lateMs = store.words === null ? 0 : CLOCKS_DIFFER_MS;
  return ({ at, asked }) => {
    if (at - lateMs <= allUntil) return true;
    const users = new Set((asked.userIds ?? []).map(hashOf.user));
    const sessions = new Set((asked.sessionIds ?? []).map(hashOf.session));
    return notes.some(
      (note) =>
        at - lateMs <= note.at &&
        (note.users?.some((user) => users.has(user)) ?? true) &&
        (note.sessions?.some((session) => sessions.has(session)) ?? true),
    );
  };
}

const sizeOf = ({ users = [], sessions = [] }: Note) => users.length + sessions.length;

function read(store: Store): Notes {
  const stored = findInfo(store, ERASED_QUESTIONS);
  return stored === undefined ? { allUntil: 0, notes: [] } : (parseStored(stored) as Notes);
}

/** Makes the functions that hash the names of users and sessions with a key of the file. */
function hashes(store: Store) {
  const secret = findInfo(store, 'idempotency_secret');
  assert(secret !== undefined, 'a migration made the secret of the stored replies');
  const hash = (text: string) => keyedHash(secret, text).toString('base64url', 0, 16);
  return {
    user: (userId: string) => hash(`asked about user ${userId}`),
    session: (sessionId: string) => hash(`asked about session ${sessionId}`),
  };
}
