import type { Store } from './open-store.ts';

/**
 * Memories that supersede each other, however long the chain, share a number under which its live end is kept: a query finds the end
 * of any chain in one step. What is said first joins onto what is said later, so that a chain that grows costs the same every time.
 */

export interface ChainEnd {
  readonly seq: number;
  readonly liveEnd: number;
  /** Whether the live end holds already; one that starts later may have another of its chain hold until then. */
  readonly isHolding: boolean;
}

/** Of those of these memories that are in a chain. `now` is Unix ms. */
export function listChainEnds(store: Store, seqs: readonly number[], now: number): ChainEnd[] {
  const rows = store
    .prepare(
      `SELECT d.seq, c.live_end AS liveEnd, coalesce(n.valid_from, n.event_time) <= ? AS isHolding
       FROM json_each(?) AS wanted CROSS JOIN memory_dynamics d ON d.seq = wanted.value
         CROSS JOIN chains c ON c.chain_no = d.chain_no CROSS JOIN memories n ON n.seq = c.live_end`,
    )
    .all(now, JSON.stringify(seqs)) as { seq: number; liveEnd: number; isHolding: number }[];
  return rows.map((row) => ({ ...row, isHolding: row.isHolding === 1 }));
}

/** Call when `newer` has come to supersede `older`, which nothing superseded until then. */
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

/** Call when nothing supersedes `older` any more. */
export function splitChain(store: Store, older: number): void {
  const members = listChain(store, older);
  setChain(store, members, members.length === 1 ? null : insertChain(store, older));
}

/**
 * Call after the live end of a chain was erased.
 * @param freed what it superseded and what stays
 */
export function shortenChain(store: Store, chainNo: number, freed: readonly number[]): void {
  const [only, ...more] = freed;
  if (only === undefined) return deleteChain(store, chainNo);
  if (more.length === 0) return moveEnd(store, chainNo, only);
  for (const older of freed) splitChain(store, older);
  deleteChain(store, chainNo);
}

/** The chains that end in one of these memories, by its number. */
export function listChainsEndingIn(store: Store, seqs: readonly number[]): Map<number, number> {
  const rows = store
    .prepare(
      `SELECT d.seq, c.chain_no AS chainNo FROM json_each(?) AS wanted CROSS JOIN memory_dynamics d ON d.seq = wanted.value
         CROSS JOIN chains c ON c.chain_no = d.chain_no WHERE c.live_end = d.seq`,
    )
    .all(JSON.stringify(seqs)) as { seq: number; chainNo: number }[];
  return new Map(rows.map(({ seq, chainNo }) => [seq, chainNo]));
}

export function chainOf(store: Store, seq: number): number | null {
  const row = store.prepare('SELECT chain_no AS chainNo FROM memory_dynamics WHERE seq = ?').get(seq) as
    { chainNo: number | null } | undefined;
  return row?.chainNo ?? null;
}

/** The memory and all that led to it. */
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

function setChain(store: Store, seqs: readonly number[], chainNo: number | null): void {
  store
    .prepare('UPDATE memory_dynamics SET chain_no = ? WHERE seq IN (SELECT value FROM json_each(?))')
    .run(chainNo, JSON.stringify(seqs));
}
