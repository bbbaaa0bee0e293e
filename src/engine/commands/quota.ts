import { EngineError } from '../errors.ts';
import { countMemories, lastMemory } from '../store/memory-counts.ts';
import { lastDocument } from '../store/documents.ts';
import type { Store } from '../store/open-store.ts';
import { failedBytes, waitingBytes } from '../store/uploads.ts';
import { usedBytes } from '../store/used-bytes.ts';
import { countWaitingDocuments } from '../store/waiting-documents.ts';
import type { WriteContext } from './write-context.ts';

/**
 * The most that a tenant may store: its number of memories, chunks of documents included, and its disk space. Each
 * number has no limit if it is 0.
 */
export interface Quota {
  readonly maxMemories: number;
  /** Greatest size of the pages in use of the tenant's database (MB). */
  readonly maxMb: number;
}

const MB = 1024 * 1024;

/**
 * Tells whether the database of a tenant has reached its quota in MB; false without such a quota, and for a tenant in
 * PostgreSQL, where bytes are not counted.
 */
export function hasReachedMb(store: Store, quota: Quota | null): boolean {
  return quota !== null && quota.maxMb > 0 && store.words === null && usedBytes(store) >= quota.maxMb * MB;
}

/**
 * Refuses to add memories or a document over the tenant's quota; null refuses nothing. Deletes free quota at once, as
 * free pages do not count. Memories are counted only if the highest `memoryNo`, which is never lower than their count,
 * and `adding` together pass the limit.
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
  if (hasReachedMb(store, quota)) {
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

/**
 * Number of bytes of the database as which each byte of a waiting file counts. A file becomes text, words and vectors:
 * plain text was measured to grow 5.2 times, with vectors of 768 dimensions.
 */
const GROWTH_WHEN_READ = 6;
/**
 * Time (ms) after which a document may be sent again that was refused only because others wait to be read: a scanned
 * page or a picture then takes far less than what was expected of it.
 */
const READ_SOON_MS = 30_000;

/**
 * Refuses to add a document over the quota of memories (EngineError `storage_full`), where each document that waits to
 * be read counts as one memory: how many parts it has is known only when it is read. Nothing is counted if `adding` and
 * the highest numbers of a memory and of a document, which are never lower than the counts, are together within the
 * limit.
 * @param maxMemories the quota, at least 1: 0 would refuse everything. `refuseOverQuota` must have passed before
 */
function refuseOverWaiting({ store }: WriteContext, maxMemories: number, adding: number): void {
  if (lastMemory(store) + lastDocument(store) + adding <= maxMemories) return;
  const count = countMemories(store);
  const room = maxMemories - count - adding;
  if (countWaitingDocuments(store, room + 1) <= room) return;
  throw overQuota(
    `max_memories (OM_TENANT_MAX_MEMORIES): ${count} are stored, at least ${room + 1} documents wait to be read and ` +
      `count as one each, and ${adding} would be added, ${maxMemories} are allowed`,
  );
}

/**
 * Refuses a document over the tenant's quota as `refuseOverQuota` does. Against the quota of memories, documents that
 * wait to be read count as one each. Against the quota in MB, the files that wait to be read count too, by what they
 * will take once they are read (`GROWTH_WHEN_READ`), and so do the kept files of failed readings. The size of the
 * document itself does not count, as a file may have far more bytes than text.
 * @throws EngineError as `refuseOverQuota`; with `retryAfterMs` if only the files that wait take the document over the
 *   quota in MB, and never for the quota of memories
 */
export function refuseDocumentOverQuota(context: WriteContext, quota: Quota | null, adding: number): void {
  refuseOverQuota(context, quota, adding);
  if (quota === null) return;
  if (quota.maxMemories > 0 && adding > 0) refuseOverWaiting(context, quota.maxMemories, adding);
  if (quota.maxMb === 0) return;
  const { store } = context;
  const used = usedBytes(store);
  const expected = GROWTH_WHEN_READ * waitingBytes(store) + failedBytes(store);
  if (expected === 0 || used + expected < quota.maxMb * MB) return;
  throw overQuota(
    `max_mb (OM_TENANT_MAX_MB): ${Math.ceil(used / MB)} MB are used and ${Math.ceil(expected / MB)} MB are counted ` +
      `for documents that wait to be read or were not read, ${quota.maxMb} MB are allowed`,
    used + failedBytes(store) < quota.maxMb * MB ? { retryAfterMs: READ_SOON_MS } : undefined,
  );
}

function overQuota(text: string, options?: { readonly retryAfterMs: number }): EngineError {
  return new EngineError('storage_full', `quota ${text}; deletes still work`, options);
}
