/** Import formats of other memory services: mem0, Zep, LangGraph stores, and the official memory server of MCP. */
import { jsonItems } from '../json-items.ts';
import {
  fieldsOf,
  type ForeignLine,
  idOf,
  type ImportContext,
  type ImportFormat,
  isOpenMemory,
  isTooDeep,
  lineIn,
  lineOf,
  lose,
  metadataOf,
  OPENMEMORY_RECORDS,
  passOverOthers,
  problemOf,
  tagsIn,
  textOf,
  timeIn,
} from './format.ts';
import { beginningOf } from '../../engine/for-options.ts';

/** Names of fields that contain the list of records, if a file is one JSON object, as in replies of APIs. */
const LISTS = ['results', 'memories', 'items', 'data', 'sessions'];
/**
 * Matches the beginning of a JSON object that contains its records in a field of `LISTS`, if no `[` and no `{` come
 * before that field, in texts neither.
 */
const OUTER_OBJECT = new RegExp(`^\\s*\\{(?:[^[{]*,)?\\s*"(?:${LISTS.join('|')})"\\s*:\\s*\\[`);

type ForeignRecord = Readonly<Record<string, unknown>>;

/**
 * Yields the records of all files. A file has lines of JSON, a list, or an object with a list. Other files of an
 * archive are counted as skipped.
 * @param knownOf returns the names of the fields of a record that are imported; others are counted
 */
async function* recordsOf(
  context: ImportContext,
  knownOf: (record: ForeignRecord) => readonly string[],
): AsyncGenerator<ForeignRecord> {
  const { source } = context;
  const wanted = isOpenMemory(source.names) ? OPENMEMORY_RECORDS : RECORDS;
  for (const name of source.names.length === 1 ? [] : source.names.filter((one) => !wanted.test(one))) {
    context.read();
    context.skip(
      name.startsWith('memories.json') ? 'the same memories in another form' : 'another file of the archive',
    );
  }
  for await (const { name, texts } of source.files((one) => wanted.test(one) || source.names.length === 1)) {
    const pieces = texts()[Symbol.asyncIterator]();
    const first = await pieces.next();
    const head = first.done === true ? '' : first.value;
    const whole = (async function* () {
      yield head;
      yield* { [Symbol.asyncIterator]: () => pieces };
    })();
    const place = head.trimStart().startsWith('[') ? 'list' : OUTER_OBJECT.test(head) ? LISTS : 'sequence';
    const onDamage = (message: string) => context.damaged(message);
    for await (const item of jsonItems(whole, { name, place, onDamage })) {
      const record = fieldsOf(item);
      passOverOthers(context, record, knownOf(record));
      yield record;
    }
  }
}

const RECORDS = /\.(json|jsonl|ndjson)$/;

/** Yields the line of a memory. If its text cannot be a memory, counts it as skipped and yields nothing. */
function* memoryOf(context: ImportContext, line: ForeignLine & { readonly content: string }): Generator<ForeignLine> {
  const problem = problemOf(line.content);
  if (problem === undefined) yield line;
  else context.skip(problem);
}

const MEM0_FIELDS = [...['id', 'user_id', 'run_id', 'categories', 'metadata', 'state', 'created_at', 'updated_at']];

/**
 * Returns the first of `names` whose field in the record has a text; the first name if none has. Services renamed
 * fields, and some replies have both.
 */
function firstOf(record: ForeignRecord, names: readonly string[]): string {
  return names.find((name) => textOf(record[name]) !== '') ?? names[0]!;
}

