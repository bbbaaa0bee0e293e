import type { SqliteStore } from '../../src/engine/store/open-store.ts';
import { STORED_BYTES } from '../../src/engine/store/vector-parts.ts';

/**
 * Changes a file to the form of version 0.1.0: float32 vectors are stored in their rows, and the cache has copies of
 * them.
 */
export function storeAsBefore(store: SqliteStore): void {
  store.write(() => {
    store.db.exec(`
      UPDATE vectors AS v SET embedding = ${STORED_BYTES} WHERE v.precision = 1;
      UPDATE vectors SET precision = 0;
      DELETE FROM vector_parts;
      INSERT OR IGNORE INTO cached_copies (model_no, text_hash, embedding, created_at)
        SELECT model_no, text_hash, embedding, 0 FROM vectors WHERE text_hash <> '';
      DELETE FROM store_info WHERE key LIKE 'vectors_in_%';`);
  });
}
