/**
 * The questions that the steps of many memories ask one by one, asked at once where a question costs a round trip (see
 * `Foresight`). Each of them is still asked where it was, and answered from here. Nothing happens for a file.
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

/** Most memories that are asked about at once; the questions about others are asked one by one. */
const MAX_ASKED = 256;

/** Asks what the accept step asks about new memories. Call inside a write. */
export function askBeforeAccept(store: Store, memories: readonly NewMemory[], now: number): void {
  const { ahead } = store;
  if (ahead === null || memories.length < 2) return;
  const asked = memories.slice(0, MAX_ASKED);
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

/** Asks what the encode step asks about the memories of these claims. Call inside a write. */
export function askBeforeEncode(store: Store, claims: readonly Claim[]): void {
  const memories = askLeases(store, claims);
  for (const sql of [SELECT_SECTORS, SELECT_ANY_MENTION, SELECT_ANY_VECTOR, SELECT_WAYPOINT_SOURCES])
    store.ahead?.ask(sql, memories);
}

/**
 * Asks what the link step asks about the memories of these claims. Call inside a write.
 * @param neighbours the nearest memory of each; undefined for none
 */
export function askBeforeLink(
  store: Store,
  claims: readonly Claim[],
  neighbours: readonly (number | undefined)[],
): void {
  askLeases(store, claims);
  const pairs = claims.slice(0, MAX_ASKED).flatMap(({ memoryNo }, place) => {
    const neighbour = neighbours[place];
    return neighbour === undefined ? [] : [[memoryNo, neighbour]];
  });
  store.ahead?.ask(SELECT_PRIMARY_SECTORS, pairs);
  store.ahead?.ask(
    SELECT_WAYPOINT,
    pairs.map(([, neighbour]) => [neighbour]),
  );
}

/** Asks whether memories are ready, inside a transaction. */
export function askWhetherReady(store: Store, memoryNos: Iterable<number>): void {
  store.ahead?.ask(
    SELECT_READY,
    [...new Set(memoryNos)].map((memoryNo) => [memoryNo]),
  );
}

/** Asks what the look for contradictions by their form asks about each new memory, inside a transaction. */
export function askBeforeProposals(store: Store, memoryNos: readonly number[]): void {
  if (store.ahead === null) return;
  const each = memoryNos.map((memoryNo) => [memoryNo]);
  store.ahead.ask(SELECT_READY, each);
  store.ahead.ask(SELECT_CONCLUDED, each);
  store.ahead.ask(
    SELECT_ROWS,
    each.map((one) => [JSON.stringify(one)]),
  );
}

/** @returns the parameters of questions about each memory */
function askLeases(store: Store, claims: readonly Claim[]): (readonly unknown[])[] {
  if (store.ahead === null) return [];
  const asked = claims.slice(0, MAX_ASKED);
  store.ahead.ask(
    SELECT_HELD,
    asked.map(({ jobNo, epoch }) => [jobNo, epoch]),
  );
  return asked.map(({ memoryNo }) => [memoryNo]);
}
