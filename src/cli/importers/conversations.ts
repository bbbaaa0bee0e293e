/** Parts that the importers of conversations share, for all programs. */
import { CliError } from '../cli-error.ts';
import { jsonParts } from '../json-parts.ts';
import { type ForeignLine, idOf, type ImportContext, lose, type SourceFile } from './format.ts';
import { beginningOf } from '../../engine/for-options.ts';

/**
 * What `readConversations` must know of a format: the field with the messages, and how its first pass over the file
 * collects the facts of each conversation (`Facts`) that are needed before its messages can be imported. The messages
 * come in a second pass, since there may be too many to hold in memory.
 */
interface ConversationFormat<Facts> {
  /** Name of the field of a conversation that contains its messages. */
  readonly field: string;
  /**
   * Called at the start of a conversation in the first pass. The returned `message` is called with each message of it,
   * to collect facts before any message is imported.
   */
  gather(): {
    message(key: string, value: unknown): void;
    /**
     * Ends a conversation and returns its facts.
     * @param rest the conversation without its messages
     */
    end(rest: Readonly<Record<string, unknown>>): Facts;
  };
}

/**
 * Either a message with its key and its position in the conversation (`place`, from 0), or the end of a conversation
 * with the number of its messages and its other fields (`rest`).
 */
type ConversationPart<Facts> = { readonly facts: Facts } & (
  | { readonly key: string; readonly message: unknown; readonly place: number }
  | { readonly messages: number; readonly rest: Readonly<Record<string, unknown>> }
);

/**
 * Reads a file of conversations twice: first for the facts on which the messages depend, then for the messages, one by
 * one. Damaged records are reported to `context.damaged`, once.
 */
export async function* readConversations<Facts>(
  context: ImportContext,
  { name, texts }: SourceFile,
  { field, gather }: ConversationFormat<Facts>,
): AsyncGenerator<ConversationPart<Facts>> {
  const gathered = await gatherFacts(jsonParts(texts(), { name, field, onDamage: () => {} }), gather);
  let item = 0;
  let place = 0;
  for await (const read of jsonParts(texts(), { name, field, onDamage: (message) => context.damaged(message) })) {
    if (read.item !== item) [item, place] = [read.item, 0];
    const facts = gathered.get(item);
    // A conversation that was cut, or is no JSON, is told of as a whole.
    if (facts === undefined) continue;
    if ('rest' in read) yield { facts, messages: place, rest: read.rest as Readonly<Record<string, unknown>> };
    else yield { facts, key: read.key, message: read.part, place: place++ };
  }
}

async function gatherFacts<Facts>(
  parts: ReturnType<typeof jsonParts>,
  gather: ConversationFormat<Facts>['gather'],
): Promise<ReadonlyMap<number, Facts>> {
  const facts = new Map<number, Facts>();
  let item = 0;
  let gathering = gather();
  try {
    for await (const read of parts) {
      if (read.item !== item) [item, gathering] = [read.item, gather()];
      if ('rest' in read) facts.set(item, gathering.end(read.rest as Readonly<Record<string, unknown>>));
      else gathering.message(read.key, read.part);
    }
  } catch (error) {
    // What fails here fails again when the messages are read, and is told then.
    if (!(error instanceof CliError)) throw error;
  }
  return facts;
}

export function skipEmpty(context: ImportContext): void {
  context.read();
  context.skip('a conversation without messages');
}

/**
 * Counts as skipped all files of the source that `isRead` does not accept. If the source has a single file, it does
 * nothing.
 */
export function skipOthers(context: ImportContext, isRead: (name: string) => boolean): void {
  const { names } = context.source;
  for (const name of names.length === 1 ? [] : names.filter((one) => !isRead(one))) {
    context.read();
    context.skip(
      /(^|\/)projects(\.json$|\/)/.test(name) ? 'a project file: use cairn ingest' : 'another file of the archive',
    );
  }
}

/**
 * Counts as lost the parts of messages that have no text, by their types (`kinds`), while the messages are imported.
 */
export function loseParts(context: ImportContext, kinds: readonly string[]): void {
  for (const kind of kinds) lose(context, `a part without text: ${kind}`);
}

/** Returns a list unchanged, and a non-empty text as a list with this one entry; for anything else an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return typeof value === 'string' && value !== '' ? [value] : [];
}

/** A message of a conversation, or a file or note that belongs to a conversation, in a common form for all programs. */
interface Spoken {
  readonly content: string;
  readonly role: string;
  readonly session: string;
  readonly externalId: string;
  readonly title: string;
  readonly at: number | undefined;
  readonly memoryType?: string;
  /** Further metadata. */
  readonly about?: Readonly<Record<string, string>>;
}

export function spoken(context: ImportContext, from: string, message: Spoken): ForeignLine {
  const userId = context.userId ?? '';
  const { content, role, session, externalId, title, at, memoryType = null, about = {} } = message;
  return {
    type: 'memory',
    id: idOf(from, userId, externalId === '' ? `${session}\n${content}` : externalId),
    user_id: userId,
    session_id: session,
    content,
    external_id: externalId === '' ? null : beginningOf(`${from}:${externalId}`, 256),
    event_time: at ?? null,
    memory_type: memoryType,
    tags: [from],
    metadata: { role, conversation: title, ...about },
  };
}
