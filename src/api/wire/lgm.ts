/** Translates between memories and the requests and replies of OpenMemory's routes for LangGraph. */
import {
  type AddOutcome,
  jsonOf,
  type Memory,
  type NewMemory,
  newMemory,
  type Sector,
  shownGist,
} from '../../engine/index.ts';
import type { LgmItem, LgmMemoryItem } from '../schemas/lgm.ts';

/** Sector of the memories of each node that OpenMemory names; memories of other nodes are semantic. */
export const NODE_SECTORS = {
  observe: 'episodic',
  plan: 'semantic',
  reflect: 'reflective',
  act: 'procedural',
  emotion: 'emotional',
} as const satisfies Readonly<Record<string, Sector>>;

/** Namespace, graph and user of a LangGraph graph's memories. */
export interface GraphPlace {
  readonly namespace: string;
  /** Id of the graph's run or conversation; '' for none and, in a filter, for all. */
  readonly graphId: string;
  /** Owner of the memories; null for no user and, in a filter, for all users. */
  readonly userId: string | null;
}

/** A memory that a node of a graph stores. */
export interface NodeMemory extends GraphPlace {
  readonly node: string;
  readonly content: string;
  readonly tags: readonly string[];
  readonly metadata: NewMemory['metadata'];
}

/** Returns the sector of the memories that a node stores, if their metadata name none. */
export function sectorOfNode(node: string): Sector {
  return Object.hasOwn(NODE_SECTORS, node) ? NODE_SECTORS[node as keyof typeof NODE_SECTORS] : 'semantic';
}

/** Returns the tags that mark memories of a node in a namespace; without a node, only the tag of the namespace. */
export function tagsOf(namespace: string, node?: string): string[] {
  return [...(node === undefined ? [] : [`lgm:node:${node}`]), `lgm:namespace:${namespace}`];
}

/**
 * Makes the memory that a node stores. Its sector is `metadata.sector`, or else the sector of the node. Because of the
 * new external id, two memories with the same text are both stored instead of being merged.
 * @param externalId an id that no memory has yet
 * @param extra further fields for `metadata.lgm`, where the node, the namespace and the graph are noted
 */
export function toMemoryOfNode(stored: NodeMemory, externalId: string, extra: NewMemory['metadata'] = {}): NewMemory {
  const { node, namespace, graphId, userId, content, tags, metadata } = stored;
  return newMemory(content, {
    userId: userId ?? '',
    sessionId: graphId,
    tags: [...new Set([...tagsOf(namespace, node), ...tags])],
    metadata: {
      ...metadata,
      sector: metadata['sector'] ?? sectorOfNode(node),
      lgm: { node, namespace, graph_id: graphId === '' ? null : graphId, ...extra },
    },
    externalId,
  });
}

export function storedNodeItem(memory: NewMemory, outcome: Extract<AddOutcome, { kind: 'accepted' }>): LgmMemoryItem {
  const { node, namespace, graph_id: graphId } = lgmOf(memory);
  const sector = (memory.metadata['sector'] ?? 'semantic') as Sector;
  return {
    id: outcome.id,
    node,
    primary_sector: sector,
    sectors: [sector],
    namespace,
    graph_id: graphId,
    tags: memory.tags,
    chunks: 1,
    state: 'queued',
    metadata: memory.metadata,
  };
}

/** Translates a memory that a node stored. `score` and `path` are given for a match of a query. */
export function nodeItem(
  memory: Memory,
  options: { readonly withMetadata: boolean; readonly score?: number; readonly path?: readonly string[] },
): LgmItem {
  const { score, path, withMetadata } = options;
  return {
    id: memory.id,
    node: lgmOf(memory).node,
    content: memory.content,
    primary_sector: memory.primarySector,
    sectors: memory.sectors,
    tags: memory.tags,
    created_at: memory.createdAt,
    updated_at: memory.updatedAt,
    last_seen_at: memory.lastSeenAt,
    salience: memory.salience,
    decay_lambda: memory.decayLambda,
    version: memory.version,
    ...(score === undefined ? {} : { score }),
    ...(path === undefined ? {} : { path }),
    ...(withMetadata ? { metadata: jsonOf(memory, 'metadata') } : {}),
  };
}

/** Makes a text of memories, with one line for each (`excerptOf`). */
export function excerptsOf(memories: readonly Memory[]): string {
  return memories.map(excerptOf).join('\n');
}

/** Makes a line about a memory: the name of its node in brackets, and its gist (short summary). */
function excerptOf(memory: Memory): string {
  // A gist may be a slice of the text, and would keep all of the text in memory.
  return Buffer.from(`- [${lgmOf(memory).node}] ${shownGist(memory)}`).toString();
}

/** Returns what a reflection needs of a memory, without its text: its id, and a line about it. */
export function sourceOf(memory: Memory): { readonly id: string; readonly excerpt: string } {
  return { id: memory.id, excerpt: excerptOf(memory) };
}

interface LgmMetadata {
  readonly node: string;
  readonly namespace: string;
  readonly graph_id: string | null;
}

/**
 * Reads the node, namespace and graph of a memory from its metadata, where `toMemoryOfNode` wrote them. They are '' or
 * null for a memory that was stored in another way, or whose metadata was replaced since.
 */
function lgmOf({ metadata }: Pick<Memory, 'metadata'>): LgmMetadata {
  const noted = metadata['lgm'] as Partial<LgmMetadata> | null | undefined;
  const said = typeof noted === 'object' && noted !== null ? noted : {};
  return {
    node: typeof said.node === 'string' ? said.node : '',
    namespace: typeof said.namespace === 'string' ? said.namespace : '',
    graph_id: typeof said.graph_id === 'string' ? said.graph_id : null,
  };
}
