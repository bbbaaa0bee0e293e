/**
 * Chains of memories that supersede each other. All members of a chain have its number, under which the live end is
 * stored, the member that no other supersedes. A query therefore finds the live end of a chain of any length in one
 * step, and a supersession at the end of a chain writes only the new memory and the chain's row.
 */

import type { Store } from './open-store.ts';

/** A member of a chain, with the live end of the chain. */
export interface ChainEnd {
  readonly memoryNo: number;
  /** `memoryNo` of the member that no other supersedes; it may be the member itself. */
  readonly liveEnd: number;
  /** Whether the live end is valid at the given time already. If it is not, an earlier member may still hold. */
  readonly isHolding: boolean;
}

/**
 * Finds the live ends of the chains that these memories are in; a memory in no chain is left out.
 * @param now time at which it is judged whether a live end is valid, Unix ms
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
 * Joins the chains of two memories into one; a memory that is in no chain counts as a chain of its own. Call inside the
 * write that makes `newer` supersede `older`, which no memory superseded before.
 */
export function joinChains(store: Store, { older, newer }: { readonly older: number; readonly newer: number }): void {
  const [old, next] = [chainOf(store, older), chainOf(store, newer)];
  if (old === null) {
    setChain(store, [older, newer], next ?? insertChain(store, newer));
  } else if (next === null) {
    setChain(store, [newer], old);
    moveEnd(store, old, newer);
  } else {
    const { members, areOlder } = smallerPart(store, next, older);
    const [kept, left] = areOlder ? [next, old] : [old, next];
    setChain(store, members, kept);
    moveEnd(store, kept, liveEndOf(store, next));
    deleteChain(store, left);
  }
}

/**
 * Most memories that one commit moves from chain to chain on request, which takes some 15 µs each. Of the two parts of
 * a chain the smaller one is moved; only where both have more, all writes of all tenants would wait for that.
 */
export const MAX_RELABELLED = 500;

/**
 * Tells whether both parts that a supersession joins have over `MAX_RELABELLED` memories: the older memory with all
 * that it superseded, and the rest of the chain of the newer one. It does not matter whether the link is there.
 */
export function joinsLargeParts(
  store: Store,
  { older, newer }: { readonly older: number; readonly newer: number },
): boolean {
  if (listChain(store, older, MAX_RELABELLED + 1).length <= MAX_RELABELLED) return false;
  const chainNo = chainOf(store, newer);
  return chainNo !== null && listNewer(store, chainNo, older, MAX_RELABELLED + 1).length > MAX_RELABELLED;
}

/**
 * Tells whether `memoryNo` is the live end of the chain of `member`, or is that memory itself: then it superseded
 * `member` directly or indirectly, so that it cannot be superseded by it.
 */
export function isLiveEndOf(store: Store, memoryNo: number, member: number): boolean {
  const chainNo = chainOf(store, member);
  return memoryNo === member || (chainNo !== null && liveEndOf(store, chainNo) === memoryNo);
}

/**
 * Separates a memory, and all memories that it superseded directly or indirectly, from the rest of its chain. They
 * become a chain of their own; a memory that superseded none leaves chains. Call inside the write after which no memory
 * supersedes `older` any more.
 * @returns the number of memories that have another chain now
 */
export function splitChain(store: Store, older: number): number {
  const chainNo = chainOf(store, older);
  if (chainNo === null) return 0;
  const { members, areOlder } = smallerPart(store, chainNo, older);
  if (areOlder) {
    putInChain(store, members, older);
  } else {
    putInChain(store, members, liveEndOf(store, chainNo));
    moveEnd(store, chainNo, older);
  }
  return members.length;
}

/** Gives these memories a chain of their own; a single one leaves chains. */
function putInChain(store: Store, members: readonly number[], liveEnd: number): void {
  setChain(store, members, members.length === 1 ? null : insertChain(store, liveEnd));
}

