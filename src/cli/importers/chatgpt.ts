/** Reads ChatGPT's data export. */
import { listOf, loseParts, readConversations, skipEmpty, skipOthers, spoken } from './conversations.ts';
import {
  CONVERSATIONS,
  fieldsOf,
  type ForeignLine,
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

/**
 * The format of ChatGPT's export. A conversation is a tree of messages. Those on the branch to `current_node` are
 * imported, or all if it names no message; the others belong to prompts that were edited, and are skipped.
 */
export const chatgpt: ImportFormat = {
  name: 'chatgpt',
  detect: ({ head, names }) => /"mapping"\s*:/.test(head) || names.some((name) => /export_manifest\.json$/.test(name)),
  async *lines(context) {
    const { source } = context;
    for await (const file of source.files((name) => CONVERSATIONS.test(name) || source.names.length === 1))
      for await (const part of readConversations(context, file, { field: 'mapping', gather })) {
        if ('messages' in part) {
          passOverOthers(context, part.rest, CONVERSATION_FIELDS);
          timeIn(context, part.rest['create_time']);
          if (part.messages === 0) skipEmpty(context);
          continue;
        }
        const node = fieldsOf(part.message);
        // The root of the tree has no message.
        if (node['message'] === null) continue;
        context.read();
        if (part.facts.isSeen[part.place] === 1) yield* messageLines(context, part.facts, { key: part.key, node });
        else context.skip('on another branch of a conversation');
      }
    skipOthers(context, (name) => CONVERSATIONS.test(name));
  },
};

const CONVERSATION_FIELDS = ['id', 'conversation_id', 'title', 'create_time', 'mapping', 'current_node'];
const MESSAGE_FIELDS = ['id', 'author', 'create_time', 'content', 'weight', 'metadata'];
const METADATA_FIELDS = ['is_visually_hidden_from_conversation', 'attachments'];

/** Facts about a conversation that must be known before its messages can be imported. */
interface Facts {
  readonly session: string;
  readonly title: unknown;
  /**
   * Time for messages that have no time of their own, Unix ms: the time of the conversation or else the earliest of a
   * message on the branch to `current_node`; undefined if none of them has one.
   */
  readonly time: number | undefined;
  /**
   * For each node of the tree, in the order of the file, 1 if it is on the branch to `current_node`, else 0; 1 for all
   * if `current_node` names no node.
   */
  readonly isSeen: Uint8Array;
}

function gather() {
  const places = new Map<string, number>();
  /**
   * For each node the index of its parent, or the parent's id if it comes later in the file; '' for a node without a
   * parent.
   */
  const parents: (number | string)[] = [];
  /** For each node the time of its message, Unix ms; NaN if it has none. */
  const times: number[] = [];
  return {
    message(key: string, value: unknown): void {
      const { parent, message } = fieldsOf(value);
      places.set(key, parents.length);
      parents.push(places.get(textOf(parent)) ?? textOf(parent));
      times.push(timeOf(fieldsOf(message)['create_time']) ?? Number.NaN);
    },
    end(rest: Readonly<Record<string, unknown>>): Facts {
      const isSeen = new Uint8Array(parents.length);
      let place = places.get(textOf(rest['current_node']));
      // Without a last message all of them are taken. A circle ends the branch.
      if (place === undefined) isSeen.fill(1);
      while (place !== undefined && isSeen[place] === 0) {
        isSeen[place] = 1;
        const parent: number | string = parents[place]!;
        place = typeof parent === 'number' ? parent : places.get(parent);
      }
      const seen = times.filter((time, at) => isSeen[at] === 1 && !Number.isNaN(time));
      const earliest = seen.length === 0 ? undefined : seen.reduce((least, time) => Math.min(least, time));
      const session = lineOf(rest['conversation_id'] ?? rest['id'], 256);
      return { session, title: rest['title'], time: timeOf(rest['create_time']) ?? earliest, isSeen };
    },
  };
}

function* messageLines(
  context: ImportContext,
  facts: Facts,
  { key, node }: { readonly key: string; readonly node: Readonly<Record<string, unknown>> },
): Generator<ForeignLine> {
  const message = fieldsOf(node['message']);
  const metadata = fieldsOf(message['metadata']);
  const body = fieldsOf(message['content']);
  const type = lineOf(body['content_type'], 64);
  const { texts, others } = textsOf(body);
  loseParts(context, others);
  for (const file of listOf(metadata['attachments']))
    lose(context, `an attached file: ${lineOf(fieldsOf(file)['mime_type'] ?? fieldsOf(file)['mimeType'], 64)}`);
  const content = texts.join('\n').trim();
  const isHidden = metadata['is_visually_hidden_from_conversation'] === true || message['weight'] === 0;
  const problem = isHidden ? 'hidden in the conversation' : problemOf(content);
  if (problem !== undefined) {
    const isOdd = problem === WITHOUT_TEXT && !KNOWN_TYPES.has(type);
    return context.skip(isOdd ? `${WITHOUT_TEXT}: ${type || 'no type'}` : problem);
  }
  passOverOthers(context, message, MESSAGE_FIELDS);
  passOverOthers(context, metadata, METADATA_FIELDS, 'metadata.');
  passOverOthers(context, body, CONTENT_FIELDS, 'content.');
  yield spoken(context, 'chatgpt', {
    content,
    role: textOf(fieldsOf(message['author'])['role']),
    session: facts.session,
    externalId: lineOf(message['id'] ?? key, 256),
    title: lineIn(context, facts.title, 1_024),
    at: timeIn(context, message['create_time']) ?? facts.time,
    ...(['', 'text', 'multimodal_text'].includes(type) ? {} : { about: { content_type: type } }),
  });
}

const WITHOUT_TEXT = 'without text';
const KNOWN_TYPES = new Set(['', 'text', 'multimodal_text', 'code', 'thoughts', 'execution_output']);

/** Fields of a message's content that may contain a text, for the known types of content. */
const TEXT_FIELDS = [
  // code, execution_output, tether_quote, system_error
  'text',
  // reasoning_recap
  'content',
  // tether_browsing_display
  'result',
  'summary',
  // citable_code_output
  'output_str',
  // user_editable_context, model_editable_context
  'user_profile',
  'user_instructions',
  'model_set_context',
];

const CONTENT_FIELDS = ['content_type', 'parts', 'thoughts', ...TEXT_FIELDS];

/** Returns the texts of a message's content. `others` lists the types of the parts that have no text. */
function textsOf(content: Readonly<Record<string, unknown>>): {
  readonly texts: readonly string[];
  readonly others: readonly string[];
} {
  const texts: string[] = [];
  const others: string[] = [];
  for (const part of listOf(content['parts'])) {
    const { text, content_type: type } = fieldsOf(part);
    const said = typeof part === 'string' ? part : text;
    if (typeof said === 'string') texts.push(textOf(said));
    else others.push(lineOf(type, 64) || 'of no type');
  }
  for (const thought of listOf(content['thoughts'])) {
    const { summary, content: thinking } = fieldsOf(thought);
    texts.push(textOf(thought), textOf(summary), textOf(thinking));
  }
  texts.push(...TEXT_FIELDS.map((field) => textOf(content[field])));
  return { texts: texts.filter(Boolean), others };
}
