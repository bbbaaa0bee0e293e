import type { Json, MemoryStatus, Sector } from './memory.ts';

/**
 * A condition on one key of the metadata: a JSON value that the key's value must equal, or an object of operators that
 * must all hold. Equal values have the same type; null also equals a missing key. `$gt`, `$gte`, `$lt` and `$lte`
 * compare numbers with numbers and texts with texts, and fail for any other pair. `$in` passes a value that equals one
 * of its list; `$ne` and `$nin` also pass a missing key.
 */
export type MetadataCondition =
  | Json
  | {
      readonly $eq?: Json;
      readonly $ne?: Json;
      readonly $gt?: number | string;
      readonly $gte?: number | string;
      readonly $lt?: number | string;
      readonly $lte?: number | string;
      readonly $in?: readonly Json[];
      readonly $nin?: readonly Json[];
      readonly $exists?: boolean;
    };

/**
 * Selects memories. A memory must meet every field that is given; a field with a list is met by one of its values, but
 * `tags` by all of them. A field that is left out excludes nothing, except that only active memories pass without
 * `statuses`. An empty list matches no memory, except that empty `tags` exclude nothing. A range of times includes its
 * start and excludes its end; times are Unix ms.
 */
export interface MemoryFilter {
  readonly userIds?: readonly string[] | undefined;
  readonly sessionIds?: readonly string[] | undefined;
  /** Selects memories that have one of these sectors, as their primary or as an additional one. */
  readonly sectors?: readonly Sector[] | undefined;
  readonly types?: readonly string[] | undefined;
  /** Selects memories that have all of these tags; an empty list excludes nothing. */
  readonly tags?: readonly string[] | undefined;
  /** Selects memories with one of these statuses; only active ones if left out. */
  readonly statuses?: readonly MemoryStatus[] | undefined;
  readonly externalIds?: readonly string[] | undefined;
  /** Selects memories that were added by one of these keys (public ids). */
  readonly writtenBy?: readonly string[] | undefined;
  /** Selects the root memories and the chunks of these documents, as far as queries find them. */
  readonly documentIds?: readonly string[] | undefined;
  /** Selects memories for which one of these file paths was stated. */
  readonly files?: readonly string[] | undefined;
  /** Selects memories whose salience, decayed to the time of the query, is at least this, 0..1. */
  readonly minSalience?: number | undefined;
  readonly eventFrom?: number | undefined;
  readonly eventTo?: number | undefined;
  readonly createdFrom?: number | undefined;
  readonly createdTo?: number | undefined;
  /**
   * Tags that a memory must have at present, and with `asOf.recorded` must have had at that time, too. The caller's key
   * is bound to them and sees nothing else, so `explain` proposes no change of them.
   */
  readonly withinTags?: readonly string[] | undefined;
  /**
   * Conditions by key of the metadata's top level; a dot in a key has no special meaning. At most 32 operators in all
   * (`MAX_METADATA_CONDITIONS`).
   */
  readonly metadata?: { readonly [path: string]: MetadataCondition } | undefined;
  /**
   * Selects items of this namespace and of all namespaces below it; '' selects items of every namespace, but not those
   * in none.
   */
  readonly namespace?: string | undefined;
  /**
   * Conditions by top-level key of an item's value, as in `metadata`. They apply to the present value, even if the
   * query is about an earlier time.
   */
  readonly value?: { readonly [key: string]: MetadataCondition } | undefined;
}

/**
 * Selects the memories and documents that a delete erases, whatever their status and expiry. It has only fields that a
 * document has before it is read.
 */
export type ErasureFilter = Pick<
  MemoryFilter,
  'userIds' | 'sessionIds' | 'tags' | 'files' | 'writtenBy' | 'withinTags'
>;