/**
 * Lists the smaller one of the two parts of a chain: `older` with all that it superseded, and the others. Reading takes
 * as long as for some four times that part, however large the other one is.
 */
function smallerPart(
  store: Store,
  chainNo: number,
  older: number,
): { readonly members: readonly number[]; readonly areOlder: boolean } {
  for (let most = 4; ; most *= 2) {
    const olders = listChain(store, older, most + 1);
    if (olders.length <= most) return { members: olders, areOlder: true };
    const newers = listNewer(store, chainNo, older, most + 1);
    if (newers.length <= most) return { members: newers, areOlder: false };
  }
}

/**
 * Repairs a chain whose live end was erased: one memory in `freed` becomes the new live end; several become the live
 * ends of chains of their own; with none the chain is deleted. Call inside the write that erased the live end.
 * @param freed memories that the erased one superseded directly and that stay
 */
export function shortenChain(store: Store, chainNo: number, freed: readonly number[]): void {
  const largest = largestOf(store, freed);
  for (const older of freed) if (older !== largest) putInChain(store, listChain(store, older), older);
  const isAlone = largest !== undefined && listChain(store, largest, 2).length === 1;
  if (isAlone) setChain(store, [largest], null);
  if (isAlone || largest === undefined) return deleteChain(store, chainNo);
  moveEnd(store, chainNo, largest);
}

/** Finds the memory of these that superseded the most others, directly or indirectly; undefined if there is none. */
function largestOf(store: Store, ends: readonly number[]): number | undefined {
  let left = ends;
  for (let most = 1; left.length > 1; most *= 2) {
    const larger = left.filter((end) => listChain(store, end, most + 1).length > most);
    left = larger.length > 0 ? larger : left.slice(0, 1);
  }
  return left[0];
}

/**
 * Tells whether a chain that is parted at these memories, so that each becomes a live end, has over `MAX_RELABELLED`
 * memories beside its largest part.
 */
export function freesMany(store: Store, ends: readonly number[]): boolean {
  let [sum, largest] = [0, 0];
  for (const end of ends) {
    const size = listChain(store, end, MAX_RELABELLED + 1).length;
    sum += size;
    largest = Math.max(largest, size);
    if (sum - largest > MAX_RELABELLED) return true;
  }
  return false;
}

/**
 * Finds the memories among these that are the live end of a chain.
 * @returns the number of the chain by the `memoryNo` of its live end; other memories are left out
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

/** Finds the number of the chain that a memory is in; null if it is in none or does not exist. */
export function chainOf(store: Store, memoryNo: number): number | null {
  const row = store.prepare('SELECT chain_no AS chainNo FROM memory_dynamics WHERE seq = ?').get(memoryNo) as
    { chainNo: number | null } | undefined;
  return row?.chainNo ?? null;
}

/**
 * Lists the numbers of a memory and of all memories that it superseded, directly or indirectly.
 * @param most   greatest length of the list; the whole list if left out
 * @param except a memory that is left out, with what only it superseded; null for none
 */
function listChain(store: Store, end: number, most = Number.MAX_SAFE_INTEGER, except: number | null = null): number[] {
  return store
    .prepare(
      `WITH RECURSIVE member (seq) AS (
         SELECT ?
         UNION
         SELECT e.dst FROM member CROSS JOIN edges e ON e.src = member.seq AND e.type = 'supersedes'
         WHERE e.dst <> ?
       ) SELECT seq FROM member LIMIT ?`,
    )
    .pluck()
    .all(end, except ?? -1, most) as number[];
}

/** Lists the members of a chain beside `older` and what it superseded, at most `most`. */
function listNewer(store: Store, chainNo: number, older: number, most: number): number[] {
  return listChain(store, liveEndOf(store, chainNo), most, older);
}

function liveEndOf(store: Store, chainNo: number): number {
  return store.prepare('SELECT live_end FROM chains WHERE chain_no = ?').pluck().get(chainNo) as number;
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
