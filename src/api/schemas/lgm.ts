/** Schemas of OpenMemory's routes for LangGraph. */
import { z } from 'zod';
import { MEMORY_STATES, SECTORS } from '../../engine/index.ts';
import { LIMITS } from './value-limits.ts';
import { content } from './memories.ts';
import { timestamp, unit, uuid, warnings } from './memory-replies.ts';
import {
  anyObject,
  anyValue,
  BODY_EXPECTED,
  flag,
  givenId,
  id,
  integer,
  label,
  labels,
  metadata,
  text,
  type Wire,
} from './values.ts';

/** Greatest number of memories that a reflection may name as its sources. */
const MAX_CONTEXT_IDS = 64;
/** Longest name of a node or namespace, in UTF-16 code units. It is limited because a tag is made of it. */
const NAME_CHARACTERS = 100;

const nodeName = label(NAME_CHARACTERS).min(1, 'must not be empty');
const node = nodeName
  .nullish()
  .describe("Name of the graph's node. `observe`, `plan`, `reflect`, `act` and `emotion` have a sector each.");
const nodeId = nodeName.nullish().describe('Same as `node`, which `openmemory-js` calls so.');
const place = {
  namespace: label(NAME_CHARACTERS)
    .nullish()
    .describe('Namespace of the graphs; `OM_LG_NAMESPACE` (`default`) by default.'),
  graph_id: id.nullish().describe('One run or thread of a graph: the `session_id` of its memories.'),
  user_id: id.nullish().describe('The user who owns the memories; `""`, the default, means no particular user.'),
};
const limit = (what: string) => integer(1, LIMITS.longPage).nullish().describe(what);
const ignored = (what: string) => z.unknown().optional().describe(what);

const namesNode = {
  message: 'name the node: node, or node_id',
  path: ['node'],
};
const hasNode = (body: { readonly node?: string | null | undefined; readonly node_id?: string | null | undefined }) =>
  body.node != null || body.node_id != null;

/** Schema of the JSON body of `POST /lgm/store`, which stores a memory for a node of a LangGraph graph. */
export const lgmStoreSchema = z
  .strictObject(
    {
      node,
      node_id: nodeId,
      content: content.describe('What the node has to remember, stored verbatim; at most 256 KiB of UTF-8.'),
      tags: labels(LIMITS.tags - 2, LIMITS.labelCharacters)
        .nullish()
        .describe('Labels to filter by; `lgm:node:…` and `lgm:namespace:…` are added.'),
      metadata: metadata.nullish().describe('Any JSON object; `lgm` is added, and `sector` forces another sector.'),
      ...place,
      reflective: flag
        .nullish()
        .describe('Whether a reflection is stored, too; `OM_LG_REFLECTIVE` by default, and never of `reflect`.'),
    },
    BODY_EXPECTED,
  )
  .refine(hasNode, namesNode);

/**
 * Schema of the JSON body of `POST /lgm/retrieve`, which returns memories that a node of a graph stored: the newest, or
 * the best matches of a query.
 */
export const lgmRetrieveSchema = z
  .strictObject(
    {
      node,
      node_id: nodeId,
      query: text(LIMITS.queryCharacters)
        .nullish()
        .describe('Question or keywords; without it the newest memories are returned.'),
      ...place,
      limit: limit('Most memories; `OM_LG_MAX_CONTEXT` (50) by default and at most.'),
      k: limit('Same as `limit`, which `openmemory-js` calls so.'),
      include_metadata: flag.nullish().describe('Whether items have their `metadata`; false by default.'),
    },
    BODY_EXPECTED,
  )
  .refine(hasNode, namesNode);

/**
 * Schema of the JSON body of `POST /lgm/context`, which returns the newest memories of each of the five nodes, and a
 * summary of them.
 */
export const lgmContextSchema = z.strictObject(
  {
    ...place,
    limit: limit('Most memories of each node; `OM_LG_MAX_CONTEXT` (50) by default and at most.'),
    node: ignored('`openmemory-js` sends it; it changes nothing.'),
    node_id: ignored('`openmemory-js` sends it; it changes nothing.'),
  },
  BODY_EXPECTED,
);

/** Schema of the JSON body of `POST /lgm/reflection`, which stores a reflection of a graph. */
export const lgmReflectionSchema = z.strictObject(
  {
    node: node.describe('Node that the reflection is stored for; `reflect` by default.'),
    node_id: nodeId,
    ...place,
    content: content
      .nullish()
      .describe('The reflection. Without it, one is made of excerpts of `context_ids`, else of the newest memories.'),
    context_ids: z
      .array(givenId)
      .max(MAX_CONTEXT_IDS, `at most ${MAX_CONTEXT_IDS} entries`)
      .nullish()
      .describe('Memories that it rests on; it is linked to them as `derived_from`.'),
  },
  BODY_EXPECTED,
);

