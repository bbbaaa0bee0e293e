import type { Memory, MemoryFilter } from '../../engine/index.ts';
import { sendInPieces } from '../json-reply.ts';
import type { TenantCall } from '../route.ts';
import { memoryItem } from '../wire/memories.ts';

/** Sentences about the end of a page, for the description of a route that lists memories. */
export const PAGE_END =
  'A page ends early after 8 MiB: `truncated` then says so. `next` is the `u` of the next page, if there is one.';

/**
 * Answers with a page of memories, and `next` if there are more. Each memory's gist (short summary) and entities are
 * derived from its text, which takes 20 µs for a short text and more for a chunk, so the page is made and sent in
 * slices.
 * @param head fields of the reply before its `items`
 * @param page.l greatest number of memories
 * @param page.u number of memories to skip
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
    // What is erased while the page is sent is left out, and no longer counts before the next page, which may follow.
    const isLast = !hasMore && slices.listed <= limit;
    await reply.end(pageEnd(isLast ? undefined : offset + sent, isCut));
  });
}

/**
 * Returns the end of the JSON object of a page, which follows its list or the fields after it.
 * @param next where the next page begins; undefined on the last page
 * @param isCut whether the page ended early because the reply was too long
 */
export function pageEnd(next: number | undefined, isCut: boolean): string {
  return `${isCut ? ',"truncated":true' : ''}${next === undefined ? '' : `,"next":${next}`}}`;
}
