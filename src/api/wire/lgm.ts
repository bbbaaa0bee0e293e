/** Translation between memories and what OpenMemory's routes for LangGraph say of them. */
import { type AddOutcome, type Memory, type NewMemory, newMemory, type Sector, shownGist } from '../../engine/index.ts';
import type { LgmItem, LgmMemoryItem } from '../schemas/lgm.ts';

/** Sectors of the nodes that OpenMemory names; any other node's memories are semantic. */
export const NODE_SECTORS = {
  observe: 'episodic',
  plan: 'semantic',
  reflect: 'reflective',
  act: 'procedural',
  emotion: 'emotional',
} as const satisfies Readonly<Record<string, Sector>>;

/** Where the memories of a graph are. */
export interface GraphPlace {
  readonly namespace: string;
  /** Run or thread of the graph; '' for none, or for all of them. */
  readonly graphId: string;
  /** Owner of the memories; null for nobody in particular, and in a filter for all users. */
  readonly userId: string | null;
}

/** What a node stores. */
export interface NodeMemory extends GraphPlace {
  readonly node: string;
  readonly content: string;
  readonly tags: readonly string[];
  readonly metadata: NewMemory['metadata'];
}

export function sectorOfNode(node: string): Sector {
  return Object.hasOwn(NODE_SECTORS, node) ? NODE_SECTORS[node as keyof typeof NODE_SECTORS] : 'semantic';
}

/** Tags by which the memories of a node in a namespace are found; without a node, those of the whole namespace. */
export function tagsOf(namespace: string, node?: string): string[] {
  return [...(node === undefined ? [] : [`lgm:node:${node}`]), `lgm:namespace:${namespace}`];
}

/**
 * Makes the memory that a node stores. Its external id is new, so that what two nodes say in the same words, or one
 * node twice, stays apart.
 * @param externalId an id that nothing has
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

/** Translates a memory that a node stored; a hit of a query has a score and a path, too. */
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
    ...(withMetadata ? { metadata: memory.metadata } : {}),
  };
}

/** Makes a text of memories, a line for each: its node in brackets and its gist. */
export function excerptsOf(memories: readonly Memory[]): string {
  return memories.map((memory) => `- [${lgmOf(memory).node}] ${shownGist(memory)}`).join('\n');
}

interface LgmMetadata {
  readonly node: string;
  readonly namespace: string;
  readonly graph_id: string | null;
}

/** Reads what `toMemoryOfNode` noted; a memory that was stored in another way, or changed since, has no node. */
function lgmOf({ metadata }: Pick<Memory, 'metadata'>): LgmMetadata {
  const noted = metadata['lgm'] as Partial<LgmMetadata> | null | undefined;
  const said = typeof noted === 'object' && noted !== null ? noted : {};
  return {
    node: typeof said.node === 'string' ? said.node : '',
    namespace: typeof said.namespace === 'string' ? said.namespace : '',
    graph_id: typeof said.graph_id === 'string' ? said.graph_id : null,
  };
}
