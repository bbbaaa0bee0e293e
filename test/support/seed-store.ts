import { v7 as uuidv7 } from 'uuid';
import { initialSalience, sectorBits } from '../../src/engine/dynamics.ts';
import type { Embedder, VectorIndex } from '../../src/engine/ports.ts';
import { modelNumber } from '../../src/engine/store/embeddings.ts';
import { ensureUser, insertMemory } from '../../src/engine/store/memories.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import { contextOf } from '../../src/engine/store/session-context.ts';
import { insertVector } from '../../src/engine/store/vectors.ts';
import { putText } from '../../src/engine/store/word-index/memory-text.ts';
import { contentHash } from '../../src/engine/text/content-hash.ts';
import type { EdgeType, MemoryStatus, NewMemory, Sector } from '../../src/engine/types.ts';
import { newMemory } from './new-memory.ts';

/** A memory in its state after all background work. Fields that are left out have the values of a plain add. */
export interface SeedMemory extends Partial<NewMemory> {
  readonly content: string;
  readonly status?: MemoryStatus;
  /** Sectors of the memory, the primary one first. */
  readonly sectors?: readonly Sector[];
  readonly salience?: number;
  readonly createdAt?: number;
  readonly lastSeenAt?: number;
}

export interface Seeded {
  readonly memoryNo: number;
  readonly id: string;
}

export interface SeedVectors {
  readonly embedder: Embedder;
  readonly index: VectorIndex | null;
}

/**
 * Writes memories in their final state without running jobs: rows, words with their context, and one vector each if an
 * embedder is given. The memories of a session must come in their order, since the context of a memory is made of the
 * earlier ones.
 */
export async function seedMemories(
  store: Store,
  memories: readonly SeedMemory[],
  now: number,
  vectors?: SeedVectors,
): Promise<Seeded[]> {
  const embeddings = await vectors?.embedder.embed(
    memories.map(({ content }) => content),
    { purpose: 'document' },
  );
  return store.write(() =>
    memories.map((memory, place) => {
      const seeded = seedMemory(store, memory, now);
      const embedding = embeddings?.[place];
      if (vectors === undefined || embedding === undefined) return seeded;
      const { dimensions, encoding } = vectors.embedder;
      const space = { modelNo: modelNumber(store, vectors.embedder, now), dimensions, encoding };
      const userNo = ensureUser(store, memory.userId ?? '');
      const vector = {
        memory: seeded.memoryNo,
        userNo,
        windowNo: 0,
        role: 'whole',
        embedding,
        textHash: null,
      } as const;
      vectors.index?.add([{ ...vector, vectorNo: insertVector(store, space, vector) }]);
      return seeded;
    }),
  );
}

function seedMemory(store: Store, memory: SeedMemory, now: number): Seeded {
  const id = uuidv7();
  const createdAt = memory.createdAt ?? now;
  const complete = newMemory(memory);
  const userNo = ensureUser(store, complete.userId);
  const memoryNo = insertMemory(store, {
    id,
    userNo,
    memory: complete,
    contentHash: contentHash(complete.content),
    now: createdAt,
  });
  const sectors = memory.sectors ?? ['semantic'];
  const salience = memory.salience ?? initialSalience(complete.importance, sectors.length - 1);
  store
    .prepare(
      `INSERT INTO memory_dynamics (seq, state, status, primary_sector, sectors, salience, salience_at, salience_now,
         decay_lambda, strength_at, last_seen_at) VALUES (?, 'ready', ?, ?, ?, ?, ?, ?, 0.005, ?, ?)`,
    )
    .run(
      memoryNo,
      memory.status ?? 'active',
      sectors[0],
      sectorBits(sectors),
      salience,
      createdAt,
      salience,
      createdAt,
      memory.lastSeenAt ?? createdAt,
    );
  const { sessionId, eventTime } = complete;
  const place = { memoryNo, userNo, sessionId, eventTime: eventTime ?? createdAt, isChunk: false };
  putText(store, { ...complete, memoryNo, entities: complete.entities ?? [], context: contextOf(store, place) });
  return { memoryNo, id };
}

export function seedEdge(
  store: Store,
  edge: { readonly src: number; readonly dst: number; readonly weight: number; readonly type?: EdgeType },
): void {
  store
    .prepare(
      `INSERT INTO edges (src, dst, type, similarity, weight, automatic, created_at, updated_at) VALUES (?, ?, ?, NULL, ?, 0, 0, 0)`,
    )
    .run(edge.src, edge.dst, edge.type ?? 'waypoint', edge.weight);
}
