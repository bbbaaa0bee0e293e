import type { Client } from './create-client.ts';
import type { BatchReply, NewMemory } from './generated/types.ts';
import type { CallOptions } from './reply.ts';

export interface AddAllOptions extends Pick<CallOptions, 'signal'> {
  /** Memories in one request, 100 by default; the server takes 1 000 at most, and 1 MiB. */
  readonly batchSize?: number;
  /** Requests at once, 4 by default. */
  readonly concurrency?: number;
}

/** The result of one memory, and its place among all that were given, from 0. */
export type AddedMemory = BatchReply['results'][number] & { readonly index: number };

/**
 * Adds any number of memories, some requests at a time, and yields the result of each in the order that they were given
 * in. A memory that the server refuses has an `error` in its result, and the others are stored. If the loop is left,
 * no further request begins.
 * @throws CairnError if a request fails; what was yielded before is stored
 */
export async function* addAll(
  client: Pick<Client, 'addMemories'>,
  memories: Iterable<NewMemory> | AsyncIterable<NewMemory>,
  { batchSize = 100, concurrency = 4, signal }: AddAllOptions = {},
): AsyncGenerator<AddedMemory> {
  const running: Promise<BatchReply>[] = [];
  let index = 0;
  const next = async function* () {
    for (const result of (await running.shift()!).results) yield { ...result, index: index++ };
  };
  for await (const items of batchesOf(memories, batchSize)) {
    if (running.length >= concurrency) yield* next();
    const reply = client.addMemories({ items }, { signal });
    reply.catch(() => {}); // Awaited in its turn.
    running.push(reply);
  }
  while (running.length > 0) yield* next();
}

async function* batchesOf<Item>(items: Iterable<Item> | AsyncIterable<Item>, size: number): AsyncGenerator<Item[]> {
  let batch: Item[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length >= size) {
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}
