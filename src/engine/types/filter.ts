import type { Json, MemoryStatus, Sector } from './memory.ts';

/**
 * A condition on one key of the metadata: a value that it equals, or operators that must all hold. Equal values have
 * the same type, and null also equals a missing key. `$gt` and its like compare numbers with numbers and texts with
 * texts only. `$in` passes a value that equals one of its list, and `$ne` and `$nin` also pass a missing key.
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
 * Selects memories. Fields are joined by AND, and the values of one list by OR, except for tags. A field that is left
 * out asks for nothing, except for statuses, and an empty list matches nothing, except for tags. A range of times
 * includes its start and excludes its end; times are Unix milliseconds.
 */
export interface MemoryFilter {
  readonly userIds?: readonly string[] | undefined;
  readonly sessionIds?: readonly string[] | undefined;
  /** Selects memories with one of these sectors, primary or additional. */
  readonly sectors?: readonly Sector[] | undefined;
  readonly types?: readonly string[] | undefined;
  /** Selects memories that have all of these tags; an empty list asks for nothing. */
  readonly tags?: readonly string[] | undefined;
  /** Selects memories with one of these statuses; only active ones if left out. */
  readonly statuses?: readonly MemoryStatus[] | undefined;
  readonly externalIds?: readonly string[] | undefined;
  /** Selects what these keys wrote, named by their public ids. */
  readonly writtenBy?: readonly string[] | undefined;
  /** Selects the root memories and chunks of these documents. */
  readonly documentIds?: readonly string[] | undefined;
  /** Selects memories that mention one of these files, as paths that were stated. */
  readonly files?: readonly string[] | undefined;
  /** Selects memories whose salience is at least this at the time of the query, 0..1. */
  readonly minSalience?: number | undefined;
  readonly eventFrom?: number | undefined;
  readonly eventTo?: number | undefined;
  readonly createdFrom?: number | undefined;
  readonly createdTo?: number | undefined;
  /**
   * Tags that a memory must have now, whatever time the query looks at: the bounds of a caller. No remedy lifts them.
   */
  readonly withinTags?: readonly string[] | undefined;
  /** Conditions by key of the metadata's top level, taken literally; at most `MAX_METADATA_CONDITIONS`. */
  readonly metadata?: { readonly [path: string]: MetadataCondition } | undefined;
  /** Selects items of this namespace and of those below it; '' for items in any namespace. */
  readonly namespace?: string | undefined;
  /** Conditions by key of an item's value, as those on metadata. They look at the value of the present. */
  readonly value?: { readonly [key: string]: MetadataCondition } | undefined;
}

/**
 * Selects what a delete erases, whatever its status and expiry. It has only the fields that a document has before it is
 * read.
 */
export type ErasureFilter = Pick<
  MemoryFilter,
  'userIds' | 'sessionIds' | 'tags' | 'files' | 'writtenBy' | 'withinTags'
>;
