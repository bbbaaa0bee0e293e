import type { ListedMemory, Memory, MemorySlices } from '../../engine/index.ts';
import { sendInPieces } from '../json-reply.ts';
import type { TenantCall } from '../route.ts';

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
