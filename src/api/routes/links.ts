import {
  assert,
  EngineError,
  isEngineError,
  type Memory,
  type NearDuplicates,
  type Proposal,
  type Tenant,
} from '../../engine/index.ts';
import { type JsonReply, sendInPieces } from '../json-reply.ts';
import { route, type Route, type TenantCall } from '../route.ts';
import {
  contradictedReply,
  contradictSchema,
  linkedReply,
  linkList,
  linkSchema,
  type NearDuplicateItem,
  nearDuplicateList,
  nearDuplicateQuery,
  type ProposalItem,
  proposalList,
  proposalQuery,
  supersededReply,
  supersedeSchema,
  unlinkedReply,
  unlinkSchema,
} from '../schemas/links.ts';
import { ownerQuery } from '../schemas/values.ts';
import { linkItem } from '../wire/memories.ts';
import { getOwnedMemory, MEMORY_ID } from './owned-memory.ts';

const [OLDER, NEWER, OTHER] = [
  '01a1feb9-11f2-7362-8b9d-88949a451b09',
  '01a1feb9-1288-7569-a1c4-6c51b0283513',
  '01a1feb9-12a2-739f-b975-8bbd3418f342',
] as const;
const [STATED_AT, SUPERSEDED_AT] = [1795274904257, 1795274904199];
const NO_MEMORY = 'A field names no memory, or one of another user than `user_id`.';
const OF_CONSOLIDATION = '`src` was gathered from `dst`, so that undoing the consolidation alone removes the link.';
/** Memory that the memories of a list of pairs may take (bytes): they are read up to 4 MiB of text. */
const PAIRS_BYTES = 8 * 1024 * 1024;
const IN_LONG_CHAIN = 'over 500 memories superseded each other on either side of the link';

/**
 * Routes of links between memories. They must stand before `/memory/:id`, since Express would otherwise take `link` for
 * an id.
 */
