import type { SharedIndexOptions } from '../../src/engine/adapters/bit-index/bit-index.ts';
import { createSharedVectors, type SharedVectors } from '../../src/engine/adapters/bit-index/shared-vectors.ts';
import { openVectorIndex, type VectorIndexChoice } from '../../src/engine/adapters/vector-index/open-vector-index.ts';
import { createIndexMemory, type IndexMemory } from '../../src/engine/adapters/following-index/index-memory.ts';
import type { VectorIndex } from '../../src/engine/ports.ts';
import type { Store } from '../../src/engine/store/open-store.ts';
import { encodeVector } from '../../src/engine/store/vector-encoding.ts';
import { ROLES, type VectorSpace } from '../../src/engine/store/vectors.ts';

/**
 * Opens a vector index that stores what it indexes: a vector that is added or removed is also written to the table
 * `vectors` or deleted there, in the same transaction.
 */
export function openStoredIndex(
  store: Store,
  space: VectorSpace,
  {
    choice = 'auto',
    indexMemory = createIndexMemory(),
    shared,
  }: { choice?: VectorIndexChoice; indexMemory?: IndexMemory; shared?: SharedIndexOptions | undefined } = {},
): VectorIndex {
  const index = openVectorIndex(store, space, { choice, indexMemory, shared });
  return {
    ...index,
    add(vectors) {
      index.add(vectors);
      const insertMemory = store.prepare(
        `INSERT OR IGNORE INTO memories (seq, id, user_no, event_time, event_time_given, created_at, updated_at, content_hash, content)
         VALUES (?, ?, ?, 1, 0, 1, 1, x'00', 'text')`,
      );
      // A number in place of the window: some give a memory several vectors of a kind.
      const insertVector = store.prepare(
        `INSERT INTO vectors (vector_no, memory, user_no, model_no, window_no, role, embedding) VALUES (?, ?, ?, ?, ?, ?, ?)`,
      );
      for (const { vectorNo, memory: memoryNo, userNo, role, embedding } of vectors) {
        insertMemory.run(memoryNo, crypto.randomUUID(), userNo);
        const stored = encodeVector(embedding, space.encoding);
        insertVector.run(vectorNo, memoryNo, userNo, space.modelNo, vectorNo, ROLES.indexOf(role), stored);
      }
    },
    remove(vectorNos) {
      const remove = store.prepare('DELETE FROM vectors WHERE vector_no = ?');
      for (const vectorNo of vectorNos) remove.run(vectorNo);
      index.remove(vectorNos);
    },
    clear() {
      store.prepare('DELETE FROM vectors WHERE model_no = ?').run(space.modelNo);
      index.clear();
    },
  };
}

/**
 * Returns a function that gives the indexes of one file and model a common memory, as the threads of a process have it.
 * @param kernels which implementation of the search all of them use
 */
export function shareVectors(kernels: 'wasm' | 'js'): (store: Store, space: VectorSpace) => SharedIndexOptions {
  const made = new Map<string, { readonly vectors: SharedVectors; readers: number }>();
  return (store, space) => {
    const key = `${store.path} ${space.modelNo}`;
    if (!made.has(key)) made.set(key, { vectors: createSharedVectors({ space, kernels, maxReaders: 4 }), readers: 0 });
    const sharing = made.get(key)!;
    return { vectors: sharing.vectors, reader: { number: sharing.readers++, acceptsLaterRemovals: false } };
  };
}
