import type { Listed, ListedMemory, Memory, MemorySlices } from '../../engine/index.ts';
import { type JsonReply, MAX_REPLY_BYTES, sendInPieces } from '../json-reply.ts';
import type { TenantCall } from '../route.ts';
import { pageEnd } from './memory-list.ts';

/** Sentences about the pages of a list with a cursor, for the description of its route. */
export const CURSOR_END =
  'A page begins after the last entry of the page before, so entries that are added or removed between two pages ' +
  'neither repeat nor hide others. `next_cursor` is null on the last page.';

/**
 * Answers with a page of memories, made and sent slice by slice, and with the cursor of the next page. If the page ends
 * early because the reply is too long, the next page begins with the first memory that was left out.
 * @param toJson makes the JSON value of a memory
 */
export async function sendPage(
  call: TenantCall,
  { slices, next }: MemorySlices,
  toJson: (memory: Memory) => unknown,
): Promise<void> {
  await sendInPieces(call, async (reply) => {
    reply.add('{"items":');
    const sent = await reply.addList<ListedMemory>(slices, { toJson: ({ memory }) => toJson(memory) });
    await reply.end(`,"next_cursor":${JSON.stringify(sent.isCut ? sent.last!.cursor : next)}}`);
  });
}

/**
 * Answers with a page of a list that is in memory already. The JSON is made and sent item by item, so that other
 * requests run in between. `next` is there if the list goes on after the page.
 * @param page.offset number of items before the page
 * @param page.toJson makes the JSON value of an item
 * @param page.more further fields of the reply, after `total`
 */
export async function sendListed<Item>(
  call: TenantCall,
  { items, total }: Listed<Item>,
  { offset, toJson, more = {} }: ListedPage<Item>,
): Promise<void> {
  const make = async (reply: JsonReply) => {
    reply.add('{"items":');
    const { sent, isCut } = await reply.addList([items], { toJson });
    const hasMore = sent > 0 && offset + sent < total;
    const rest = JSON.stringify({ total, ...more }).slice(1, -1);
    await reply.end(`,${rest}${pageEnd(hasMore ? offset + sent : undefined, isCut)}`);
  };
  await sendInPieces(call, make, MAX_REPLY_BYTES);
}

interface ListedPage<Item> {
  readonly offset: number;
  readonly toJson: (item: Item) => unknown;
  readonly more?: object;
}
