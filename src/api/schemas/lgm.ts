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
  .describe(
    "Name of the graph's node, in any case; it is stored in lower case. `observe`, `plan`, `reflect`, `act` and " +
      '`emotion` have a sector each; any other node has the sector `semantic`.',
  );
const nodeId = nodeName
  .nullish()
  .describe('The same as `node`, under the name that `openmemory-js` uses; it counts only without `node`.');
const namespace = label(NAME_CHARACTERS)
  .nullish()
  .describe('Namespace of the graphs; if left out or empty, that of `OM_LG_NAMESPACE` (`default`).');
/** Fields that say to which namespace, graph and user a stored memory belongs. */
const place = {
  namespace,
  graph_id: id
    .nullish()
    .describe('Id of a run or thread of the graph: the `session_id` of the memory; if left out or empty, it has none.'),
  user_id: id.nullish().describe('The user to whom the memory belongs; `""`, the default, means no particular user.'),
};
/** Fields that say from which namespace, graph and user memories are read. */
const readPlace = {
  namespace,
  graph_id: id
    .nullish()
    .describe('Only memories of this run or thread of a graph (`session_id`); of all if left out or empty.'),
  user_id: id
    .nullish()
    .describe('Only memories of this user; `""` for memories of no particular user; of all users if left out.'),
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
        .describe('Labels to filter by; the tags `lgm:node:NODE` and `lgm:namespace:NAMESPACE` are added.'),
      metadata: metadata
        .nullish()
        .describe(
          'Any JSON object. Its key `sector` forces a sector instead of that of the node; its key `lgm` is ' +
            'overwritten with node, namespace and graph.',
        ),
      ...place,
      reflective: flag
        .nullish()
        .describe(
          'Whether a reflection on the text is stored, too; `OM_LG_REFLECTIVE` if left out. For the node ' +
            '`reflect` none is stored.',
        ),
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
        .describe('Question or keywords; if left out or empty, the newest memories are returned.'),
      ...readPlace,
      limit: limit('Greatest number of memories; `OM_LG_MAX_CONTEXT` (50) if left out, and never more than that.'),
      k: limit('The same as `limit`, under the name that `openmemory-js` uses; it counts only without `limit`.'),
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
    ...readPlace,
    limit: limit(
      'Greatest number of memories of each node; `OM_LG_MAX_CONTEXT` (50) if left out, and never more than that.',
    ),
    node: ignored('Accepted because `openmemory-js` sends it. It has no effect, which a warning in the reply says.'),
    node_id: ignored('Accepted because `openmemory-js` sends it. It has no effect, which a warning in the reply says.'),
  },
  BODY_EXPECTED,
);

/** Schema of the JSON body of `POST /lgm/reflection`, which stores a reflection of a graph. */
export const lgmReflectionSchema = z.strictObject(
  {
    node: node.describe(
      'Node for which the reflection is stored; `reflect` by default. Its sector is `reflective` for every node.',
    ),
    node_id: nodeId,
    ...place,
    content: content
      .nullish()
      .describe(
        'The reflection. Without it, one is made of excerpts: of the memories in `context_ids`, or else of the ' +
          '12 newest memories of the namespace, graph and user.',
      ),
    context_ids: z
      .array(givenId)
      .max(MAX_CONTEXT_IDS, `at most ${MAX_CONTEXT_IDS} entries`)
      .nullish()
      .describe('Ids of the memories from which the reflection was drawn; it gets a `derived_from` link to each.'),
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
    graph_id: z.string().nullable().describe('null for none.'),
    tags: z.array(z.string()),
    chunks: z.literal(1).describe('A field of OpenMemory; always 1.'),
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
  memory: storedNode.describe('The stored memory; in the reply to `POST /lgm/reflection`, the reflection.'),
  reflection: storedNode
    .nullable()
    .describe(
      'The reflection that was stored on `memory`; null if none was, and in the reply to `POST /lgm/reflection`.',
    ),
  warnings,
});
export type LgmMemoryItem = Wire<typeof storedNode>;

const nodeItem = z
  .strictObject({
    id: uuid,
    node: z.string().describe('`""` if the metadata of the memory name none.'),
    content: z.string(),
    primary_sector: sector,
    sectors: z.array(sector),
    tags: z.array(z.string()),
    created_at: timestamp,
    updated_at: timestamp,
    last_seen_at: timestamp.describe(
      'When it was added, added again, reinforced, or last returned by a reinforcing query.',
    ),
    salience: unit.describe('How present it is at the time of reading; falls with `e^(−decay_lambda · days)`.'),
    decay_lambda: z.number().describe('Rate at which the salience falls, per day.'),
    version: z.int().describe('Starts at 1 and rises by one with each change.'),
    score: unit.exactOptional().describe('Calibrated score, higher is better; absent if the request had no `query`.'),
    path: z
      .array(z.string())
      .exactOptional()
      .describe(
        'Ids along the links from a direct hit to this memory, its own id last; absent if the request had no `query`.',
      ),
    metadata: anyValue.exactOptional().describe('Absent without `include_metadata`.'),
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
const cut = (what: string) => z.literal(true).exactOptional().describe(what);

/**
 * Schema of the reply 200 to `POST /lgm/retrieve`, which returns memories that a node of a graph stored: the newest, or
 * the best matches of a query.
 */
export const lgmRetrieved = z
  .strictObject({
    node: z.string(),
    sector,
    ...placeReply,
    query: z.string().nullable().describe('null for none: the items are the newest, latest first.'),
    count: z.int().min(0).describe('Number of `items`.'),
    items: z.array(nodeItem),
    truncated: cut(
      'Memories were left out because all texts together are too large: over 3 Mi characters, with a `query` over ' +
        '6 MiB, or over 7 MiB as JSON; absent otherwise.',
    ),
  })
  .meta({ id: 'LgmRetrieved' });

/**
 * Schema of the reply 200 to `POST /lgm/context`, which returns the newest memories of each of the five nodes, and a
 * summary of them.
 */
export const lgmContext = z
  .strictObject({
    ...placeReply,
    limit: z.int().describe('Greatest number of memories of each node.'),
    nodes: z.array(
      z.strictObject({ node: z.string(), sector, items: z.array(nodeItem).describe('The latest first.') }),
    ),
    summary: z
      .string()
      .describe(
        'One line for each memory: the LangGraph node that stored it, in brackets, and its gist (a short summary).',
      ),
    truncated: cut(
      'Memories were left out because the texts of a node have over 0.6 Mi characters together, or over 1.4 MiB as ' +
        'JSON; absent otherwise.',
    ),
    warnings,
  })
  .meta({ id: 'LgmContext' });

/** Schema of the reply 200 to `GET /lgm/config`, which shows the settings of OpenMemory's routes for LangGraph. */
export const lgmConfig = z
  .strictObject({
    mode: z.literal('langgraph'),
    namespace_default: z.string().describe('`OM_LG_NAMESPACE`.'),
    max_context: z.int().describe('`OM_LG_MAX_CONTEXT`.'),
    reflective: z.boolean().describe('`OM_LG_REFLECTIVE`.'),
    node_sector_map: z.record(z.string(), sector).describe('Sector of each named node; other nodes are `semantic`.'),
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
