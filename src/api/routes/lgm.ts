import { randomUUID } from 'node:crypto';
import {
  type AddOutcome,
  beginningOf,
  charactersOf,
  type DerivedItem,
  EngineError,
  type Memory,
  type NewMemory,
  type Tenant,
} from '../../engine/index.ts';
import { mayDo } from '../access-control.ts';
import { jsonBytes } from '../json-pieces.ts';
import { type JsonReply, sendInPieces, sendObject } from '../json-reply.ts';
import { takeReplyPlace } from '../reply-places.ts';
import { requireClient } from '../await-drain.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import {
  lgmConfig,
  type LgmItem,
  lgmContext,
  lgmContextSchema,
  lgmReflectionSchema,
  lgmRetrieved,
  lgmRetrieveSchema,
  lgmStored,
  lgmStoreSchema,
} from '../schemas/lgm.ts';
import { noQuery } from '../schemas/values.ts';
import { clientGone } from '../wait-for-writes.ts';
import {
  excerptsOf,
  NODE_SECTORS,
  nodeItem,
  sectorOfNode,
  sourceOf,
  storedNodeItem,
  tagsOf,
  toMemoryOfNode,
  type GraphPlace,
} from '../wire/lgm.ts';
import { answerBytes } from '../wire/query.ts';
import { getOwnedMemory } from './owned-memory.ts';
import { isPublicRead } from './public-reads.ts';
import { warningsAbout } from './warnings.ts';

/** Greatest length of the newest memories in a reply together, in UTF-16 code units; the first is always sent. */
const MAX_REPLY_TEXT = 3 * 1024 * 1024;
/** Greatest length of the memories that a reply lists, in bytes of JSON, which escapes may make long. */
const MAX_REPLY_JSON = 7 * 1024 * 1024;
/**
 * Main memory that is reserved for the texts that a request reads, until its reply has been sent (bytes): 2 for each
 * UTF-16 code unit.
 */
const HELD_BYTES = 2 * MAX_REPLY_TEXT;
/** Greatest length of the part of a stored text that the reflection on it repeats, in UTF-16 code units. */
const MAX_EXCERPT = 480;
/**
 * Greatest number of memories whose excerpts make up a reflection, if the request brings neither a text nor sources.
 */
const REFLECTED = 12;

const IS_OFF = 'The server does not run with `OM_MODE=langgraph`.';
const NODE_MEANS_NOTHING = 'the context of a graph holds all of its nodes; for one of them ask /lgm/retrieve';

/**
 * OpenMemory's routes for LangGraph, on its paths. Without `OM_MODE=langgraph` they answer `not_found`, since a program
 * that relies on them should learn at its first call that the server was set up for something else.
 */
