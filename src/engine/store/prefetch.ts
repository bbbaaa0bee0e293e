/**
 * Prefetches the lookups that an add or a job step makes for many memories. In PostgreSQL each lookup costs a round
 * trip, so these functions ask them all together: in one round trip, or in two if users must be found first (see
 * `Foresight`). The caller then makes each lookup as usual, and gets the prefetched answer. For a SQLite file they do
 * nothing.
 */

import { contentHash } from '../text/content-hash.ts';
import type { NewMemory } from '../types.ts';
import { SELECT_LAST_RECORD } from './audit-chain.ts';
import { duplicateParameters, SELECT_DUPLICATES } from './duplicates.ts';
import { SELECT_PRIMARY_SECTORS, SELECT_READY, SELECT_SECTORS } from './dynamics.ts';
import { SELECT_WAYPOINT, SELECT_WAYPOINT_SOURCES } from './edges.ts';
import { SELECT_ANY_MENTION } from './entities.ts';
import { SELECT_CLAIMED_STATE } from './job-leases.ts';
import type { Claim } from './jobs.ts';
import { LABEL_KINDS, SELECT_LABEL } from './labels.ts';
import { SELECT_ROWS } from './memories.ts';
import type { Foresight } from './foresight.ts';
import type { Store } from './open-store.ts';
import { SELECT_CONCLUDED } from './reflections.ts';
import { SELECT_LATEST_WITH_TIME } from './session-context.ts';
import { SELECT_ANY_VECTOR, SELECT_WHETHER_VECTOR } from './vectors.ts';
import { findUserNo, SELECT_USER } from './users.ts';
import { SELECT_WRITER } from './writers.ts';

/**
 * Greatest number of adds or claims for which one call prefetches lookups; those for further ones are then made one by
 * one.
 */
const MAX_PREFETCHED = 256;

/** Adds whose lookups are prefetched. */
export interface AskedByAdds {
  readonly memories: readonly NewMemory[];
  /** Public ids of the keys that make the adds. */
  readonly writers: readonly string[];
  /** Whether the adds append an audit record. */
  readonly isAudited: boolean;
  readonly now: number;
}

/**
 * Prefetches the lookups of adds that need no other answer, in the first round trip of their write: users, keys, the
 * last audit record, and all lookups for memories of no user. Call it as the `ask` of `Store.write`.
 */
export function prefetchFirstForAccept(store: Store, { memories, writers, isAudited, now }: AskedByAdds): void {
  const { ahead } = store;
  if (ahead === null) return;
  const asked = memories.slice(0, MAX_PREFETCHED);
  const users = new Set(asked.map(({ userId }) => userId));
  const each = (ids: Iterable<string>) => [...ids].filter(Boolean).map((id) => [id]);
  ahead.ask(SELECT_USER, each(users));
  ahead.ask(SELECT_WRITER, each(new Set(writers)));
  if (isAudited) ahead.ask(SELECT_LAST_RECORD, [[]]);
  for (const memory of asked) if (memory.userId === '') prefetchOfMemory(ahead, { memory, userNo: 0, now });
}

/**
 * Prefetches the other lookups of adds, for memories of users: duplicates, labels and the latest memories of sessions.
 * Left out are users without a number, whose first memory gives them one. Call inside a write, after
 * `prefetchFirstForAccept`, which has prefetched the numbers of the users.
 */
export function prefetchForAccept(store: Store, memories: readonly NewMemory[], now: number): void {
  const { ahead } = store;
  if (ahead === null) return;
  const users = new Map<string, number | undefined>();
  for (const memory of memories.slice(0, MAX_PREFETCHED)) {
    const { userId } = memory;
    if (userId === '') continue;
    if (!users.has(userId)) users.set(userId, findUserNo(store, userId));
    const userNo = users.get(userId);
    // A new user gets a number with the first memory.
    if (userNo !== undefined) prefetchOfMemory(ahead, { memory, userNo, now });
  }
}

