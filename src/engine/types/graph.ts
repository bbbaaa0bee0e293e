import type { EdgeType } from './links.ts';
import type { MemoryStatus, Sector } from './memory.ts';

/** Greatest number of memories and names together in a graph. */
export const MAX_GRAPH_NODES = 2_000;

/**
 * Greatest sizes of a graph as JSON, in bytes: of all memories and names together (`nodes`), and of each kind of
 * connection (`lines`: links, mentions, relations). What exceeds them is left out.
 */
export const MAX_GRAPH_BYTES = { nodes: 1024 * 1024, lines: 512 * 1024 } as const;

/** A memory in a graph, without its text. Times are Unix ms. */
export interface MemoryNode {
  readonly id: string;
  /** One line about the text: the stated gist, or else one derived from the first 1,000 characters. */
  readonly gist: string;
  readonly sector: Sector;
  readonly salience: number;
  readonly status: MemoryStatus;
  readonly eventTime: number;
  readonly createdAt: number;
  /**
   * Number of steps from the memory that was asked about: 0 for that memory, and for all memories of a user's graph.
   */
  readonly hop: number;
}

/** A name in a graph that memories mention, such as that of a person or a library. */
export interface EntityNode {
  /** Folded name, unique among the names of a user. */
  readonly name: string;
  /** Spelling of the name in one of the memories of the graph. */
  readonly label: string;
  readonly type: string;
  readonly hop: number;
}

/** Memories and names, with the connections between them. Both ends of each connection are in the graph. */
export interface MemoryGraph {
  readonly memories: readonly MemoryNode[];
  readonly entities: readonly EntityNode[];
  /** Links between the memories, by falling weight. */
  readonly links: readonly {
    readonly src: string;
    readonly dst: string;
    readonly type: EdgeType;
    readonly weight: number;
    /**
     * Cosine similarity when Cairn made the link; null if it was not measured, as for a link that Cairn did not find
     * before a caller stated it.
     */
    readonly similarity: number | null;
  }[];
  /** Mentions: `memory` is the id of a memory, `entity` the folded name that it mentions. */
  readonly mentions: readonly { readonly memory: string; readonly entity: string }[];
  /**
   * Relations between two names (`src` and `dst`, folded) that memories state; `relation` is the type, such as `uses`.
   */
  readonly relations: readonly { readonly src: string; readonly dst: string; readonly relation: string }[];
  /**
   * Whether anything was left out because of a bound on nodes, connections or bytes, or because the work budget of one
   * request ended.
   */
  readonly isCut: boolean;
}