export const lgmRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/lgm/config',
    name: 'getLangGraphConfig',
    access: 'read',
    forBoundKeys: true,
    summary: "Shows the settings of OpenMemory's routes for LangGraph",
    replies: { 200: { description: 'The settings, and the sector of each node.', json: lgmConfig } },
    errors: { not_found: IS_OFF },
    handle(call) {
      const config = requireMode(call);
      call.send(200, {
        mode: 'langgraph',
        namespace_default: config.OM_LG_NAMESPACE,
        max_context: config.OM_LG_MAX_CONTEXT,
        reflective: config.OM_LG_REFLECTIVE,
        node_sector_map: NODE_SECTORS,
      });
    },
  }),
  route({
    method: 'post',
    path: '/lgm/store',
    name: 'storeNodeOutput',
    access: 'add',
    forBoundKeys: true,
    limited: ['adds'],
    summary: "Stores what a graph's node has to remember",
    description:
      'The text becomes a memory like any other, in the sector of its node, with the tags `lgm:node:NODE` and ' +
      '`lgm:namespace:NAMESPACE`, and with `graph_id` as its `session_id`. Two equal texts become two memories. If ' +
      '`reflective` asks for one, a reflection is stored, too: a memory of the node `reflect` that repeats the first ' +
      '480 characters of the text and is erased together with the memory. If memory or reflection is refused, ' +
      'neither is stored.',
    query: noQuery,
    body: {
      json: lgmStoreSchema,
      example: { node: 'observe', content: 'The customer opened the ticket from a phone.', graph_id: 'thread-7' },
    },
    replies: {
      200: {
        description: 'The memory, and the reflection on it if there is one, are on disk; their jobs are queued.',
        json: lgmStored,
      },
    },
    errors: {
      not_found: IS_OFF,
      unprocessable: 'The privacy policy of the tenant refuses the text, or the reflection on it; nothing is stored.',
    },
    async handle(call) {
      const config = requireMode(call);
      const body = await call.readBody();
      const place = placeOf(call, body);
      const node = nodeOf(body);
      const { content, metadata, tags } = body;
      const stored = { ...place, node, content, tags: tags ?? [], metadata: metadata ?? {} };
      const isReflective = (body.reflective ?? config.OM_LG_REFLECTIVE) && node !== 'reflect';
      const excerpt = content.length > MAX_EXCERPT ? `${beginningOf(content, MAX_EXCERPT)}…` : content;
      const reflection = { ...place, node: 'reflect', content: `[${node}] ${excerpt}`, tags: tags ?? [], metadata: {} };
      const memories = [toMemoryOfNode(stored, newExternalId())];
      if (isReflective) memories.push(toMemoryOfNode(reflection, newExternalId(), { reflects_on: node }));
      const [memory, reflected] = await store(call.tenant, memories, [{ item: 1, from: [0] }]);
      call.send(200, { memory: memory!, reflection: reflected ?? null });
    },
  }),
  route({
    method: 'post',
    path: '/lgm/retrieve',
    name: 'retrieveNodeMemories',
    access: 'read',
    forBoundKeys: true,
    repeatable: true,
    limited: ['queries'],
    summary: 'Returns memories that a node stored: the newest, or those that answer a query',
    query: noQuery,
    body: { json: lgmRetrieveSchema, example: { node: 'observe', query: 'which device?', graph_id: 'thread-7' } },
    replies: { 200: { description: 'Memories of the node.', json: lgmRetrieved } },
    errors: { not_found: IS_OFF },
    async handle(call) {
      const config = requireMode(call);
      const { tenant, principal, response, readBody } = call;
      const body = await readBody();
      const place = placeOf(call, body);
      const node = nodeOf(body);
      const limit = Math.min(body.limit ?? body.k ?? Infinity, config.OM_LG_MAX_CONTEXT);
      const withMetadata = body.include_metadata ?? false;
      const head = { node, sector: sectorOfNode(node), ...shownPlace(place) };
      const filter = filterOf(place, node);
      const query = body.query ?? '';
      if (query === '') {
        await takeReplyPlace(call, HELD_BYTES);
        const { memories, isCut } = await newest(call, filter, { limit, room: MAX_REPLY_TEXT });
        const listed = memories.map((memory) => nodeItem(memory, { withMetadata }));
        const items = await fitting(listed, MAX_REPLY_JSON);
        const mark = cutMark(isCut || items.length < listed.length);
        return sendObject(call, { ...head, query: null, count: items.length, items, ...mark }, null);
      }
      const asked = {
        query,
        k: limit,
        filter,
        ...(isPublicRead(principal) ? { reinforce: false, isLogged: false } : {}),
      };
      const { hits, isCut } = await tenant.query(asked, clientGone(response));
      const found = hits.map(({ memory, score, path }) => nodeItem(memory, { withMetadata, score, path }));
      const items = await fitting(found, MAX_REPLY_JSON);
      const mark = cutMark(isCut === true || items.length < found.length);
      const answer = { ...head, query, count: items.length, items, ...mark };
      await sendObject(call, answer, answerBytes({ hits }));
    },
  }),
  route({
    method: 'post',
    path: '/lgm/context',
    name: 'getGraphContext',
    access: 'read',
    forBoundKeys: true,
    repeatable: true,
    limited: ['queries'],
    summary: 'Returns the newest memories of each of the five nodes, and a summary of them',
    query: noQuery,
    body: { json: lgmContextSchema, example: { graph_id: 'thread-7', limit: 5 }, optional: true },
    replies: { 200: { description: 'The memories by node.', json: lgmContext } },
    errors: { not_found: IS_OFF },
    async handle(call) {
      const config = requireMode(call);
      const body = await call.readBody();
      const place = placeOf(call, body);
      const limit = Math.min(body.limit ?? Infinity, config.OM_LG_MAX_CONTEXT);
      await takeReplyPlace(call, HELD_BYTES);
      const share = 1 / Object.keys(NODE_SECTORS).length;
      const read = await Promise.all(
        Object.entries(NODE_SECTORS).map(async ([node, sector]) => {
          const room = Math.floor(MAX_REPLY_TEXT * share);
          const { memories, isCut } = await newest(call, filterOf(place, node), { limit, room });
          const listed = memories.map((memory) => nodeItem(memory, { withMetadata: false }));
          const items = await fitting(listed, MAX_REPLY_JSON * share);
          const shown = memories.slice(0, items.length);
          return { node: { node, sector }, items, shown, isCut: isCut || items.length < listed.length };
        }),
      );
      await sendContext(call, read, {
        head: { ...shownPlace(place), limit },
        tail: {
          summary: excerptsOf(read.flatMap(({ shown }) => shown)),
          ...cutMark(read.some(({ isCut }) => isCut)),
          ...warningsAbout(body, { node: NODE_MEANS_NOTHING, node_id: NODE_MEANS_NOTHING }),
        },
      });
    },
  }),
  route({
    method: 'post',
    path: '/lgm/reflection',
    name: 'storeGraphReflection',
    access: 'add',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Stores a reflection of a graph',
    description: 'Without `content`, the reflection is made of excerpts of memories. No language model is asked.',
    query: noQuery,
    body: {
      json: lgmReflectionSchema,
      example: { content: 'Phone users do not find the export button.', graph_id: 'thread-7' },
      optional: true,
    },
    replies: { 200: { description: 'The reflection is on disk; its job is queued.', json: lgmStored } },
    errors: {
      not_found: 'No memory has one of `context_ids`, or the server does not run with `OM_MODE=langgraph`.',
      unprocessable:
        'There is no `content` and no memory of which excerpts can be made, or the privacy policy of the tenant ' +
        'refuses the text.',
    },
    async handle(call) {
      requireMode(call);
      const { tenant, readBody, send } = call;
      const body = await readBody();
      // What is read for a reflection, or named by it, the key must be able to read.
      if ((body.content == null || body.context_ids != null) && !mayDo(call.principal.role, 'read'))
        throw new EngineError('forbidden', 'a reflection without content, or with context_ids, needs a key that reads');
      if (body.content == null || body.context_ids != null) await takeReplyPlace(call, HELD_BYTES);
      // A reflection must not tell what memories of others say.
      const placed = placeOf(call, body);
      const place = { ...placed, userId: placed.userId ?? '' };
      const given: ReturnType<typeof sourceOf>[] = [];
      // One after the other, as each may have half a megabyte.
      for (const id of new Set(body.context_ids ?? []))
        given.push(sourceOf(await getOwnedMemory(tenant, id, place.userId)));
      const sources =
        body.content != null || given.length > 0
          ? given
          : (await newest(call, filterOf(place), { limit: REFLECTED, room: MAX_REPLY_TEXT })).memories.map(sourceOf);
      const content = body.content ?? sources.map(({ excerpt }) => excerpt).join('\n');
      if (content === '')
        throw new EngineError('unprocessable', 'there is nothing to reflect on: send content, or store memories first');
      const node = body.node ?? body.node_id ?? 'reflect';
      const memory = { ...place, node: node.toLowerCase(), content, tags: [], metadata: { sector: 'reflective' } };
      const contextIds = sources.map(({ id }) => id);
      const noted = toMemoryOfNode(memory, newExternalId(), { context_ids: contextIds });
      const [reflection] = await store(tenant, [noted], [{ item: 0, from: contextIds }]);
      send(200, { memory: reflection!, reflection: null });
    },
  }),
];