export const mem0: ImportFormat = {
  name: 'mem0',
  detect: ({ head, names }) =>
    isOpenMemory(names) || (/"(memory|run_id|agent_id)"\s*:/.test(head) && !/"entityType"|"namespace"/.test(head)),
  async *lines(context) {
    const textField = (record: ForeignRecord) => firstOf(record, ['memory', 'text', 'content']);
    const agentField = (record: ForeignRecord) => firstOf(record, ['agent_id', 'app']);
    for await (const record of recordsOf(context, (one) => [...MEM0_FIELDS, textField(one), agentField(one)])) {
      context.read();
      const state = lineOf(record['state'], 64);
      if (state === 'deleted') {
        context.skip('deleted');
        continue;
      }
      const id = lineOf(record['id'], 200);
      const userId = context.userId ?? lineIn(context, record['user_id'], 256);
      const content = textOf(record[textField(record)]);
      const agent = lineIn(context, record[agentField(record)], 128);
      yield* memoryOf(context, {
        type: 'memory',
        id: idOf('mem0', userId, id || content),
        user_id: userId,
        session_id: lineIn(context, record['run_id'], 256),
        content,
        tags: tagsIn(context, record['categories']),
        metadata: {
          ...metadataOf(context, record['metadata']),
          ...(agent === '' ? {} : { agent_id: agent }),
          ...(['', 'active'].includes(state) ? {} : { state }),
        },
        external_id: id === '' ? null : `mem0:${id}`,
        created_at: timeIn(context, record['created_at']) ?? null,
        updated_at: timeIn(context, record['updated_at']) ?? null,
        ...(state === 'archived' ? { status: 'archived' } : {}),
      });
    }
  },
};

const ZEP_MESSAGE_FIELDS = ['uuid', 'uuid_', 'role', 'role_type', 'content', 'created_at', 'metadata'];
const ZEP_SESSION_FIELDS = ['session_id', 'user_id', 'messages'];

export const zep: ImportFormat = {
  name: 'zep',
  detect: ({ head }) => /"messages"\s*:/.test(head) && /"(session_id|role_type)"\s*:/.test(head),
  async *lines(context) {
    const isSession = (record: ForeignRecord) => Array.isArray(record['messages']);
    const knownOf = (record: ForeignRecord) => [
      ...ZEP_SESSION_FIELDS,
      ...(!isSession(record) ? ZEP_MESSAGE_FIELDS : 'session_id' in record ? [] : ['uuid']),
    ];
    for await (const session of recordsOf(context, knownOf)) {
      const sessionId = lineIn(context, session['session_id'] ?? session['uuid'], 256);
      const userId = context.userId ?? lineIn(context, session['user_id'], 256);
      for (const one of isSession(session) ? (session['messages'] as readonly unknown[]) : [session]) {
        const message = fieldsOf(one);
        if (one !== session) passOverOthers(context, message, ZEP_MESSAGE_FIELDS);
        context.read();
        yield* zepMessage(context, { message, sessionId, userId });
      }
    }
  },
};

function* zepMessage(
  context: ImportContext,
  { message, sessionId, userId }: { message: ForeignRecord; sessionId: string; userId: string },
): Generator<ForeignLine> {
  const id = lineOf(message['uuid'] ?? message['uuid_'], 200);
  const content = textOf(message['content']);
  const [role, roleType] = [lineIn(context, message['role'], 128), lineIn(context, message['role_type'], 128)];
  yield* memoryOf(context, {
    type: 'memory',
    id: idOf('zep', userId, id || `${sessionId}\n${content}`),
    user_id: userId,
    session_id: sessionId,
    content,
    metadata: {
      ...metadataOf(context, message['metadata']),
      role: role || roleType,
      ...(['', role].includes(roleType) || role === '' ? {} : { role_type: roleType }),
    },
    external_id: id === '' ? null : `zep:${id}`,
    event_time: timeIn(context, message['created_at']) ?? null,
  });
}

const LANGGRAPH_FIELDS = ['namespace', 'key', 'value', 'created_at', 'createdAt', 'updated_at', 'updatedAt'];

