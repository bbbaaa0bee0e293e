import type { Client } from './create-client.ts';
import type { BatchReply, NewMemory } from './generated/types.ts';
import type { CallOptions } from './reply.ts';

export interface AddAllOptions extends Pick<CallOptions, 'signal'> {
  /** Greatest number of memories in one request, 1 to 100; 100 by default. A request also has at most 1 MB of JSON. */
  readonly batchSize?: number;
  /** Greatest number of requests in flight at once; 4 by default. */
  readonly concurrency?: number;
}

/** The result of one memory. `index` is its position among all the memories that were given, counted from 0. */
export type AddedMemory = BatchReply['results'][number] & { readonly index: number };

/**
 * Greatest size of the memories in one request, in bytes of JSON. The server accepts bodies of 1 MiB, which include the
 * JSON around the memories.
 */
const MAX_BYTES = 1_000_000;

/**
 * Adds any number of memories, with several requests at a time, and yields the result of each in the order of
 * `memories`. If the server refuses a memory, or it is over 1 MB, its result has an `error`, and the other memories are
 * stored. If the caller leaves the loop, no further request begins; those in flight still store their memories.
 * @throws CairnError if a whole request fails, such as a `batchSize` over 100; memories whose results were yielded
 *   before are stored, and others may be; the reason of the signal if it aborts
 */
export async function* addAll(
  client: Pick<Client, 'addMemories'>,
  memories: Iterable<NewMemory> | AsyncIterable<NewMemory>,
  { batchSize = 100, concurrency = 4, signal }: AddAllOptions = {},
): AsyncGenerator<AddedMemory> {
  const running: Promise<BatchReply['results']>[] = [];
  let index = 0;
  const next = async function* () {
    for (const result of await running.shift()!) yield { ...result, index: index++ };
  };
  for await (const items of batchesOf(memories, batchSize)) {
    if (running.length >= concurrency) yield* next();
    const results = addBatch(client, items, signal);
    results.catch(() => {}); // Awaited in its turn.
    running.push(results);
  }
  while (running.length > 0) yield* next();
}

async function addBatch(
  client: Pick<Client, 'addMemories'>,
  items: readonly NewMemory[],
  signal: AbortSignal | undefined,
): Promise<BatchReply['results']> {
  // The server would close the connection in the middle of such a request, so it is not sent.
  if (items.length === 1 && bytesOf(items[0]!) > MAX_BYTES) return [{ error: TOO_LARGE }];
  return (await client.addMemories({ items }, { signal })).results;
}

const TOO_LARGE = { code: 'too_large', message: 'a memory of over 1 MB' } as const;

/**
 * Divides memories into requests of at most `most` memories and 1 MB. A memory over 1 MB is in a request of its own.
 */
async function* batchesOf(
  items: Iterable<NewMemory> | AsyncIterable<NewMemory>,
  most: number,
): AsyncGenerator<NewMemory[]> {
  let batch: NewMemory[] = [];
  let bytes = 0;
  for await (const item of items) {
    const size = bytesOf(item) + 1;
    if (batch.length > 0 && (batch.length >= most || bytes + size > MAX_BYTES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(item);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** Length of a memory in bytes of JSON. */
function bytesOf(memory: NewMemory): number {
  return new TextEncoder().encode(JSON.stringify(memory)).length;
}
