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
 * Names the type of a link between memories, read as "src type dst". A `waypoint` leads to a near memory; Cairn makes
 * at most one from each memory. `supersedes` replaces the older memory `dst`, `derived_from` leads to a source, and
 * `contradicts` has no direction.
 */
export type EdgeType = (typeof EDGE_TYPES)[number];

/** A link as one of its two memories sees it. */
export interface Link {
  /** Id of the memory at the other end. */
  readonly id: string;
  readonly type: EdgeType;
  /** `out` if the memory that was asked about is the link's source, else `in`. */
  readonly direction: 'out' | 'in';
  /** Cosine similarity of the two memories when the link was made; null if nobody measured it. */
  readonly similarity: number | null;
  /** Weight of the link, 0..1. */
  readonly weight: number;
  /** Whether Cairn or a language model made the link, and no caller has stated it since. */
  readonly automatic: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Public id of the key that stated the link last; null if that is not known or nobody stated it. */
  readonly writtenBy: string | null;
}

/** Most proposals that are listed at once. */
export const MAX_PROPOSALS = 200;

/** A contradiction that nobody has stated, for somebody to decide by a statement or to dismiss by removing the link. */
export interface Proposal {
  /** The memory that was added first. */
  readonly earlier: Memory;
  readonly later: Memory;
  /** Whether a language model concluded it, or the form of the two texts says so. */
  readonly by: 'model' | 'form';
  /** Cosine similarity of the two memories; null where only their form was compared. */
  readonly similarity: number | null;
  /** Time of the proposal, Unix ms. */
  readonly createdAt: number;
}

/** Most pairs of near duplicates that are listed at once. */
export const MAX_NEAR_DUPLICATES = 200;

/** Two active memories of one user that say nearly the same, by their waypoint. */
export interface NearDuplicates {
  readonly items: readonly {
    /** The memory that was added first. */
    readonly earlier: Memory;
    readonly later: Memory;
    /** Cosine similarity as measured when the waypoint was made. */
    readonly similarity: number;
  }[];
  /** Whether the work or the text that one request may have ended before all pairs were listed. */
  readonly isCut: boolean;
}

/** A link to state, from the memory with the id `src` to the memory with the id `dst`. */
export interface NewLink {
  readonly src: string;
  readonly dst: string;
  readonly type: EdgeType;
  /** Weight of the link, 0..1. If left out, a link that is there keeps its weight, and a new one gets its type's. */
  readonly weight?: number | undefined;
}