// ── Replies ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const sector = z.enum(SECTORS);
const ID = '01a1fe30-e25b-7576-a0c2-3c4e3646bd72';
const PLACE = { namespace: 'default', graph_id: 'thread-7' };
const TAGS = ['lgm:node:observe', 'lgm:namespace:default'];

const storedNode = z
  .strictObject({
    id: uuid,
    node: z.string(),
    primary_sector: sector,
    sectors: z.array(sector),
    namespace: z.string(),
    graph_id: z.string().nullable(),
    tags: z.array(z.string()),
    chunks: z.literal(1),
    state: z.enum(MEMORY_STATES),
    metadata: anyObject,
  })
  .meta({
    id: 'LgmMemory',
    examples: [
      {
        id: ID,
        node: 'observe',
        primary_sector: 'episodic',
        sectors: ['episodic'],
        ...PLACE,
        tags: TAGS,
        chunks: 1,
        state: 'queued',
        metadata: { sector: 'episodic', lgm: { node: 'observe', ...PLACE } },
      },
    ],
  });
/** Schema of the reply 200 to `POST /lgm/store` and `POST /lgm/reflection`. */
export const lgmStored = z.strictObject({
  memory: storedNode,
  reflection: storedNode.nullable().describe('The reflection that was stored with it; null for none.'),
  warnings,
});
export type LgmMemoryItem = Wire<typeof storedNode>;

const nodeItem = z
  .strictObject({
    id: uuid,
    node: z.string(),
    content: z.string(),
    primary_sector: sector,
    sectors: z.array(sector),
    tags: z.array(z.string()),
    created_at: timestamp,
    updated_at: timestamp,
    last_seen_at: timestamp,
    salience: unit,
    decay_lambda: z.number(),
    version: z.int(),
    score: unit.exactOptional().describe('Only of a request with a `query`.'),
    path: z.array(z.string()).exactOptional().describe('Only of a request with a `query`.'),
    metadata: anyValue.exactOptional().describe('Only with `include_metadata`.'),
  })
  .meta({
    id: 'LgmItem',
    examples: [
      {
        id: ID,
        node: 'observe',
        content: 'The customer opened the ticket from a phone.',
        primary_sector: 'episodic',
        sectors: ['episodic'],
        tags: TAGS,
        created_at: 1795265978965,
        updated_at: 1795265978965,
        last_seen_at: 1795265978965,
        salience: 0.4,
        decay_lambda: 0.015,
        version: 1,
      },
    ],
  });
export type LgmItem = Wire<typeof nodeItem>;

const placeReply = { namespace: z.string(), graph_id: z.string().nullable().describe('null for all graphs.') };
const truncated = z.literal(true).exactOptional().describe('Texts over 6 MiB were left out; absent otherwise.');

/**
 * Schema of the reply 200 to `POST /lgm/retrieve`, which returns memories that a node of a graph stored: the newest, or
 * the best matches of a query.
 */
export const lgmRetrieved = z
  .strictObject({
    node: z.string(),
    sector,
    ...placeReply,
    query: z.string().nullable(),
    count: z.int().min(0),
    items: z.array(nodeItem),
    truncated,
  })
  .meta({ id: 'LgmRetrieved' });

/**
 * Schema of the reply 200 to `POST /lgm/context`, which returns the newest memories of each of the five nodes, and a
 * summary of them.
 */
export const lgmContext = z
  .strictObject({
    ...placeReply,
    limit: z.int(),
    nodes: z.array(z.strictObject({ node: z.string(), sector, items: z.array(nodeItem) })),
    summary: z
      .string()
      .describe(
        'One line for each memory: the LangGraph node that stored it, in brackets, and its gist (a short summary).',
      ),
    truncated,
    warnings,
  })
  .meta({ id: 'LgmContext' });

/** Schema of the reply 200 to `GET /lgm/config`, which shows the settings of OpenMemory's routes for LangGraph. */
export const lgmConfig = z
  .strictObject({
    mode: z.literal('langgraph'),
    namespace_default: z.string(),
    max_context: z.int(),
    reflective: z.boolean(),
    node_sector_map: z.record(z.string(), sector),
  })
  .meta({
    id: 'LgmConfig',
    examples: [
      {
        mode: 'langgraph',
        namespace_default: 'default',
        max_context: 50,
        reflective: true,
        node_sector_map: { observe: 'episodic', plan: 'semantic', reflect: 'reflective', act: 'procedural' },
      },
    ],
  });
