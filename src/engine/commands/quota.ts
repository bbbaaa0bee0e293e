import { EngineError } from '../errors.ts';
import { countMemories, lastMemory } from '../store/memory-counts.ts';
import { usedBytes } from '../store/used-bytes.ts';
import type { WriteContext } from './write-context.ts';

/**
 * The most that a tenant may store: its number of memories, chunks of documents included, and its disk space. 0 means
 * no limit.
 */
export interface Quota {
  readonly maxMemories: number;
  /** Greatest size of the pages in use of the tenant's database (MB). */
  readonly maxMb: number;
}

const MB = 1024 * 1024;

/**
 * Refuses to add memories or a document over the tenant's quota; null refuses nothing. Deletes free quota at once, as
 * free pages do not count. Memories are counted only if the highest `memoryNo`, which is never lower than their count,
 * passes the limit.
 * @param adding greatest number of memories that would be added; 0 for a change that only takes disk space
 * @throws EngineError `storage_full`, whose message names the quota, what is used and what is allowed; `unprocessable`
 *   for a quota in MB of a tenant in PostgreSQL
 */
export function refuseOverQuota({ store }: WriteContext, quota: Quota | null, adding: number): void {
  if (quota === null) return;
  const { maxMemories, maxMb } = quota;
  if (maxMb > 0 && store.words !== null) {
    throw new EngineError(
      'unprocessable',
      'quota max_mb: it is not counted in PostgreSQL (OM_DATABASE_URL); set it to 0',
    );
  }
  if (maxMb > 0 && usedBytes(store) >= maxMb * MB) {
    const usedMb = Math.ceil(usedBytes(store) / MB);
    throw overQuota(`max_mb (OM_TENANT_MAX_MB): ${usedMb} MB are used, ${maxMb} MB are allowed`);
  }
  if (maxMemories === 0 || adding === 0 || lastMemory(store) + adding <= maxMemories) return;
  const count = countMemories(store);
  if (count + adding > maxMemories) {
    throw overQuota(
      `max_memories (OM_TENANT_MAX_MEMORIES): ${count} are stored and ${adding} would be added, ` +
        `${maxMemories} are allowed`,
    );
  }
}

const overQuota = (text: string) => new EngineError('storage_full', `quota ${text}; deletes still work`);
