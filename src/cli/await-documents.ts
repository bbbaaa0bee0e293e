import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from './client.ts';
import { retryWhileBusy, type DocumentItem } from './send-documents.ts';

/** Greatest number of document ids that the API accepts in one request. */
const MAX_IDS = 100;
/**
 * Shortest and longest pause between two rounds of status requests (ms). The pause begins as the shortest, is half as
 * long again after each round in which no document has finished, and the shortest again after any other.
 */
const PAUSE_MS = { min: 100, max: 2_000 };
/**
 * Greatest share of the waiting time that status requests may take (0 to 1): the pause after a round of requests is at
 * least five times as long as the round, which takes longer with many documents.
 */
const SHARE_OF_TIME = 0.2;
/** Time without any change after which the command stops waiting for the documents (ms). */
const STALLED_MS = 600_000;

/**
 * Waits until the server has finished processing documents (extracting and storing their text), successfully or not.
 * @param onFinished called after each request with the number of documents that are finished so far
 * @returns the finished documents, by id. Documents that were deleted meanwhile are missing, and so are those that are
 *   unfinished after ten minutes without any change.
 * @throws CliError if the server refuses a request, does not answer, or is still busy after ten minutes
 */
export async function awaitDocuments(
  client: Client,
  ids: Iterable<string>,
  onFinished: (count: number) => void,
): Promise<Map<string, DocumentItem>> {
  const finished = new Map<string, DocumentItem>();
  const pending = new Set(ids);
  let pauseMs = PAUSE_MS.min;
  let state = '';
  let movedAt = performance.now();

  while (pending.size > 0) {
    const startedAt = performance.now();
    const before = pending.size;
    const moving: DocumentItem[] = [];
    for (const slice of slicesOf([...pending])) {
      const items = await listById(client, slice);
      const existing = new Set(items.map(({ id }) => id));
      for (const id of slice) if (!existing.has(id)) pending.delete(id);
      for (const item of items) {
        if (!hasEnded(item)) moving.push(item);
        else if (pending.delete(item.id)) finished.set(item.id, item);
      }
      onFinished(finished.size);
    }
    const now = performance.now();
    const nextState = JSON.stringify(moving.map(({ id, updated_at, progress }) => [id, updated_at, progress]));
    if (nextState !== state) movedAt = now;
    else if (now - movedAt > STALLED_MS) break;
    state = nextState;
    pauseMs = pending.size < before ? PAUSE_MS.min : Math.min(PAUSE_MS.max, pauseMs * 1.5);
    if (pending.size > 0) await sleep(Math.max(pauseMs, (now - startedAt) / SHARE_OF_TIME));
  }
  return finished;
}

async function listById(client: Client, ids: readonly string[]): Promise<DocumentItem[]> {
  return [...(await retryWhileBusy(() => client.listDocuments({ ids: ids.join(','), l: MAX_IDS }))).items];
}

function hasEnded({ state }: DocumentItem): boolean {
  return state !== 'queued' && state !== 'processing';
}

function slicesOf(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / MAX_IDS) }, (_, n) => ids.slice(n * MAX_IDS, (n + 1) * MAX_IDS));
}
