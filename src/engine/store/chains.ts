/**
 * Chains of memories that supersede each other. The members of a chain share a number under which its live end is kept,
 * so a query finds the end of a chain of any length in one step. A supersession at the end of a chain changes only the
 * new memory and the chain's row, so it costs the same however long the chain is.
 */
import type { Store } from './open-store.ts';

/** A member of a chain, with the live end of the chain. */
export interface ChainEnd {
  readonly memoryNo: number;
  /** Number of the memory in the chain that nothing supersedes; it may be the member itself. */
  readonly liveEnd: number;
  /** Whether the live end is valid already. If it becomes valid later, another member may hold until then. */
  readonly isHolding: boolean;
}

/**
 * Finds the live ends of the chains that memories are in; memories in no chain are left out.
 * @param now Unix ms; decides whether a live end is valid already
 */
export function listChainEnds(store: Store, memoryNos: readonly number[], now: number): ChainEnd[] {
  const rows = store
    .prepare(
      `SELECT d.seq AS memoryNo, c.live_end AS liveEnd, coalesce(n.valid_from, n.event_time) <= ? AS isHolding
       FROM json_each(?) AS wanted CROSS JOIN memory_dynamics d ON d.seq = wanted.value
         CROSS JOIN chains c ON c.chain_no = d.chain_no CROSS JOIN memories n ON n.seq = c.live_end`,
    )
    .all(now, JSON.stringify(memoryNos)) as { memoryNo: number; liveEnd: number; isHolding: number }[];
  return rows.map((row) => ({ ...row, isHolding: row.isHolding === 1 }));
}

/**
 * Joins the chains of two memories, each of which may be in no chain yet. Call inside the write in which `newer` comes
 * to supersede `older`, which nothing superseded until then.
 */
export function joinChains(store: Store, { older, newer }: { readonly older: number; readonly newer: number }): void {
  const [old, next] = [chainOf(store, older), chainOf(store, newer)];
  if (old === null) {
    setChain(store, [older, newer], next ?? insertChain(store, newer));
  } else if (next === null) {
    setChain(store, [newer], old);
    moveEnd(store, old, newer);
  } else {
    setChain(store, listChain(store, older), next);
    deleteChain(store, old);
  }
}

/**
 * Separates a memory and all that it superseded, directly or through others, from the rest of its chain: they become a
 * chain of their own, or leave chains if the memory is alone. Call inside the write after which nothing supersedes
 * `older` any more.
 */
export function splitChain(store: Store, older: number): void {
  const members = listChain(store, older);
  setChain(store, members, members.length === 1 ? null : insertChain(store, older));
}

/**
 * Gives a chain whose live end was erased a new live end, or divides it into several chains, or deletes it. Call inside
 * the write that erased the live end.
 * @param freed the memories that the erased one directly superseded and that stay
 */
export function shortenChain(store: Store, chainNo: number, freed: readonly number[]): void {
  const [only, ...more] = freed;
  if (only === undefined) return deleteChain(store, chainNo);
  if (more.length === 0) return moveEnd(store, chainNo, only);
  for (const older of freed) splitChain(store, older);
  deleteChain(store, chainNo);
}

/**
 * Finds which of these memories are the live end of a chain of supersessions.
 * @returns the number of the chain by the number of its live end; other memories are left out
 */
export function listChainsEndingIn(store: Store, memoryNos: readonly number[]): Map<number, number> {
  const rows = store
    .prepare(
      `SELECT d.seq AS memoryNo, c.chain_no AS chainNo FROM json_each(?) AS wanted
         CROSS JOIN memory_dynamics d ON d.seq = wanted.value
         CROSS JOIN chains c ON c.chain_no = d.chain_no WHERE c.live_end = d.seq`,
    )
    .all(JSON.stringify(memoryNos)) as { memoryNo: number; chainNo: number }[];
  return new Map(rows.map(({ memoryNo, chainNo }) => [memoryNo, chainNo]));
}

/** Finds the number of the chain that a memory is in; null if it is in none, or is gone. */
export function chainOf(store: Store, memoryNo: number): number | null {
  const row = store.prepare('SELECT chain_no AS chainNo FROM memory_dynamics WHERE seq = ?').get(memoryNo) as
    { chainNo: number | null } | undefined;
  return row?.chainNo ?? null;
}

/** Lists a memory and all memories that it superseded, directly or through others. */
function listChain(store: Store, end: number): number[] {
  return store
    .prepare(
      `WITH RECURSIVE member (seq) AS (
         SELECT ?
         UNION
         SELECT e.dst FROM member CROSS JOIN edges e ON e.src = member.seq AND e.type = 'supersedes'
       ) SELECT seq FROM member`,
    )
    .pluck()
    .all(end) as number[];
}

function insertChain(store: Store, liveEnd: number): number {
  return Number(store.prepare('INSERT INTO chains (live_end) VALUES (?)').run(liveEnd).lastInsertRowid);
}

function moveEnd(store: Store, chainNo: number, liveEnd: number): void {
  store.prepare('UPDATE chains SET live_end = ? WHERE chain_no = ?').run(liveEnd, chainNo);
}

function deleteChain(store: Store, chainNo: number): void {
  store.prepare('DELETE FROM chains WHERE chain_no = ?').run(chainNo);
}

function setChain(store: Store, memoryNos: readonly number[], chainNo: number | null): void {
  store
    .prepare('UPDATE memory_dynamics SET chain_no = ? WHERE seq IN (SELECT value FROM json_each(?))')
    .run(chainNo, JSON.stringify(memoryNos));
}