function prefetchOfMemory(
  ahead: Foresight,
  { memory, userNo, now }: { readonly memory: NewMemory; readonly userNo: number; readonly now: number },
): void {
  if (memory.externalId === null && memory.onDuplicate !== 'keep') {
    const key = { ...memory, contentHash: contentHash(memory.content), userNo };
    ahead.ask(SELECT_DUPLICATES, [duplicateParameters(key, now)]);
  }
  if (memory.sessionId !== '') ahead.ask(SELECT_LATEST_WITH_TIME, [[userNo, memory.sessionId]]);
  ahead.ask(
    SELECT_LABEL,
    memory.tags.map((tag) => [LABEL_KINDS.tag, userNo, tag]),
  );
  ahead.ask(
    SELECT_LABEL,
    memory.files.map((file) => [LABEL_KINDS.file, userNo, file]),
  );
}

/** Prefetches the lookups that the encode step makes for the memories of these claimed jobs. Call inside a write. */
export function prefetchForEncode(store: Store, claims: readonly Claim[]): void {
  const memories = prefetchLeases(store, claims);
  for (const sql of [SELECT_SECTORS, SELECT_ANY_MENTION, SELECT_ANY_VECTOR, SELECT_WAYPOINT_SOURCES])
    store.ahead?.ask(sql, memories);
}

/**
 * Prefetches the lookups that the link step makes for the memories of these claimed jobs. Call inside a write.
 * @param neighbours for each claim the nearest memory, with the numbers of the vectors that were compared; undefined
 *   for none
 */
export function prefetchForLink(
  store: Store,
  claims: readonly Claim[],
  neighbours: readonly ({ readonly memoryNo: number; readonly vectorNos: readonly number[] } | undefined)[],
): void {
  prefetchLeases(store, claims);
  const pairs = claims.slice(0, MAX_PREFETCHED).flatMap(({ memoryNo }, place) => {
    const neighbour = neighbours[place];
    return neighbour === undefined ? [] : [[memoryNo, neighbour.memoryNo]];
  });
  const compared = neighbours.slice(0, MAX_PREFETCHED).flatMap((neighbour) => neighbour?.vectorNos ?? []);
  store.ahead?.ask(
    SELECT_WHETHER_VECTOR,
    compared.map((vectorNo) => [vectorNo]),
  );
  store.ahead?.ask(SELECT_PRIMARY_SECTORS, pairs);
  const ends = new Set([
    ...claims.slice(0, MAX_PREFETCHED).map(({ memoryNo }) => memoryNo),
    ...pairs.map((pair) => pair[1]),
  ]);
  store.ahead?.ask(
    SELECT_WAYPOINT,
    [...ends].map((memoryNo) => [memoryNo]),
  );
}

/** Prefetches the rows that `readMemoryRows` reads for these memories. Call inside a transaction. */
export function prefetchRows(store: Store, memoryNos: readonly number[]): void {
  store.ahead?.ask(SELECT_ROWS, [[JSON.stringify(memoryNos)]]);
}

/** Prefetches for each memory whether it has the state `ready`. Call inside a transaction. */
export function prefetchReadyStates(store: Store, memoryNos: Iterable<number>): void {
  store.ahead?.ask(
    SELECT_READY,
    [...new Set(memoryNos)].map((memoryNo) => [memoryNo]),
  );
}

/** Prefetches what `isReflection` reads of these memories. Call inside a transaction. */
export function prefetchReflections(store: Store, memoryNos: Iterable<number>): void {
  store.ahead?.ask(
    SELECT_CONCLUDED,
    [...memoryNos].map((memoryNo) => [memoryNo]),
  );
}

/**
 * Prefetches whether the claims still hold their jobs. Returns a list of parameters for lookups by memory: the memory's
 * number for each claim, for at most 256 claims.
 */
function prefetchLeases(store: Store, claims: readonly Claim[]): (readonly unknown[])[] {
  if (store.ahead === null) return [];
  const asked = claims.slice(0, MAX_PREFETCHED);
  store.ahead.ask(
    SELECT_CLAIMED_STATE,
    asked.map(({ jobNo, epoch }) => [jobNo, epoch]),
  );
  return asked.map(({ memoryNo }) => [memoryNo]);
}
