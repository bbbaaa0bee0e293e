import type { BoundOptions } from './bound-options.ts';
import type { Memory } from './memory.ts';

/** The types of links between memories; `EdgeType` says what they mean. */
export const EDGE_TYPES = [
  'waypoint',
  'mentions',
  'supports',
  'contradicts',
  'depends_on',
  'same_as',
  'supersedes',
  'derived_from',
] as const;
/**
 * Names the type of a link between memories, read as "src type dst". A `waypoint` leads to the most similar memory;
 * Cairn makes at most one from each memory. With `supersedes` the memory `src` replaces the older memory `dst`;
 * `derived_from` leads to a source; `contradicts` has no direction.
 */
export type EdgeType = (typeof EDGE_TYPES)[number];

/** A link as seen from one of its two memories. */
export interface Link {
  /** Id of the memory at the other end. */
  readonly id: string;
  readonly type: EdgeType;
  /** `out` if the memory that was asked about is the link's source, else `in`. */
  readonly direction: 'out' | 'in';
  /**
   * Cosine similarity of the two memories when the link was made; null if it was not measured, as for a link that
   * Cairn did not find before a caller stated it.
   */
  readonly similarity: number | null;
  /** Weight of the link, 0..1: the share of relevance that a query passes along it, except along `contradicts`. */
  readonly weight: number;
  /**
   * Whether Cairn or a language model made the link and no caller has stated it since. An automatic `derived_from` link
   * stays automatic.
   */
  readonly automatic: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  /**
   * Public id of the key that stated the link, or that decided the contradiction last; null if no caller stated it, or
   * if the key is not known.
   */
  readonly writtenBy: string | null;
}

/** Which pairs of memories are listed: those of which both memories have the tags `withinTags`. */
export interface PairsWanted extends BoundOptions {
  /** User whose memories they are; undefined for those of all users. */
  readonly userId?: string | undefined;
  /** Greatest number of pairs, at most 200. */
  readonly limit: number;
}

/** Greatest number of proposed contradictions in one list. */
export const MAX_PROPOSALS = 200;

/**
 * A contradiction that Cairn or a language model found and no caller has confirmed. A caller decides it by stating the
 * contradiction, or dismisses it by removing the link.
 */
export interface Proposal {
  /** The memory of the two that was added first. */
  readonly earlier: Memory;
  readonly later: Memory;
  /**
   * Whether a language model concluded the contradiction (`model`), or a rule found it in the form of the two texts
   * (`form`).
   */
  readonly by: 'model' | 'form';
  /** Cosine similarity of the two memories; null for `form`. */
  readonly similarity: number | null;
  /** Time at which it was found, Unix ms. */
  readonly createdAt: number;
}

/** Cosine similarity from which two memories count as near duplicates if a list names no other. */
export const NEAR_DUPLICATE_COSINE = 0.9;
/** Greatest number of pairs of near duplicates in one list. */
export const MAX_NEAR_DUPLICATES = 200;

/**
 * Pairs of active memories of one user that say nearly the same. They are found by the automatic links (waypoints)
 * between similar memories.
 */
export interface NearDuplicates {
  readonly items: readonly {
    /** The memory of the two that was added first. */
    readonly earlier: Memory;
    readonly later: Memory;
    /** Cosine similarity of the two memories when they were linked automatically, 0..1. */
    readonly similarity: number;
  }[];
  /**
   * Whether pairs were left out, because the work budget of one request ended or their texts are too large together (4
   * MiB).
   */
  readonly isCut: boolean;
}

/** A link to state, from the memory with the id `src` to the memory with the id `dst`. */
export interface NewLink {
  readonly src: string;
  readonly dst: string;
  readonly type: EdgeType;
  /**
   * Weight of the link, 0..1. If left out, an existing link keeps its weight, and a new one gets the default weight of
   * its type: 0.8 for `derived_from`, 0.7 for `supports` and `depends_on`, 0.6 for `waypoint`, 0.5 for `mentions`, 0.3
   * for `same_as`.
   */
  readonly weight?: number | undefined;
}

/** A link to remove: the ids of its two memories, and its type. */
export type NamedLink = Pick<NewLink, 'src' | 'dst' | 'type'>;

/** Ids of a memory and of the newer one that replaces it. */
export interface Supersession {
  readonly oldId: string;
  readonly newId: string;
}

/** Ids of two memories that contradict each other. */
export interface Contradiction {
  readonly a: string;
  readonly b: string;
  /** The id given as `a` or `b` that is right; if left out, a winner that was stated before stays. */
  readonly winner?: string | undefined;
}