/**
 * Returns the settings if `OM_MODE` is `langgraph`.
 * @throws EngineError `not_found` otherwise; its message says how to switch the routes on
 */
function requireMode({ api }: TenantCall) {
  const { config } = api.engine;
  if (config.OM_MODE === 'langgraph') return config;
  throw new EngineError(
    'not_found',
    'the /lgm routes are switched off: set OM_MODE=langgraph and start the server again; /store needs no mode',
  );
}

interface PlaceBody {
  readonly namespace?: string | null | undefined;
  readonly graph_id?: string | null | undefined;
  readonly user_id?: string | null | undefined;
}

function placeOf({ api, principal }: TenantCall, body: PlaceBody): GraphPlace {
  const namespace = body.namespace ?? '';
  return {
    namespace: namespace === '' ? api.engine.config.OM_LG_NAMESPACE : namespace,
    graphId: body.graph_id ?? '',
    userId: principal.userId ?? body.user_id ?? null,
  };
}

const shownPlace = ({ namespace, graphId }: GraphPlace) => ({
  namespace,
  graph_id: graphId === '' ? null : graphId,
});

/**
 * Returns the node that a body names in `node`, or else in `node_id`, in lower case. The schema requires one of the
 * two.
 */
function nodeOf({ node, node_id: nodeId }: { node?: string | null | undefined; node_id?: string | null | undefined }) {
  return (node ?? nodeId ?? '').toLowerCase();
}

