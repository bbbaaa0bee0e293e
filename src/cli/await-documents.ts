import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from './client.ts';
import { retryWhileBusy, type DocumentItem } from './send-documents.ts';

/** Most ids that one request may name: the limit of the API. */
const MAX_IDS = 100;
/** Shortest and longest pause between two rounds of requests, ms; the pause grows while nothing ends. */
const PAUSE_MS = { min: 100, max: 2_000 };
/** Largest share of the time that requests may take; the pause grows with the number of documents to keep it. */
const SHARE_OF_TIME = 0.2;
/** Time without any change after which the documents are no longer waited for, ms. */
const STALLED_MS = 600_000;

/**
 * Waits until documents are read, embedded and linked, or given up.
 * @param onSettled called after each request with the number of documents that have ended so far
 * @returns the documents that have ended, by id. It lacks documents that were deleted meanwhile, and those that are
 *   unfinished when nothing has changed for ten minutes.
 * @throws CliError as `retryWhileBusy` does
 */
export async function awaitDocuments(
  client: Client,
  ids: Iterable<string>,
  onSettled: (count: number) => void,
): Promise<Map<string, DocumentItem>> {
  const settled = new Map<string, DocumentItem>();
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
        else if (pending.delete(item.id)) settled.set(item.id, item);
      }
      onSettled(settled.size);
    }
    const now = performance.now();
    const nextState = JSON.stringify(moving.map(({ id, updated_at, progress }) => [id, updated_at, progress]));
    if (nextState !== state) movedAt = now;
    else if (now - movedAt > STALLED_MS) break;
    state = nextState;
    pauseMs = pending.size < before ? PAUSE_MS.min : Math.min(PAUSE_MS.max, pauseMs * 1.5);
    if (pending.size > 0) await sleep(Math.max(pauseMs, (now - startedAt) / SHARE_OF_TIME));
  }
  return settled;
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