export const linkRoutes: readonly Route[] = [
  route({
    method: 'post',
    path: '/memory/link',
    name: 'linkMemories',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'States a link between two memories, or changes its weight',
    description:
      'Weights by default: `waypoint` 0.6, `mentions` 0.5, `supports` 0.7, `depends_on` 0.7, `same_as` 0.3, ' +
      '`derived_from` 0.8. Queries follow links in both directions (`max_hops`), to memories that pass their ' +
      'filters. A `waypoint` that Cairn made between the two memories becomes a stated link.',
    body: { json: linkSchema, example: { src: OTHER, dst: OLDER, type: 'supports', weight: 0.9 } },
    replies: {
      200: {
        description: 'The link as it is now.',
        json: linkedReply,
        example: {
          ok: true,
          src: OTHER,
          dst: OLDER,
          type: 'supports',
          similarity: null,
          automatic: false,
          weight: 0.9,
          created_at: STATED_AT,
          updated_at: STATED_AT,
          written_by: null,
        },
      },
    },
    errors: { not_found: NO_MEMORY, conflict: OF_CONSOLIDATION },
    async handle({ tenant, readBody, send }) {
      const { user_id, src, dst, type, weight } = await readBody();
      await requireOwned(tenant, user_id, { src, dst });
      const { id, direction, ...stated } = linkItem(
        await tenant.linkMemories({ src, dst, type, weight: weight ?? undefined }),
      );
      assert(id === dst && direction === 'out', 'a link that was stated leads from src to dst');
      send(200, { ok: true, src, dst, ...stated });
    },
  }),
  route({
    method: 'delete',
    path: '/memory/link',
    name: 'unlinkMemories',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'Removes a link, stated or automatic',
    description:
      'The effect of the link is undone: a memory that was superseded or contradicted gets its earlier status back, ' +
      'unless another link still supersedes or contradicts it. The end of validity that a supersession set is ' +
      'removed too, unless a PATCH has set another end since.',
    body: { json: unlinkSchema, orQuery: 'link', example: { src: OTHER, dst: OLDER, type: 'supports' } },
    replies: {
      200: {
        description: 'The link was removed.',
        json: unlinkedReply,
        example: { ok: true, src: OTHER, dst: OLDER, type: 'supports' },
      },
    },
    errors: {
      not_found: `${NO_MEMORY} Or the link does not exist.`,
      conflict: `${OF_CONSOLIDATION} Or ${IN_LONG_CHAIN}.`,
    },
    async handle({ tenant, readBody, send }) {
      const { user_id, src, dst, type } = await readBody();
      await requireOwned(tenant, user_id, { src, dst });
      await tenant.unlinkMemories({ src, dst, type });
      send(200, { ok: true, src, dst, type });
    },
  }),
  route({
    method: 'post',
    path: '/memory/supersede',
    name: 'supersedeMemory',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'States that a newer memory replaces an older one',
    description:
      "The old memory's `status` becomes `superseded`. Its `valid_to` becomes the new memory's `valid_from`, or its " +
      '`event_time` if it has none, unless the old memory is valid for a shorter time anyway or would end before it ' +
      'starts. The history keeps the replaced values. Queries that find the old words return the new memory, over ' +
      'chains of any length.\n\nRepeating the request changes nothing. A PATCH that moves the start of the new ' +
      'memory also moves the end of the old one. When the new memory is deleted or expires, its own successor takes ' +
      'its place; without a successor the old memory is active again.',
    body: { json: supersedeSchema, example: { old_id: OLDER, new_id: NEWER } },
    replies: {
      200: {
        description: 'The old memory as it is now.',
        json: supersededReply,
        example: {
          ok: true,
          old_id: OLDER,
          new_id: NEWER,
          status: 'superseded',
          valid_to: SUPERSEDED_AT,
          version: 2,
        },
      },
    },
    errors: {
      conflict:
        'The old memory already has another successor, the new memory leads back to the old one, ' +
        `or ${IN_LONG_CHAIN}.`,
      not_found: NO_MEMORY,
    },
    async handle({ tenant, readBody, send }) {
      const { user_id, old_id, new_id } = await readBody();
      await requireOwned(tenant, user_id, { old_id, new_id });
      const old = await tenant.supersedeMemory({ oldId: old_id, newId: new_id });
      send(200, { ok: true, old_id, new_id, status: old.status, valid_to: old.validTo, version: old.version });
    },
  }),
  route({
    method: 'post',
    path: '/memory/contradict',
    name: 'contradictMemories',
    access: 'write',
    forBoundKeys: true,
    limited: ['adds'],
    summary: 'States that two memories contradict each other',
    description:
      'Until somebody names a winner, a query that finds both memories lowers the score of the weaker one. Repeating ' +
      'the request with a winner decides the contradiction, or changes the decision; repeating it without a winner ' +
      'changes nothing. When the winner is deleted, the other memory is active again. Queries do not follow this link.',
    body: { json: contradictSchema, example: { a: NEWER, b: OTHER, winner: NEWER } },
    replies: {
      200: {
        description: 'The contradiction as it is now.',
        json: contradictedReply,
        example: {
          ok: true,
          a: NEWER,
          b: OTHER,
          weight: 0.8,
          created_at: STATED_AT,
          updated_at: STATED_AT,
          written_by: null,
        },
      },
    },
    errors: { not_found: NO_MEMORY },
    async handle({ tenant, readBody, send }) {
      const { user_id, a, b, winner } = await readBody();
      await requireOwned(tenant, user_id, { a, b });
      const stated = linkItem(await tenant.contradictMemories({ a, b, winner: winner ?? undefined }));
      const { weight, created_at, updated_at, written_by } = stated;
      send(200, { ok: true, a, b, weight, created_at, updated_at, written_by });
    },
  }),
  route({
    method: 'get',
    path: '/memory/contradictions',
    name: 'listContradictions',
    access: 'read',
    forBoundKeys: true,
    summary: 'Lists contradictions that are proposed and not decided, the latest first',
    description:
      'With `OM_CONTRADICTIONS=forms` or `llm` Cairn proposes contradictions between memories of one user. Both ' +
      'memories stay active. `POST /memory/contradict` with a winner, or `POST /memory/supersede`, accepts a ' +
      'proposal; `DELETE /memory/link` with the type `contradicts` dismisses it. It comes back only if one of the ' +
      'two texts changes.',
    query: proposalQuery,
    replies: {
      200: {
        description: 'The proposals, where both memories are active.',
        json: proposalList,
        example: {
          items: [
            {
              user_id: 'ana',
              earlier: { id: OLDER, content: 'I live in Madrid.', event_time: STATED_AT, created_at: STATED_AT },
              later: { id: NEWER, content: 'I moved to Valencia.', event_time: STATED_AT, created_at: STATED_AT },
              by: 'form',
              similarity: null,
              created_at: STATED_AT,
            },
          ],
        },
      },
    },
    async handle(call) {
      const { user_id, limit } = call.query;
      const items = await call.tenant.listProposals({ userId: user_id, limit });
      await sendPairs(call, items, proposalItem);
    },
  }),
  route({
    method: 'get',
    path: '/memory/duplicates',
    name: 'listNearDuplicates',
    access: 'read',
    forBoundKeys: true,
    limited: ['queries'],
    summary: 'Lists pairs of memories that say nearly the same, the most similar first',
    description:
      'A pair is two active memories of one user that a waypoint joins, as each memory leads to its nearest. Exact ' +
      'duplicates are mostly not there, as they are not stored twice. `POST /memory/supersede` and ' +
      '`DELETE /memory/:id` make one of two.',
    query: nearDuplicateQuery,
    replies: {
      200: {
        description: 'The pairs.',
        json: nearDuplicateList,
        example: {
          items: [
            {
              user_id: 'ana',
              earlier: { id: OLDER, content: 'I live in Madrid.', event_time: STATED_AT, created_at: STATED_AT },
              later: { id: NEWER, content: 'I live in Madrid now.', event_time: STATED_AT, created_at: STATED_AT },
              similarity: 0.95,
            },
          ],
          degraded: false,
        },
      },
    },
    async handle(call) {
      const { user_id, min_similarity, limit } = call.query;
      const asked = { userId: user_id, leastSimilarity: min_similarity, limit };
      const { items, isCut } = await call.tenant.listNearDuplicates(asked);
      await sendPairs(call, items, nearDuplicateItem, isCut);
    },
  }),
  route({
    method: 'get',
    path: '/memory/:id/links',
    name: 'listLinks',
    access: 'read',
    forBoundKeys: true,
    summary: 'Lists links of all types from and to a memory, the highest weight first',
    description:
      'The list has at most 1,000 links. A waypoint that Cairn made leads to the nearest memory of the same user: ' +
      '`similarity` is the measured value; `weight` starts at that value and grows with recall.',
    params: { id: MEMORY_ID },
    query: ownerQuery,
    replies: {
      200: {
        description: 'The links of the memory.',
        json: linkList,
        example: {
          id: OTHER,
          items: [
            {
              id: OLDER,
              type: 'waypoint',
              direction: 'out',
              similarity: 0.86,
              weight: 0.86,
              automatic: true,
              created_at: STATED_AT,
              updated_at: STATED_AT,
              written_by: null,
            },
          ],
        },
      },
    },
    errors: { not_found: 'No memory of this user has this id.' },
    async handle({ tenant, params, query, send }) {
      const { id } = await getOwnedMemory(tenant, params.id, query.user_id);
      send(200, { id, items: (await tenant.listLinks(id)).map(linkItem) });
    },
  }),
];

