/**
 * Stores the correction of a tenant's sector classifier in `store_info`. It is learned from the sectors (kinds of
 * memory) that callers stated.
 */

import { SECTORS, type Sector } from '../types.ts';
import type { Store } from './open-store.ts';
import { deleteInfo, findInfo, putInfo } from './store-info.ts';
import { parseStored } from './stored-json.ts';

/**
 * Key of the entry in `store_info` that holds the correction: a list of pairs of a feature's number and its weights, as
 * JSON.
 */
const CORRECTION = 'sector_correction';
/** Number of the newest memory numbers that are searched for stated sectors. */
const LOOKED_AT = 100_000;
/**
 * Number of memory numbers that one statement searches: it parses some 2,000 metadata of up to 16 KiB, which takes a
 * tenth of a second.
 */
const SLICE = 2_000;
/** Greatest number of bytes of a character in UTF-8. */
const CHARACTER_BYTES = 4;

/**
 * Number of characters (code points) that are read of the beginning of a long text, and of its end: no fewer than the
 * classifier examines.
 */
const READ_CHARACTERS = 2_000;

/** A memory whose `metadata.sector` states a sector. */
interface StatedSector {
  readonly memoryNo: number;
  readonly title: string;
  readonly content: string;
  readonly sector: Sector;
}

/**
 * Lists the newest memories whose `metadata.sector` states a sector, the oldest of them first: at most `limit`, among
 * the newest 100,000 memory numbers. Chunks of documents are left out, since all chunks repeat what was stated once;
 * reflections (`metadata.reflection_job`), too, while they have the sector that they were stored with, which nobody
 * stated. Of a text of more than 4,000 characters, the result has the first and the last 2,000 on lines of their own.
 * @param open returns the store; it is called again after each pause
 * @param pause lets others have the thread
 */
export async function listStatedSectors(
  open: () => Store,
  limit: number,
  pause: () => Promise<void>,
): Promise<readonly StatedSector[]> {
  const newest = open().prepare('SELECT coalesce(max(seq), 0) FROM memories').pluck().get() as number;
  const stated: StatedSector[] = [];
  const last = Math.max(0, newest - LOOKED_AT);
  for (let upTo = newest; upTo > last && stated.length < limit; upTo -= SLICE) {
    if (upTo < newest) await pause();
    stated.push(...newestStated(open(), { above: Math.max(last, upTo - SLICE), upTo, limit: limit - stated.length }));
  }
  return stated.reverse();
}

/** Lists at most `limit` of these memories whose numbers are over `above` and at most `upTo`, the newest first. */
function newestStated(
  store: Store,
  { above, upTo, limit }: { readonly above: number; readonly upTo: number; readonly limit: number },
): StatedSector[] {
  const [whole, bytes] = [2 * READ_CHARACTERS, 2 * READ_CHARACTERS * CHARACTER_BYTES];
  return store
    .prepare(
      // SQLite's length ends at U+0000, so that the bytes count, too.
      `SELECT m.seq AS memoryNo, m.title, m.metadata ->> '$.sector' AS sector,
         CASE WHEN length(m.content) <= ${whole} AND octet_length(m.content) <= ${bytes} THEN m.content
           ELSE substr(m.content, 1, ${READ_CHARACTERS}) || char(10)
             || substr(m.content, length(m.content) - ${READ_CHARACTERS - 1}) END AS content
       FROM memories m JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.seq > ? AND m.seq <= ? AND instr(m.metadata, '"sector"') > 0
         AND d.generation_no IS NULL AND m.metadata ->> '$.sector' IN (SELECT value FROM json_each(?))
         AND (m.metadata ->> '$.sector' <> 'reflective' OR m.metadata ->> '$.reflection_job' IS NULL)
       ORDER BY m.seq DESC LIMIT ?`,
    )
    .all(above, upTo, JSON.stringify(SECTORS), limit) as StatedSector[];
}

/** Tells whether none of these memories was erased. */
export function areStored(store: Store, memoryNos: readonly number[]): boolean {
  const found = store
    .prepare('SELECT count(*) FROM memories WHERE seq IN (SELECT value FROM json_each(?))')
    .pluck()
    .get(JSON.stringify(memoryNos)) as number;
  return found === memoryNos.length;
}

/**
 * Stores a correction (weights by the number of the feature) in place of the one before; null deletes it. Call inside a
 * write.
 */
export function putSectorCorrection(store: Store, correction: ReadonlyMap<number, readonly number[]> | null): void {
  if (correction === null) deleteInfo(store, CORRECTION);
  else putInfo(store, CORRECTION, JSON.stringify([...correction]));
}

const parsed = new WeakMap<Store, { readonly text: string; readonly correction: Correction }>();
type Correction = ReadonlyMap<number, readonly number[]>;

/** Reads the correction; null if none was learned. It is parsed once for each connection. */
export function readSectorCorrection(store: Store): Correction | null {
  const text = findInfo(store, CORRECTION);
  if (text === undefined) return null;
  const known = parsed.get(store);
  if (known?.text === text) return known.correction;
  const correction = new Map(parseStored(text) as [number, number[]][]);
  parsed.set(store, { text, correction });
  return correction;
}
