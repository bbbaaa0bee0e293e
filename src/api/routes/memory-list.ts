import type { Memory, MemoryFilter } from '../../engine/index.ts';
import { sendInPieces } from '../json-reply.ts';
import type { TenantCall } from '../route.ts';
import { memoryItem } from '../wire/memories.ts';

/** Sentences about the end of a page, for the description of a route that lists memories. */
export const PAGE_END =
  'A page ends early after 8 MiB: `truncated` then says so. `next` is the `u` of the next page, if there is one.';

/**
 * Answers with a page of memories. Deriving gist and entities takes 20 µs for a short text and more for a chunk, so the
 * page is made and sent a slice at a time.
 * @param head fields of the reply before its `items`
 */
export async function sendMemories(
  call: TenantCall,
  head: object,
  filter: MemoryFilter,
  { l: limit, u: offset }: { readonly l: number; readonly u: number },
): Promise<void> {
  await sendInPieces(call, async (reply) => {
    reply.add(`${JSON.stringify(head).slice(0, -1)}${Object.keys(head).length === 0 ? '' : ','}"items":`);
    const slices = call.tenant.streamMemories(filter, { limit: limit + 1, offset });
    const { sent, hasMore, isCut } = await reply.addList<Memory>(slices, { toJson: memoryItem, limit });
    await reply.end(pageEnd(hasMore ? offset + sent : undefined, isCut));
  });
}

/**
 * Ends the JSON object of a page.
 * @param next where the next page begins; undefined if there is none
 */
export function pageEnd(next: number | undefined, isCut: boolean): string {
  return `${isCut ? ',"truncated":true' : ''}${next === undefined ? '' : `,"next":${next}`}}`;
}
