import { text } from 'node:stream/consumers';
import type { AcceptedItem, DuplicateItem, FinishedItem } from '../../api/schemas/memory-replies.ts';
import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { print } from '../terminal.ts';

export interface AddCommandOptions extends ConnectionOptions {
  readonly user?: string;
  readonly session?: string;
  readonly tag?: readonly string[];
  readonly title?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly wait?: boolean;
  readonly keepDuplicates?: boolean;
  readonly supersedes?: string;
}

type AddReply = AcceptedItem | DuplicateItem | FinishedItem;

const WAIT_MS = 60_000;

/**
 * Runs `cairn add TEXT…`: stores the words, joined by spaces, as one memory. The single word `-` reads the text from
 * standard input. With `wait` it waits up to a minute for the background work.
 * @throws CliError for an empty text
 */
export async function add(words: readonly string[], options: AddCommandOptions): Promise<void> {
  const client = connect(options);
  const content =
    words.length === 1 && words[0] === '-' ? (await text(process.stdin)).replace(/\r?\n$/, '') : words.join(' ');
  if (content === '') throw new CliError('nothing to add: the text is empty');
  const reply = await client.addMemory({
    wait: options.wait ? WAIT_MS : undefined,
    content,
    user_id: options.user,
    session_id: options.session,
    tags: options.tag,
    title: options.title,
    metadata: options.metadata,
    on_duplicate: options.keepDuplicates ? 'keep' : undefined,
    supersedes: options.supersedes,
  });
  print(describe(reply, options.wait ?? false));
}

function describe(reply: AddReply, waited: boolean): string {
  if ('deduplicated' in reply) return `${reply.id}  known already (${reply.state})`;
  if ('job_id' in reply)
    return `${reply.id}  stored${waited ? `, still being worked on after ${WAIT_MS / 1000} s` : ''}`;
  if (reply.error !== undefined) return `${reply.id}  stored, but ${reply.state}: ${reply.error.message}`;
  return `${reply.id}  ${reply.state}, ${reply.sectors.join(' + ')}`;
}
