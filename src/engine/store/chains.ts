/**
 * Chains of memories that supersede each other. All members of a chain have its number. Under this number the chain's
 * live end is stored: the member that no other supersedes. A query therefore finds the live end of a chain of any
 * length in one step, and a supersession at the end of a chain writes only the new memory and the chain's row.
 */

import type { Store } from './open-store.ts';

/** A memory in a chain (memories that supersede each other), with the chain's live end. */
export interface ChainEnd {
  readonly memoryNo: number;
  /** `memoryNo` of the member that no other supersedes; it may be the member itself. */
  readonly liveEnd: number;
  /**
   * Whether the live end is valid already at the given time. If not, an earlier member of the chain may still be valid.
   */
  readonly isHolding: boolean;
}

/**
 * Finds the live ends of the chains that these memories are in: the member that no other supersedes. A memory in no
 * chain is left out.
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
 * Joins the chains of two memories into one; a memory in no chain counts as a chain of its own. Call inside the write
 * that makes `newer` supersede `older`. No memory may have superseded `older` before.
 * @returns the number of memories that were moved from one chain to the other; 0 if `older` or `newer` was in no chain
 */
export function joinChains(store: Store, { older, newer }: { readonly older: number; readonly newer: number }): number {
  const [old, next] = [chainOf(store, older), chainOf(store, newer)];
  if (old === null) {
    setChain(store, [older, newer], next ?? insertChain(store, newer));
    return 0;
  }
  if (next === null) {
    setChain(store, [newer], old);
    moveEnd(store, old, newer);
    return 0;
  }
  const { members, areOlder } = smallerPart(store, next, older);
  const [kept, left] = areOlder ? [next, old] : [old, next];
  setChain(store, members, kept);
  moveEnd(store, kept, liveEndOf(store, next));
  deleteChain(store, left);
  return members.length;
}

/**
 * Greatest number of memories that one commit moves to another chain for a caller's request; each takes some 15 µs.
 * When a chain is joined or split, the smaller part is moved. If both parts are larger than this, the request is not
 * done in one commit, since all writes would wait for it.
 */
export const MAX_RELABELLED = 500;

/**
 * Tells whether both parts that a supersession joins have more than `MAX_RELABELLED` memories. One part is the older
 * memory with all that it superseded, the other the rest of the chain of the newer memory. The answer is the same
 * before and after the link is made.
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
 * Tells whether `memoryNo` has superseded `member` directly or indirectly as the live end of its chain, or is the same
 * memory. If so, `member` cannot supersede it.
 */
export function isLiveEndOf(store: Store, memoryNo: number, member: number): boolean {
  const chainNo = chainOf(store, member);
  return memoryNo === member || (chainNo !== null && liveEndOf(store, chainNo) === memoryNo);
}

/**
 * Separates a memory, and all memories that it superseded directly or indirectly, from the rest of its chain. They
 * become a new chain; a memory that superseded none is then in no chain. Call inside the write after which no memory
 * supersedes `older` any more.
 * @returns the number of memories whose chain was changed
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

/** Makes a new chain of these memories; a single memory is put in no chain. */
function putInChain(store: Store, members: readonly number[], liveEnd: number): void {
  setChain(store, members, members.length === 1 ? null : insertChain(store, liveEnd));
}

/**
 * Lists the members of the smaller part of a chain. One part is `older` with all that it superseded (`areOlder`), the
 * other part is the rest. Of two parts of similar size, the larger one may be listed. The cost depends only on the size
 * of the smaller part.
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
 * Repairs a chain whose live end was erased. A single memory in `freed` becomes the new live end; several become the
 * live ends of separate chains; one that superseded no other is then in no chain. If `freed` is empty, the chain is
 * deleted. Call inside the write that erased the live end.
 * @param freed memories that the erased one superseded directly and that are not erased
 */
