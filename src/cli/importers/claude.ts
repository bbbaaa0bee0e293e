/** Reads Claude's data export. */
import { jsonItems } from '../json-items.ts';
import { listOf, loseParts, readConversations, skipEmpty, skipOthers, spoken } from './conversations.ts';
import {
  CONVERSATIONS,
  fieldsOf,
  type ForeignLine,
  idOf,
  isOpenMemory,
  type ImportContext,
  type ImportFormat,
  lineIn,
  lineOf,
  lose,
  passOverOthers,
  problemOf,
  textOf,
  timeIn,
  timeOf,
} from './format.ts';
import { beginningOf } from '../../engine/for-options.ts';

const MEMORIES = /(^|\/)memories\.json$/;

/** The format of Claude's export. Memories that Claude kept are imported before the conversations. */
export const claude: ImportFormat = {
  name: 'claude',
  detect: ({ head, names }) =>
    /"chat_messages"\s*:/.test(head) ||
    (names.some((name) => /(^|\/)(users|memories)\.json$/.test(name)) && !isOpenMemory(names)),
  async *lines(context) {
    const { source } = context;
    const onDamage = (message: string) => context.damaged(message);
    for await (const { name, texts } of source.files((one) => MEMORIES.test(one)))
      for await (const item of jsonItems(texts(), { name, place: 'list', onDamage }))
        yield* memoryLines(context, fieldsOf(item));
    for await (const file of source.files((name) => CONVERSATIONS.test(name) || source.names.length === 1)) {
      if (MEMORIES.test(file.name)) continue;
      for await (const part of readConversations(context, file, { field: 'chat_messages', gather })) {
        if (!('messages' in part)) {
          yield* messageLines(context, part.facts, fieldsOf(part.message));
          continue;
        }
        passOverOthers(context, part.rest, CONVERSATION_FIELDS);
        timeIn(context, part.rest['created_at']);
        if (part.messages === 0) skipEmpty(context);
        else yield* summaryLines(context, part.facts);
      }
    }
    skipOthers(context, (name) => MEMORIES.test(name) || CONVERSATIONS.test(name));
  },
};

function* memoryLines(context: ImportContext, item: Readonly<Record<string, unknown>>): Generator<ForeignLine> {
  const texts = [
    ...[item['conversations_memory'], item['memory'], item['content'], item['text']],
    ...Object.values(fieldsOf(item['project_memories'])),
  ]
    .map((text) => textOf(text).trim())
    .filter((text) => text !== '');
  context.read();
  passOverOthers(context, item, MEMORY_FIELDS);
  if (texts.length === 0) return context.skip('without text');
  for (const content of texts) {
    const problem = problemOf(content);
    if (problem !== undefined) context.skip(problem);
    else
      yield {
        type: 'memory',
        id: idOf('claude', context.userId ?? '', 'memories', content),
        user_id: context.userId ?? '',
        content,
        memory_type: 'summary',
        tags: ['claude'],
      };
  }
}

const MEMORY_FIELDS = ['conversations_memory', 'memory', 'content', 'text', 'project_memories'];
const CONVERSATION_FIELDS = ['uuid', 'name', 'summary', 'created_at', 'chat_messages'];
const MESSAGE_FIELDS = ['uuid', 'sender', 'text', 'content', 'created_at', 'attachments', 'files'];

/** Facts about a conversation that must be known before its messages can be imported. */
interface Facts {
  readonly session: string;
  readonly title: unknown;
  /**
   * Time for messages that have no time of their own, Unix ms: the time of the conversation; undefined if it has none.
   */
  readonly time: number | undefined;
  readonly summary: string;
}

function gather() {
  return {
    message: () => {},
    end: (rest: Readonly<Record<string, unknown>>): Facts => ({
      session: lineOf(rest['uuid'], 256),
      title: rest['name'],
      time: timeOf(rest['created_at']),
      summary: textOf(rest['summary']).trim(),
    }),
  };
}

function* messageLines(
  context: ImportContext,
  { session, title, time }: Facts,
  message: Readonly<Record<string, unknown>>,
): Generator<ForeignLine> {
  context.read();
  const { texts, others } = textsOf(listOf(message['content']));
  loseParts(context, others);
  const content = (texts.length > 0 ? texts.join('\n') : textOf(message['text'])).trim();
  const sender = textOf(message['sender']);
  const shared = {
    role: sender === 'human' ? 'user' : sender,
    session,
    title: lineIn(context, title, 1_024),
    at: timeIn(context, message['created_at']) ?? time,
  };
  const externalId = lineOf(message['uuid'], 200);
  const problem = problemOf(content);
  passOverOthers(context, message, MESSAGE_FIELDS);
  if (problem === undefined) yield spoken(context, 'claude', { ...shared, content, externalId });
  else context.skip(problem);
  const files = [...listOf(message['attachments']), ...listOf(message['files'])].map(fieldsOf);
  for (const [at, file] of files.entries()) {
    const name = lineOf(file['file_name'], 256);
    const extracted = textOf(file['extracted_content']).trim();
    const isOdd = extracted === '' ? undefined : problemOf(extracted);
    if (extracted === '')
      lose(context, `an attached file without text: ${lineOf(file['file_type'], 64) || 'of no type'}`);
    else if (isOdd !== undefined) lose(context, `an attached file ${isOdd}`);
    else
      yield spoken(context, 'claude', {
        ...{ ...shared, content: extracted, memoryType: 'attachment', about: { file_name: name } },
        externalId: externalId === '' ? '' : `${externalId}:file:${at}`,
      });
  }
}

function* summaryLines(context: ImportContext, { session, title, time, summary }: Facts): Generator<ForeignLine> {
  if (summary === '') return;
  context.read();
  const problem = problemOf(summary);
  if (problem !== undefined) return context.skip(problem);
  const externalId = session === '' ? '' : beginningOf(`${session}:summary`, 250);
  const shared = { role: 'assistant', session, title: lineOf(title, 1_024), at: time };
  yield spoken(context, 'claude', { ...shared, content: summary, externalId, memoryType: 'summary' });
}

/**
 * Returns the texts of a message's parts, thoughts included. `others` lists the types of the parts that have no text.
 */
function textsOf(parts: readonly unknown[]): { readonly texts: readonly string[]; readonly others: readonly string[] } {
  const texts: string[] = [];
  const others: string[] = [];
  for (const part of parts) {
    const { type, text, thinking } = fieldsOf(part);
    const said = typeof part === 'string' ? part : (text ?? thinking);
    if (typeof said === 'string') texts.push(textOf(said));
    else others.push(lineOf(type, 64) || 'of no type');
  }
  return { texts: texts.filter(Boolean), others };
}
