import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from './client.ts';
import { patiently, type DocumentItem } from './send-documents.ts';

/** As many as one request may ask for. */
const ASKED_AT_ONCE = 100;
const PAUSE_MS = { least: 100, most: 2_000 };
/** Asking takes no more than this share of the time, however many are waited for. */
const SHARE_OF_TIME = 0.2;
const STALLED_MS = 600_000;

/**
 * Waits until documents are read, embedded and linked, or given up.
 * @param onSettled told how many are, whenever more are
 * @returns those that are, by id; without those that were deleted meanwhile, and those that are left when nothing has moved for ten
 *   minutes
 */
export async function awaitDocuments(
  client: Client,
  ids: Iterable<string>,
  onSettled: (count: number) => void,
): Promise<Map<string, DocumentItem>> {
  const settled = new Map<string, DocumentItem>();
  const pending = new Set(ids);
  let pauseMs = PAUSE_MS.least;
  let state = '';
  let movedAt = performance.now();

  while (pending.size > 0) {
    const startedAt = performance.now();
    const before = pending.size;
    const moving: DocumentItem[] = [];
    for (const some of slicesOf([...pending])) {
      const items = await listById(client, some);
      const found = new Set(items.map(({ id }) => id));
      for (const id of some) if (!found.has(id)) pending.delete(id);
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
    pauseMs = pending.size < before ? PAUSE_MS.least : Math.min(PAUSE_MS.most, pauseMs * 1.5);
    if (pending.size > 0) await sleep(Math.max(pauseMs, (now - startedAt) / SHARE_OF_TIME));
  }
  return settled;
}

async function listById(client: Client, ids: readonly string[]): Promise<DocumentItem[]> {
  const query = new URLSearchParams({ ids: ids.join(','), l: String(ASKED_AT_ONCE) });
  return (await patiently(() => client.get<{ items: DocumentItem[] }>(`/documents?${query.toString()}`))).items;
}

function hasEnded({ state }: DocumentItem): boolean {
  return state !== 'queued' && state !== 'processing';
}

function slicesOf(ids: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / ASKED_AT_ONCE) }, (_, n) =>
    ids.slice(n * ASKED_AT_ONCE, (n + 1) * ASKED_AT_ONCE),
  );
}
