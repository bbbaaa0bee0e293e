/**
 * Stores for each model a base: how similar unrelated texts are in its vector space, as `baseOfCosines` computes it.
 * The threshold of waypoints depends on it. A base is measured once and not updated, so that links stay comparable
 * until the model changes.
 */

import { UNFINISHED } from './jobs.ts';
import type { Store } from './open-store.ts';
import { findInfo, putInfo } from './store-info.ts';

/** Key of the entry in `store_info` that holds the bases by model number, as JSON. */
const LINK_BASES = 'link_bases';

type LinkBases = Readonly<Record<string, number>>;

function readLinkBases(store: Store): LinkBases {
  return JSON.parse(findInfo(store, LINK_BASES) ?? '{}') as LinkBases;
}

/**
 * Finds the base of a model (see `baseOfCosines`): how similar unrelated texts are in its space, 0..0.9; undefined
 * until it is measured.
 */
export function findLinkBase(store: Store, modelNo: number): number | undefined {
  return readLinkBases(store)[modelNo];
}

/** Stores the base of a model; null deletes it. Call inside a write. */
export function putLinkBase(store: Store, modelNo: number, base: number | null): void {
  const bases = new Map(Object.entries(readLinkBases(store)));
  if (base === null) bases.delete(String(modelNo));
  else bases.set(String(modelNo), base);
  putInfo(store, LINK_BASES, JSON.stringify(Object.fromEntries(bases)));
}

/** A memory that has vectors of a model, by number. */
export interface EmbeddedMemory {
  readonly memory: number;
  readonly userNo: number;
  readonly sessionId: string;
}

/**
 * Lists the memories that have vectors of a model, lowest numbers first: at most `limit`, among the first `within`
 * memories of the file.
 */
export function listOldestEmbedded(
  store: Store,
  modelNo: number,
  { limit, within }: { readonly limit: number; readonly within: number },
): EmbeddedMemory[] {
  return store
    .prepare(
      `SELECT m.seq AS memory, m.user_no AS userNo, m.session_id AS sessionId
       FROM (SELECT seq FROM memory_dynamics ORDER BY seq LIMIT ?) o CROSS JOIN memories m ON m.seq = o.seq
       WHERE EXISTS (SELECT 1 FROM vectors v WHERE v.memory = m.seq AND v.model_no = ? AND v.sector = '')
       ORDER BY m.seq LIMIT ?`,
    )
    .all(within, modelNo, limit) as EmbeddedMemory[];
}

/**
 * Tells whether a memory with a number up to `upTo` (included) that is not `ready` lacks vectors of a model and has an
 * unfinished job that will make them.
 */
export function waitsForVectors(store: Store, modelNo: number, upTo: number): boolean {
  return (
    store
      .prepare(
        `SELECT 1 FROM memory_dynamics d INDEXED BY memory_dynamics_unready WHERE d.state <> 'ready' AND d.seq <= ?
           AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.memory = d.seq AND v.model_no = ? AND v.sector = '')
           AND EXISTS (SELECT 1 FROM jobs j
             WHERE j.memory = d.seq AND j.state IN ${UNFINISHED} AND j.step NOT IN ('link', 'reason'))
         LIMIT 1`,
      )
      .get(upTo, modelNo) !== undefined
  );
}
