import type { MemoryItem } from '../../api/schemas/memory-replies.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { describeMoment } from '../show-hits.ts';
import { print } from '../terminal.ts';

export interface ListCommandOptions extends ConnectionOptions {
  readonly user?: string;
  readonly session?: string;
  readonly type?: string;
  readonly tag?: readonly string[];
  readonly file?: readonly string[];
  readonly byTime?: boolean;
  readonly oldestFirst?: boolean;
  readonly limit: number;
  readonly json?: boolean;
}

interface ListReply {
  readonly items: readonly MemoryItem[];
  readonly next_cursor: string | null;
}

/** Greatest number of memories that one request asks for. */
const PAGE = 200;

/**
 * Runs `cairn list`: prints memories page by page, at most `options.limit`.
 * @param options.json prints one JSON object on each line, in the form of the server
 */
export async function list(options: ListCommandOptions): Promise<void> {
  const client = connect(options);
  let left = options.limit;
  for (let cursor: string | null | undefined; cursor !== null && left > 0;) {
    const page: ListReply = await client.pageMemories({
      user_id: options.user,
      filters: {
        sessions: options.session === undefined ? undefined : [options.session],
        types: options.type === undefined ? undefined : [options.type],
        tags: options.tag,
        files: options.file,
      },
      order_by: options.byTime ? 'event_time' : 'id',
      order: options.oldestFirst ? 'asc' : 'desc',
      limit: Math.min(PAGE, left),
      cursor,
    });
    print(...page.items.map((memory) => (options.json ? JSON.stringify(memory) : describeMoment(memory))));
    left -= page.items.length;
    cursor = page.next_cursor;
  }
}