/**
 * Makes the filter that selects the memories of one graph, or of one node of it. An empty `graphId` selects the
 * memories of all graphs; a `userId` of null selects those of all users.
 */
function filterOf({ namespace, graphId, userId }: GraphPlace, node?: string) {
  return {
    tags: tagsOf(namespace, node),
    ...(userId === null ? {} : { userIds: [userId] }),
    ...(graphId === '' ? {} : { sessionIds: [graphId] }),
  };
}

/**
 * Returns the newest memories that a filter selects: at most `limit`, and only until they exceed `room` UTF-16 code
 * units. The first memory is returned whatever its length. `isCut` is true if a memory was left out because of its
 * length.
 */
async function newest(
  call: TenantCall,
  filter: ReturnType<typeof filterOf>,
  { limit, room }: { readonly limit: number; readonly room: number },
): Promise<{ readonly memories: Memory[]; readonly isCut: boolean }> {
  const memories: Memory[] = [];
  let left = room;
  for await (const slice of call.tenant.streamMemories(filter, { limit, offset: 0 })) {
    requireClient(call.response);
    for (const memory of slice) {
      left -= charactersOf(memory);
      if (left < 0 && memories.length > 0) return { memories, isCut: true };
      memories.push(memory);
    }
  }
  return { memories, isCut: false };
}

/** Returns the first items whose JSON has at most `room` bytes together; the first one is returned whatever it has. */
async function fitting(items: readonly LgmItem[], room: number): Promise<readonly LgmItem[]> {
  let left = room;
  for (const [index, item] of items.entries()) {
    left -= await jsonBytes(item);
    if (left < 0 && index > 0) return items.slice(0, index);
  }
  return items;
}

/**
 * Answers with the fields of `head`, the list `nodes`, and the fields of `tail`. The memory of the reply must have been
 * reserved.
 */
async function sendContext(
  call: TenantCall,
  nodes: readonly { readonly node: object; readonly items: readonly LgmItem[] }[],
  { head, tail }: { readonly head: object; readonly tail: object },
): Promise<void> {
  const make = async (reply: JsonReply) => {
    let before = `${JSON.stringify(head).slice(0, -1)},"nodes":[`;
    for (const { node, items } of nodes) {
      reply.add(`${before}${JSON.stringify(node).slice(0, -1)},"items":`);
      await reply.addList([items], { toJson: (item) => item });
      before = '},';
    }
    await reply.end(`}],${JSON.stringify(tail).slice(1)}`);
  };
  await sendInPieces(call, make, null);
}

const cutMark = (isCut: boolean) => (isCut ? { truncated: true as const } : {});

/**
 * Stores memories, together with links to the memories from which they are derived, in one commit. Returns them in the
 * form of the reply.
 * @throws EngineError if one of the memories is refused; then none of them is stored
 */
async function store(tenant: Tenant, memories: readonly NewMemory[], derived: readonly DerivedItem[]) {
  const { outcomes } = await tenant.addMemories(memories, { derived, allOrNothing: true });
  return outcomes.map((outcome, index) => storedNodeItem(memories[index]!, acceptedOf(outcome)));
}

function acceptedOf(outcome: AddOutcome): Extract<AddOutcome, { kind: 'accepted' }> {
  if (outcome.kind === 'accepted') return outcome;
  throw new EngineError('internal', 'a memory with a new external id is no duplicate, and a refusal is thrown');
}

const newExternalId = () => `lgm:${randomUUID()}`;
