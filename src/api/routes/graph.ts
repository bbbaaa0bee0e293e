import { route, type Route } from '../route.ts';
import { graphReply, neighbourhoodQuery, userGraphQuery } from '../schemas/graph.ts';
import { userIdSchema } from '../schemas/memories.ts';
import { parse } from '../schemas/parse.ts';
import { graphItem } from '../wire/graph.ts';
import { getOwnedMemory, MEMORY_ID } from './owned-memory.ts';

const BOUNDS =
  'Memories of any status take part, unless they have expired or are not valid now. From one node at most 64 links ' +
  'and 64 mentions are followed in each direction; the reply has at most `limit` nodes, four times as many lines of ' +
  'each kind, 1 MiB of nodes and 512 KiB of each kind of lines. It ends early where the work of one request does ' +
  '(`OM_QUERY_WORK_MB`). `truncated` says whether any of that left something out.';

/** Routes of graphs for drawing: memories, the names (entities) that they mention, and the links between them. */
export const graphRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/memory/:id/neighbourhood',
    name: 'getNeighbourhood',
    access: 'read',
    forBoundKeys: true,
    summary: 'Shows the memories and names (entities) around a memory, and the links between them',
    description: `Breadth first, over links and over names (entities) that memories of one user mention. ${BOUNDS}`,
    params: { id: MEMORY_ID },
    query: neighbourhoodQuery,
    replies: { 200: { description: 'The graph around the memory.', json: graphReply } },
    errors: { not_found: 'No memory of this user has this id, or it has expired.' },
    async handle({ tenant, params, query, send }) {
      const { hops, limit, user_id } = query;
      const { id } = await getOwnedMemory(tenant, params.id, user_id);
      send(200, graphItem(await tenant.neighbourhood(id, { hops, limit })));
    },
  }),
  route({
    method: 'get',
    path: '/users/:id/graph',
    name: 'getUserGraph',
    access: 'read',
    forBoundKeys: true,
    summary: "Shows a user's memories with the highest salience, the names that they mention, and all links",
    description: `Three quarters of the nodes are memories. An unknown user has an empty graph. ${BOUNDS}`,
    params: { id: { description: 'The `user_id` of the user.', example: 'ana' } },
    query: userGraphQuery,
    replies: { 200: { description: "The graph of the user's memories.", json: graphReply } },
    async handle({ tenant, params, query, send }) {
      send(200, graphItem(await tenant.userGraph(parse(userIdSchema, params.id), query)));
    },
  }),
];
