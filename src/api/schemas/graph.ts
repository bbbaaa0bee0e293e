/** Schemas of graphs: memories, the names (entities) that they mention, and the links between them. */
import { z } from 'zod';
import { EDGE_TYPES, MAX_GRAPH_NODES, MEMORY_STATUSES, SECTORS } from '../../engine/index.ts';
import { count, timestamp, unit, uuid } from './memory-replies.ts';
import { digits, ownerFilter, type Wire } from './values.ts';

const limit = digits(1, MAX_GRAPH_NODES).default(100).describe('Greatest number of memories and names together.');

/**
 * Schema of the query string of `GET /memory/:id/neighbourhood`, which shows the memories and names (entities) that are
 * linked to a memory, and the links.
 */
export const neighbourhoodQuery = z.strictObject({
  hops: digits(1, 3)
    .default(2)
    .describe('Greatest number of steps from the memory; a name is a step between two memories that mention it.'),
  limit,
  user_id: ownerFilter,
});
/**
 * Schema of the query string of `GET /users/:id/graph`, which shows a user's memories with the highest salience, the
 * names (entities) that they mention, and the links between all of these.
 */
export const userGraphQuery = z.strictObject({ limit });

const hop = count.describe("Steps from the memory in the middle; 0 in a user's graph.");

/** Schema of the reply 200 to `GET /memory/:id/neighbourhood` and `GET /users/:id/graph`. */
export const graphReply = z
  .strictObject({
    memories: z.array(
      z.strictObject({
        id: uuid,
        gist: z.string(),
        sector: z.enum(SECTORS),
        salience: unit,
        status: z.enum(MEMORY_STATUSES),
        event_time: timestamp,
        created_at: timestamp,
        hop,
      }),
    ),
    entities: z.array(z.strictObject({ name: z.string(), label: z.string(), type: z.string(), hop })),
    links: z
      .array(
        z.strictObject({
          src: uuid,
          dst: uuid,
          type: z.enum(EDGE_TYPES),
          weight: unit,
          similarity: z.number().nullable().describe('null for a link that somebody stated.'),
        }),
      )
      .describe('The strongest first; both ends are in `memories`.'),
    mentions: z.array(z.strictObject({ memory: uuid, entity: z.string().describe('`name` of the entity.') })),
    relations: z.array(z.strictObject({ src: z.string(), dst: z.string(), relation: z.string() })),
    truncated: z.boolean().describe('Whether `limit`, or another bound on what is read, left something out.'),
  })
  .meta({
    id: 'Graph',
    examples: [
      {
        memories: [
          {
            id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72',
            gist: 'Deploys to staging happen every Tuesday.',
            sector: 'semantic',
            salience: 0.4,
            status: 'active',
            event_time: 1_795_265_978_965,
            created_at: 1_795_265_978_965,
            hop: 0,
          },
        ],
        entities: [{ name: 'staging', label: 'staging', type: 'concept', hop: 1 }],
        links: [],
        mentions: [{ memory: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72', entity: 'staging' }],
        relations: [],
        truncated: false,
      },
    ],
  });
export type GraphItem = Wire<typeof graphReply>;
