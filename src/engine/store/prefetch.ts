/**
 * Batches the lookups that a job step makes for many memories. In PostgreSQL each lookup costs a round trip, so these
 * functions send all lookups of a batch in one round trip (see `Foresight`). The step then makes each lookup as usual,
 * and gets the prefetched answer. For a SQLite file they do nothing.
 */

import { contentHash } from '../text/content-hash.ts';
import type { NewMemory } from '../types.ts';
import { duplicateParameters, SELECT_DUPLICATES } from './duplicates.ts';
import { SELECT_PRIMARY_SECTORS, SELECT_READY, SELECT_SECTORS } from './dynamics.ts';
import { SELECT_WAYPOINT, SELECT_WAYPOINT_SOURCES } from './edges.ts';
import { SELECT_ANY_MENTION } from './entities.ts';
import { SELECT_HELD } from './job-leases.ts';
import type { Claim } from './jobs.ts';
import { LABEL_KINDS, SELECT_LABEL } from './labels.ts';
import { SELECT_ROWS } from './memories.ts';
import type { Store } from './open-store.ts';
import { SELECT_CONCLUDED } from './reflections.ts';
import { SELECT_LATEST_WITH_TIME } from './session-context.ts';
import { SELECT_ANY_VECTOR } from './vectors.ts';
import { SELECT_USER } from './users.ts';

/**
 * Greatest number of memories for which one call prefetches lookups; the lookups for further memories are made one by
 * one.
 */
const MAX_PREFETCHED = 256;

/**
 * Prefetches the lookups that the accept step makes for new memories: users, duplicates, labels and the latest memories
 * of sessions. Call inside a write.
 */
export function prefetchForAccept(store: Store, memories: readonly NewMemory[], now: number): void {
  const { ahead } = store;
  if (ahead === null || memories.length < 2) return;
  const asked = memories.slice(0, MAX_PREFETCHED);
  ahead.ask(
    SELECT_USER,
    [...new Set(asked.map(({ userId }) => userId))].filter(Boolean).map((userId) => [userId]),
  );
  const users = new Map<string, number | undefined>([['', 0]]);
  const userNoOf = (userId: string) => {
    if (!users.has(userId)) {
      const row = store.prepare(SELECT_USER).get(userId) as { user_no: number } | undefined;
      users.set(userId, row?.user_no);
    }
    return users.get(userId);
  };
  for (const memory of asked) {
    const userNo = userNoOf(memory.userId);
    if (userNo === undefined) continue; // A new user, who gets a number with the first memory.
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
}

/** Prefetches the lookups that the encode step makes for the memories of these claimed jobs. Call inside a write. */
export function prefetchForEncode(store: Store, claims: readonly Claim[]): void {
  const memories = prefetchLeases(store, claims);
  for (const sql of [SELECT_SECTORS, SELECT_ANY_MENTION, SELECT_ANY_VECTOR, SELECT_WAYPOINT_SOURCES])
    store.ahead?.ask(sql, memories);
}

/**
 * Prefetches the lookups that the link step makes for the memories of these claimed jobs. Call inside a write.
 * @param neighbours for each claim the number of the nearest memory; undefined for none
 */
export function prefetchForLink(
  store: Store,
  claims: readonly Claim[],
  neighbours: readonly (number | undefined)[],
): void {
  prefetchLeases(store, claims);
  const pairs = claims.slice(0, MAX_PREFETCHED).flatMap(({ memoryNo }, place) => {
    const neighbour = neighbours[place];
    return neighbour === undefined ? [] : [[memoryNo, neighbour]];
  });
  store.ahead?.ask(SELECT_PRIMARY_SECTORS, pairs);
  store.ahead?.ask(
    SELECT_WAYPOINT,
    pairs.map(([, neighbour]) => [neighbour]),
  );
}

/** Prefetches for each memory whether it has the state `ready`. Call inside a transaction. */
export function prefetchReadyStates(store: Store, memoryNos: Iterable<number>): void {
  store.ahead?.ask(
    SELECT_READY,
    [...new Set(memoryNos)].map((memoryNo) => [memoryNo]),
  );
}

/**
 * Prefetches the lookups that the rule-based search for contradictions makes for each new memory. Call inside a
 * transaction.
 */
export function prefetchForProposals(store: Store, memoryNos: readonly number[]): void {
  if (store.ahead === null) return;
  const each = memoryNos.map((memoryNo) => [memoryNo]);
  store.ahead.ask(SELECT_READY, each);
  store.ahead.ask(SELECT_CONCLUDED, each);
  store.ahead.ask(
    SELECT_ROWS,
    each.map((one) => [JSON.stringify(one)]),
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
    SELECT_HELD,
    asked.map(({ jobNo, epoch }) => [jobNo, epoch]),
  );
  return asked.map(({ memoryNo }) => [memoryNo]);
}
