/** Archives of conversations: ChatGPT and Claude. */
import { jsonItems } from '../json-items.ts';
import {
  fieldsOf,
  type ForeignLine,
  idOf,
  type ImportContext,
  type ImportFormat,
  lineOf,
  problemOf,
  type SourceFile,
  textOf,
  timeOf,
} from './format.ts';

const CONVERSATIONS = /(^|\/)conversations(-\d+)?\.json$/;
const MEMORIES = /(^|\/)memories\.json$/;

/**
 * ChatGPT's data export. A conversation is a tree of messages, of which the branch to `current_node` is what was seen;
 * the others are prompts that were edited.
 */
export const chatgpt: ImportFormat = {
  name: 'chatgpt',
  title: "ChatGPT's data export: its ZIP, or conversations.json",
  detect: ({ head, names }) => /"mapping"\s*:/.test(head) || names.some((name) => /export_manifest\.json$/.test(name)),
  async *lines(context) {
    const { source } = context;
    for await (const file of source.files((name) => CONVERSATIONS.test(name) || source.names.length === 1))
      for await (const item of itemsOf(context, file)) yield* chatgptConversation(context, item);
    skipOthers(context, (name) => CONVERSATIONS.test(name));
  },
};

/** The items of a file that is a list, each with its fields. */
async function* itemsOf(
  context: ImportContext,
  { name, texts }: SourceFile,
): AsyncGenerator<Readonly<Record<string, unknown>>> {
  const onDamage = (message: string) => context.damaged(message);
  for await (const item of jsonItems(texts(), { name, place: 'list', onDamage })) yield fieldsOf(item);
}

function skipEmpty(context: ImportContext): void {
  context.read();
  context.skip('a conversation without messages');
}

/** Counts the files of an archive that are not read. */
function skipOthers(context: ImportContext, isRead: (name: string) => boolean): void {
  const { names } = context.source;
  for (const name of names.length === 1 ? [] : names.filter((one) => !isRead(one))) {
    context.read();
    context.skip(
      /(^|\/)projects(\.json$|\/)/.test(name) ? 'a project file: use cairn ingest' : 'another file of the archive',
    );
  }
}

function* chatgptConversation(
  context: ImportContext,
  conversation: Readonly<Record<string, unknown>>,
): Generator<ForeignLine> {
  const mapping = fieldsOf(conversation['mapping']);
  if (Object.keys(mapping).length === 0) skipEmpty(context);
  const session = lineOf(conversation['conversation_id'] ?? conversation['id'], 256);
  const visible = branchOf(mapping, textOf(conversation['current_node']));
  const shown = new Set(visible);
  for (const id of Object.keys(mapping)) {
    if (shown.has(id) || fieldsOf(mapping[id])['message'] === null) continue;
    context.read();
    context.skip('on another branch of a conversation');
  }
  const times = visible.map((id) => timeOf(fieldsOf(fieldsOf(mapping[id])['message'])['create_time']));
  const earliest = Math.min(...times.filter((time) => time !== undefined));
  const fallback = timeOf(conversation['create_time']) ?? (Number.isFinite(earliest) ? earliest : undefined);
  for (const [at, id] of visible.entries()) {
    const node = fieldsOf(mapping[id]);
    // The root of the tree has no message.
    if (node['message'] === null) continue;
    const message = fieldsOf(node['message']);
    context.read();
    const role = textOf(fieldsOf(message['author'])['role']);
    const content = chatgptText(fieldsOf(message['content']));
    skipParts(
      context,
      partsOf(fieldsOf(message['content'])['parts']).filter((part) => textOfPart(part) === undefined),
    );
    const isHidden = fieldsOf(message['metadata'])['is_visually_hidden_from_conversation'] === true;
    const problem = isHidden || message['weight'] === 0 ? 'hidden in the conversation' : problemOf(content);
    if (problem !== undefined) {
      context.skip(problem);
      continue;
    }
    yield spoken(context, 'chatgpt', {
      content,
      role,
      session,
      externalId: lineOf(message['id'] ?? id, 256),
      title: lineOf(conversation['title'], 1_024),
      at: times[at] ?? fallback,
    });
  }
}