export function shortenChain(store: Store, chainNo: number, freed: readonly number[]): void {
  const largest = largestOf(store, freed);
  for (const older of freed) if (older !== largest) putInChain(store, listChain(store, older), older);
  const isAlone = largest !== undefined && listChain(store, largest, 2).length === 1;
  if (isAlone) setChain(store, [largest], null);
  if (isAlone || largest === undefined) return deleteChain(store, chainNo);
  moveEnd(store, chainNo, largest);
}

/**
 * Finds a memory in `ends` that has superseded many others, directly or indirectly: more than half as many as any other
 * in `ends`, itself counted. The exact greatest would cost a walk over all of them. Returns undefined for an empty
 * list.
 */
function largestOf(store: Store, ends: readonly number[]): number | undefined {
  let left = ends;
  for (let most = 1; left.length > 1; most *= 2) {
    const larger = left.filter((end) => listChain(store, end, most + 1).length > most);
    left = larger.length > 0 ? larger : left.slice(0, 1);
  }
  return left[0];
}

/**
 * Tells whether too many memories get another live end for one commit when these memories become live ends, since those
 * that superseded them are erased: whether more than `MAX_RELABELLED` memories are in the chains under these ends, the
 * largest of which does not count. Ends of several chains count together.
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
 * Finds which of these memories are the live end of a chain: the member that no other supersedes.
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

/** Finds the number of the chain that a memory is in; null if the memory is in no chain or does not exist. */
export function chainOf(store: Store, memoryNo: number): number | null {
  const row = store.prepare('SELECT chain_no AS chainNo FROM memory_dynamics WHERE seq = ?').get(memoryNo) as
    { chainNo: number | null } | undefined;
  return row?.chainNo ?? null;
}

/**
 * SQL that walks down a chain from the memory `:end`, without `:except`. Each row leads to at most two others: the
 * first memory that `older` superseded, and the next one that `newer` superseded. SQLite would queue all that a memory
 * superseded, any number, before the limit ends the walk. A memory that two others superseded comes twice.
 */
const WALK_CHAIN = `WITH RECURSIVE member (newer, older) AS (
    SELECT :none, :end
    UNION
    SELECT CASE way.down WHEN 1 THEN member.older ELSE member.newer END,
      CASE way.down
        WHEN 1 THEN (SELECT e.dst FROM edges e
          WHERE e.src = member.older AND e.type = 'supersedes' AND e.dst <> :except ORDER BY e.dst LIMIT 1)
        ELSE (SELECT e.dst FROM edges e
          WHERE e.src = member.newer AND e.type = 'supersedes' AND e.dst <> :except AND e.dst > member.older
          ORDER BY e.dst LIMIT 1) END
    FROM member CROSS JOIN (SELECT 1 AS down UNION ALL SELECT 0) AS way WHERE member.older > 0
  ) SELECT older FROM member WHERE older > 0 LIMIT :most`;

/**
 * Lists the numbers of a memory and of all memories that it superseded, directly or indirectly. The cost depends on the
 * length of the list, not on how many memories one of them superseded.
 * @param most greatest length of the list; no limit if left out
 * @param except a memory that is left out and not followed, so that memories which only it superseded are left out,
 *   too; null for none
 */
function listChain(store: Store, end: number, most = Number.MAX_SAFE_INTEGER, except: number | null = null): number[] {
  const walk = store.prepare(WALK_CHAIN).pluck();
  for (let rows = most; ; rows *= 2) {
    const read = walk.all({ none: -1, end, except: except ?? -1, most: rows }) as number[];
    walks.set(store, { transactionNo: store.transactionNo, rows: walkedRows(store) + read.length });
    const members = [...new Set(read)];
    if (read.length < rows || members.length >= most) return members.slice(0, most);
  }
}

/** The latest write of a connection that walked along chains, with the number of rows that its walks have read. */
const walks = new WeakMap<Store, { readonly transactionNo: number | undefined; readonly rows: number }>();

/** Returns the number of rows that the present write has read on walks along chains. */
export function walkedRows(store: Store): number {
  const walked = walks.get(store);
  return walked !== undefined && walked.transactionNo === store.transactionNo ? walked.rows : 0;
}

/** Lists at most `most` members of a chain without `older` and the memories that it superseded. */
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