export const langgraph: ImportFormat = {
  name: 'langgraph',
  detect: ({ head }) => /"namespace"\s*:\s*\[/.test(head) && /"key"\s*:/.test(head),
  async *lines(context) {
    for await (const record of recordsOf(context, () => LANGGRAPH_FIELDS)) {
      context.read();
      const path = record['namespace'];
      const labels = (Array.isArray(path) ? path : labelsOf(path)).map((label) => lineOf(label, 256));
      const [key, value] = [lineOf(record['key'], 256), record['value'] ?? null];
      const namespace = labels.map((label) => label.replaceAll('.', '_')).join('.');
      if (key === '' || labels.includes('') || namespace.length > 512) {
        context.skip('without a key, or with a namespace that is empty in part or over 512 characters');
        continue;
      }
      const isDeep = isTooDeep(value);
      if (isDeep || Buffer.byteLength(JSON.stringify(value)) > 256_000) {
        context.skip(isDeep ? 'a value that is nested too deeply' : 'a value over 256,000 bytes');
        continue;
      }
      if (labels.some((label) => label.includes('.'))) lose(context, 'the dots in the labels of a namespace');
      const userId = context.userId ?? '';
      const content = beginningOf(textsOf(value).join('\n'), 60_000).toWellFormed();
      yield {
        type: 'memory',
        id: idOf('langgraph', userId, JSON.stringify(labels), key),
        user_id: userId,
        content,
        external_id: namespace === '' ? key : null,
        item: { namespace, key },
        value,
        created_at: timeIn(context, record['created_at'] ?? record['createdAt']) ?? null,
        updated_at: timeIn(context, record['updated_at'] ?? record['updatedAt']) ?? null,
      };
    }
  },
};

/**
 * Returns the labels of a namespace that is a text, as in LangGraph's HTTP API, which joins them by dots; an empty
 * list, which is the root, if there is none.
 */
function labelsOf(namespace: unknown): readonly unknown[] {
  return namespace === undefined || namespace === null || namespace === '' ? [] : textOf(namespace).split('.');
}

/**
 * Returns all texts and numbers inside a JSON value, each after the key of its field, as Cairn makes the searchable
 * text of an item.
 */
function textsOf(value: unknown, key = ''): string[] {
  if (typeof value === 'string' || typeof value === 'number') return [`${key === '' ? '' : `${key}: `}${value}`];
  if (Array.isArray(value)) return value.flatMap((one) => textsOf(one, key));
  return Object.entries(fieldsOf(value)).flatMap(([name, one]) => textsOf(one, name));
}

const GRAPH_FIELDS = ['type', 'name', 'entityType', 'observations', 'from', 'to', 'relationType'];

/**
 * The format of the knowledge graph of MCP's official memory server. Each entity becomes a memory. Each observation
 * becomes a memory with a link to that of its entity. Each relation becomes a memory, and also a link if both of its
 * entities are in the import and differ.
 */
export const serverMemory: ImportFormat = {
  name: 'server-memory',
  detect: ({ head }) => /"entityType"\s*:|"relationType"\s*:/.test(head),
  async *lines(context) {
    const userId = context.userId ?? '';
    const entity = (name: string) => idOf('server-memory', userId, 'entity', name);
    // A relation may stand before its entities, so relations come last.
    const relations: ForeignLine[] = [];
    const names = new Set<string>();
    for await (const record of recordsOf(context, () => GRAPH_FIELDS)) {
      context.read();
      const name = lineIn(context, record['name'], 128);
      if (record['type'] === 'relation') {
        const [from, to] = [lineIn(context, record['from'], 128), lineIn(context, record['to'], 128)];
        relations.push({ type: 'link', src: entity(from), dst: entity(to), link_type: 'mentions', from, to });
        const content = `${from} ${lineIn(context, record['relationType'], 256)} ${to}`;
        yield* memoryOf(context, {
          type: 'memory',
          id: idOf('server-memory', userId, 'relation', content),
          user_id: userId,
          content,
          memory_type: 'relation',
          entities: [from, to].filter(Boolean),
        });
        continue;
      }
      if (record['type'] !== 'entity' || name === '') {
        context.skip('neither an entity nor a relation');
        continue;
      }
      names.add(name);
      const type = lineIn(context, record['entityType'], 128);
      const shared = { type: 'memory', user_id: userId, memory_type: type || null, entities: [name] } as const;
      yield { ...shared, id: entity(name), content: type === '' ? name : `${name} (${type})` };
      const { observations = [] } = record;
      for (const observation of Array.isArray(observations) ? observations : [observations]) {
        const content = textOf(observation);
        const id = idOf('server-memory', userId, 'observation', name, content);
        const said = [...memoryOf(context, { ...shared, id, title: name, content })];
        yield* said;
        if (said.length > 0) yield { type: 'link', src: id, dst: entity(name), link_type: 'mentions' };
      }
    }
    for (const { from, to, ...link } of relations) {
      if (names.has(from as string) && names.has(to as string) && from !== to) yield { ...link, type: 'link' };
      else context.skip('a relation of an entity that is not there (its text is imported)');
    }
  },
};
