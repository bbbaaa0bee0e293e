import type { EdgeType } from './links.ts';
import type { MemoryStatus, Sector } from './memory.ts';

/** Most memories and names of a graph. */
export const MAX_GRAPH_NODES = 2_000;

/** Most bytes that the memories and names of a graph take as JSON, and most bytes of its lines of each kind. */
export const MAX_GRAPH_BYTES = { nodes: 1024 * 1024, lines: 512 * 1024 } as const;

/** A memory in a graph, without its text. Times are Unix ms. */
export interface MemoryNode {
  readonly id: string;
  /** One line about the text, as stated, else derived from its beginning. */
  readonly gist: string;
  readonly sector: Sector;
  readonly salience: number;
  readonly status: MemoryStatus;
  readonly eventTime: number;
  readonly createdAt: number;
  /** Steps from the memory in the middle; 0 for that memory, and for all memories of a user's graph. */
  readonly hop: number;
}

/** A name in a graph. */
export interface EntityNode {
  /** The folded name, unique among the names of a user. */
  readonly name: string;
  /** Spelling in one of the memories of the graph. */
  readonly label: string;
  readonly type: string;
  readonly hop: number;
}

/** Memories, names and what joins them; both ends of a line are in the graph. */
export interface MemoryGraph {
  readonly memories: readonly MemoryNode[];
  readonly entities: readonly EntityNode[];
  /** Links between memories, strongest first. */
  readonly links: readonly {
    readonly src: string;
    readonly dst: string;
    readonly type: EdgeType;
    readonly weight: number;
    /** Cosine similarity; null for a link that somebody stated. */
    readonly similarity: number | null;
  }[];
  /** Which memory, by id, mentions which name. */
  readonly mentions: readonly { readonly memory: string; readonly entity: string }[];
  /** Relations between names, as memories state them. */
  readonly relations: readonly { readonly src: string; readonly dst: string; readonly relation: string }[];
  /** Whether a bound left something out. */
  readonly isCut: boolean;
}