/** Ids of the messages from the first to the one that was seen last. A circle ends the branch. */
function branchOf(mapping: Readonly<Record<string, unknown>>, last: string): string[] {
  const branch = new Set<string>();
  for (let id = last; id !== '' && Object.hasOwn(mapping, id) && !branch.has(id);) {
    branch.add(id);
    id = textOf(fieldsOf(mapping[id])['parent']);
  }
  // Without a last message all of them are taken, in the order of the file.
  return branch.size > 0 ? [...branch].reverse() : Object.keys(mapping);
}

function chatgptText(content: Readonly<Record<string, unknown>>): string {
  const texts = partsOf(content['parts']).map((part) => textOfPart(part) ?? '');
  return [...texts, textOf(content['text'])].map(textOf).filter(Boolean).join('\n').trim();
}

function partsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The text of a part of a message; undefined for an image or anything else without one. */
function textOfPart(part: unknown): string | undefined {
  const text = typeof part === 'string' ? part : fieldsOf(part)['text'];
  return typeof text === 'string' ? text : undefined;
}

/** Counts parts of a message that are not imported with it. */
function skipParts(context: ImportContext, parts: readonly unknown[]): void {
  parts.forEach(() => {
    context.read();
    context.skip('an image, an attachment or another part without text (its message is imported)');
  });
}

/** Claude's data export. What Claude remembered comes before the conversations. */
export const claude: ImportFormat = {
  name: 'claude',
  title: "Claude's data export: its ZIP, or conversations.json",
  detect: ({ head, names }) =>
    /"chat_messages"\s*:/.test(head) || names.some((name) => /(^|\/)(users|memories)\.json$/.test(name)),
  async *lines(context) {
    const { source } = context;
    for await (const file of source.files((name) => MEMORIES.test(name)))
      for await (const item of itemsOf(context, file)) yield* claudeMemories(context, item);
    for await (const file of source.files((name) => CONVERSATIONS.test(name) || source.names.length === 1)) {
      if (MEMORIES.test(file.name)) continue;
      for await (const item of itemsOf(context, file)) yield* claudeConversation(context, item);
    }
    skipOthers(context, (name) => MEMORIES.test(name) || CONVERSATIONS.test(name));
  },
};

function* claudeMemories(context: ImportContext, item: Readonly<Record<string, unknown>>): Generator<ForeignLine> {
  const texts = [
    ...[item['conversations_memory'], item['memory'], item['content'], item['text']],
    ...Object.values(fieldsOf(item['project_memories'])),
  ]
    .map((text) => textOf(text).trim())
    .filter((text) => text !== '');
  context.read();
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

function* claudeConversation(
  context: ImportContext,
  conversation: Readonly<Record<string, unknown>>,
): Generator<ForeignLine> {
  const messages = partsOf(conversation['chat_messages']);
  if (messages.length === 0) skipEmpty(context);
  for (const one of messages) {
    const message = fieldsOf(one);
    context.read();
    const parts = partsOf(message['content']);
    const ofParts = parts.map((part) => textOf(fieldsOf(part)['text'])).filter(Boolean);
    const others = parts.filter((part) => textOfPart(part) === undefined);
    skipParts(context, [...others, ...partsOf(message['attachments']), ...partsOf(message['files'])]);
    const content = (ofParts.length > 0 ? ofParts.join('\n') : textOf(message['text'])).trim();
    const problem = problemOf(content);
    if (problem !== undefined) {
      context.skip(problem);
      continue;
    }
    yield spoken(context, 'claude', {
      content,
      role: message['sender'] === 'human' ? 'user' : textOf(message['sender']),
      session: lineOf(conversation['uuid'], 256),
      externalId: lineOf(message['uuid'], 256),
      title: lineOf(conversation['name'], 1_024),
      at: timeOf(message['created_at']) ?? timeOf(conversation['created_at']),
    });
  }
}

interface Spoken {
  readonly content: string;
  readonly role: string;
  readonly session: string;
  readonly externalId: string;
  readonly title: string;
  readonly at: number | undefined;
}

function spoken(context: ImportContext, from: string, message: Spoken): ForeignLine {
  const userId = context.userId ?? '';
  const { content, role, session, externalId, title, at } = message;
  return {
    type: 'memory',
    id: idOf(from, userId, externalId === '' ? `${session}\n${content}` : externalId),
    user_id: userId,
    session_id: session,
    content,
    external_id: externalId === '' ? null : `${from}:${externalId}`.slice(0, 256),
    event_time: at ?? null,
    tags: [from],
    metadata: { role, conversation: title },
  };
}