/**
 * Answers with pairs of memories, piece by piece and at most 8 MiB, since one memory may be in many pairs.
 * @param isCut whether pairs were left out before; if it is given, the reply has the field `degraded`
 */
async function sendPairs<Pair>(
  call: TenantCall,
  pairs: readonly Pair[],
  toJson: (pair: Pair) => unknown,
  isCut?: boolean,
): Promise<void> {
  const make = async (reply: JsonReply) => {
    reply.add('{"items":');
    const sent = await reply.addList([pairs], { toJson });
    await reply.end(isCut === undefined ? '}' : `,"degraded":${isCut || sent.isCut}}`);
  };
  await sendInPieces(call, make, PAIRS_BYTES);
}

function nearDuplicateItem({ earlier, later, similarity }: NearDuplicates['items'][number]): NearDuplicateItem {
  return { user_id: later.userId, earlier: shown(earlier), later: shown(later), similarity };
}

function shown({ id, content, eventTime, createdAt }: Memory): ProposalItem['earlier'] {
  return { id, content, event_time: eventTime, created_at: createdAt };
}

function proposalItem({ earlier, later, by, similarity, createdAt }: Proposal): ProposalItem {
  return {
    user_id: later.userId,
    earlier: shown(earlier),
    later: shown(later),
    by,
    similarity,
    created_at: createdAt,
  };
}

/**
 * Checks that memories belong to a user, if the request names one. Another user's memory counts as absent.
 * @param ids memory ids by the name of the field that holds them
 * @throws EngineError `not_found`, naming the field
 */
async function requireOwned(
  tenant: Tenant,
  userId: string | null | undefined,
  ids: Readonly<Record<string, string>>,
): Promise<void> {
  if (userId == null) return;
  for (const [field, id] of Object.entries(ids)) {
    if ((await findOwner(tenant, id)) !== userId)
      throw new EngineError('not_found', `${field}: no memory with this id`);
  }
}

async function findOwner(tenant: Tenant, id: string): Promise<string | undefined> {
  try {
    return (await tenant.getMemory(id)).userId;
  } catch (error) {
    if (isEngineError(error, 'not_found')) return undefined;
    throw error;
  }
}
