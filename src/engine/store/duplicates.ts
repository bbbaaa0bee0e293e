import { contentHash } from '../text/content-hash.ts';
import type { Sector, MemoryState, MemoryStatus, NewMemory } from '../types.ts';
import type { Store } from './open-store.ts';

/** A stored memory of which a new one may be a duplicate. */
export interface Twin {
  readonly memoryNo: number;
  readonly id: string;
  readonly content: string;
  /** Tags as a JSON list. */
  readonly tags: string;
  readonly primary_sector: Sector;
  /**
   * Sectors (kinds) of the memory as bits: bit i stands for SECTORS[i], the primary sector included; 0 until the memory
   * is classified.
   */
  readonly sectors: number;
  readonly state: MemoryState;
  readonly status: MemoryStatus;
}

const TWIN = 'SELECT m.seq AS memoryNo, m.id, m.content, m.tags, d.primary_sector, d.sectors, d.state, d.status';

/**
 * Returns the first 8 of the 16 bytes of a text's hash, which are what a row stores. They find possible duplicates,
 * whose texts are then compared by the whole hash.
 * @param contentHash result of `contentHash`
 */
export function keptHash(contentHash: Buffer): Buffer {
  return contentHash.subarray(0, 8);
}

/**
 * Greatest number of memories with equal stored hashes whose texts are compared. Two different texts have equal stored
 * hashes by chance once in 10^19, so that more such memories can only be made on purpose.
 */
const TWINS_COMPARED = 8;

/**
 * Greatest number of memories with an equal hash in the session that are looked at, the newest ones: a text may be kept
 * any number of times, and each add of it would go through all of them.
 */
const LOOKED_AT = 500;

const selectDuplicates = (condition: string, order = '') => `${TWIN} FROM (
    SELECT seq FROM memories INDEXED BY memories_by_hash
    WHERE content_hash = ? AND user_no = ? AND session_id = ? ORDER BY seq DESC LIMIT ${LOOKED_AT}) AS newest
  CROSS JOIN memories m ON m.seq = newest.seq CROSS JOIN memory_dynamics d ON d.seq = m.seq
  WHERE m.content_hash = ? AND m.user_no = ? AND m.session_id = ? AND m.event_time_given = ?
    AND (m.event_time_given = 0 OR m.event_time = ?)
    AND m.expires_at IS ? AND m.valid_from IS ? AND m.valid_to IS ?
    AND d.status NOT IN ('superseded', 'contradicted') AND (m.expires_at IS NULL OR m.expires_at > ?)
    AND d.generation_no IS NULL AND NOT EXISTS (SELECT 1 FROM items i WHERE i.memory = m.seq)
    ${condition}${order} LIMIT ${TWINS_COMPARED}`;

const IS_NOT_DERIVED = `AND NOT EXISTS (
      SELECT 1 FROM edges e WHERE e.src = m.seq AND e.type = 'derived_from' AND e.automatic = 1)`;
/** Order of the newest memories for PostgreSQL, as `outerOrder` says. */
const NEWEST_FIRST = ' ORDER BY newest.seq DESC';

// The text of a statement is made once: joining and hashing it at each call would take as long as to run it.
const IN_FILES = { alone: selectDuplicates(IS_NOT_DERIVED), withDerived: selectDuplicates('') };
const IN_POSTGRES = {
  alone: selectDuplicates(IS_NOT_DERIVED, NEWEST_FIRST),
  withDerived: selectDuplicates('', NEWEST_FIRST),
};
/** SQL by which `findDuplicate` finds memories that are not derived in PostgreSQL. */
export const SELECT_DUPLICATES = IN_POSTGRES.alone;

/**
 * SQL that selects a memory with this stored hash, user and session, from an index alone. Nearly every new text has
 * none, and this takes a third of the time of `SELECT_DUPLICATES`.
 */
const SELECT_SAME_HASH = `SELECT seq FROM memories INDEXED BY memories_by_hash
  WHERE content_hash = ? AND user_no = ? AND session_id = ? LIMIT 1`;

/** The values in which two memories must agree to be duplicates. `contentHash` is the whole hash of the text. */
export type DuplicateKey = { readonly contentHash: Buffer; readonly userNo: number } & Pick<
  NewMemory,
  'sessionId' | 'eventTime' | 'expiresAt' | 'validFrom' | 'validTo'
>;

/** Lists the parameters of `SELECT_DUPLICATES`. */
export function duplicateParameters(key: DuplicateKey, now: number): unknown[] {
  const text = [keptHash(key.contentHash), key.userNo, key.sessionId];
  return [
    // Once more for the rows themselves: so it is known which writes leave an answer as it is.
    ...text,
    ...text,
    key.eventTime === null ? 0 : 1,
    key.eventTime,
    key.expiresAt,
    key.validFrom,
    key.validTo,
    now,
  ];
}

/**
 * Finds the memory that says exactly this already: same text (by hash), user, session, event time, validity and expiry.
 * An event time that was not given equals only another that was not given. Some memories are never found: parts of a
 * document, which are erased with it; items, whose text the next put may replace; superseded, contradicted and expired
 * ones, which no query would find; memories that expire or are valid at other times, since the new add would end with
 * them; and reflections and other derived memories, which are erased with their sources. An archived memory is found.
 * Of the memories with this text in the session, the newest 500 are looked at.
 * @param options.matchesDerived whether derived memories are found, too
 * @param options.withinTags of several memories that say this, the newest with all of these tags is returned
 * @returns the newest, unless another is preferred for its tags; undefined if there is none
 */
export function findDuplicate(
  store: Store,
  key: DuplicateKey,
  {
    now,
    matchesDerived,
    withinTags,
  }: { readonly now: number; readonly matchesDerived: boolean; readonly withinTags: readonly string[] },
): Twin | undefined {
  if (store.ahead === null) {
    const found = store.prepare(SELECT_SAME_HASH).pluck();
    if (found.get(keptHash(key.contentHash), key.userNo, key.sessionId) === undefined) return undefined;
  }
  const texts = store.ahead === null ? IN_FILES : IN_POSTGRES;
  const select = store.prepare(matchesDerived ? texts.withDerived : texts.alone);
  const alike = select.all(...duplicateParameters(key, now)) as Twin[];
  const twins = alike.filter(({ content }) => contentHash(content).equals(key.contentHash));
  const isWithin = ({ tags }: Twin) => {
    const own = JSON.parse(tags) as string[];
    return withinTags.every((tag) => own.includes(tag));
  };
  return twins.find(isWithin) ?? twins[0];
}

/** The memory that has an external id. */
export interface NamedTwin extends Twin {
  /** 1 if the memory has expired and is about to be erased: then `releaseItemName` frees its external id. */
  readonly isExpired: 0 | 1;
}

/**
 * Finds the user's memory with this external id; an expired one only if no other has it. A superseded or contradicted
 * one is found, so that an add of its text again does not bring it back.
 * @returns undefined if there is none, and for the external id ''
 */
export function findByExternalId(
  store: Store,
  key: { externalId: string; userNo: number },
  now: number,
): NamedTwin | undefined {
  return store
    .prepare(
      `${TWIN}, coalesce(m.expires_at <= :now, FALSE) AS isExpired
       FROM memories m JOIN memory_dynamics d ON d.seq = m.seq
       WHERE m.external_id = :externalId AND m.external_id <> '' AND m.user_no = :userNo
       ORDER BY coalesce(m.expires_at <= :now, FALSE), m.seq LIMIT 1`,
    )
    .get({ ...key, now }) as NamedTwin | undefined;
}
