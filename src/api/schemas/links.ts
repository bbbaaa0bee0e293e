/** Schemas of links between memories. */
import { z } from 'zod';
import {
  EDGE_TYPES,
  MAX_NEAR_DUPLICATES,
  MAX_PROPOSALS,
  MEMORY_STATUSES,
  NEAR_DUPLICATE_COSINE,
} from '../../engine/index.ts';
import { link, timestamp, unit, uuid } from './memory-replies.ts';
import { BODY_EXPECTED, choice, digits, expected, fraction, givenId, id, decimal, type Wire } from './values.ts';

const owner = id
  .nullish()
  .describe("The user who must own the memories: another user's memory is a 404. The field is not stored.");
const ends = {
  user_id: owner,
  src: givenId.describe('The memory where the link begins.'),
  dst: givenId.describe('The memory where the link ends; not the same as `src`.'),
};
const STATED_TYPES = EDGE_TYPES.filter((type) => type !== 'supersedes' && type !== 'contradicts');

/** Schema of the JSON body of `POST /memory/link`, which states a link between two memories, or changes its weight. */
export const linkSchema = z.strictObject(
  {
    ...ends,
    type: z
      .enum(
        STATED_TYPES,
        expected(
          `one of ${STATED_TYPES.join(', ')}; ` +
            'supersedes and contradicts have POST /memory/supersede and /memory/contradict',
        ),
      )
      .describe('Type of the link.'),
    weight: fraction
      .nullish()
      .describe(
        'Share of the activation that passes the link in a query. If left out, an existing link keeps its weight, ' +
          'and a new one has that of its type.',
      ),
  },
  BODY_EXPECTED,
);

/** Schema of the JSON body of `DELETE /memory/link`, which removes a link, stated or automatic. */
export const unlinkSchema = z.strictObject(
  {
    ...ends,
    type: choice(EDGE_TYPES).describe(
      'Type of the link. For `supersedes`, `src` is the new memory; for `contradicts` the order does not matter.',
    ),
  },
  expected('an object'),
);

/** Schema of the JSON body of `POST /memory/supersede`, which states that a newer memory replaces an older one. */
export const supersedeSchema = z.strictObject(
  {
    user_id: owner,
    old_id: givenId.describe('The memory that is replaced.'),
    new_id: givenId.describe('The memory that replaces it, of the same user.'),
  },
  BODY_EXPECTED,
);

/** Schema of the JSON body of `POST /memory/contradict`, which states that two memories contradict each other. */
export const contradictSchema = z.strictObject(
  {
    user_id: owner,
    a: givenId.describe('One of the two memories.'),
    b: givenId.describe('The other memory, of the same user.'),
    winner: givenId
      .nullish()
      .describe('The memory that is right, as the id given in `a` or `b`; the other becomes `contradicted`.'),
  },
  BODY_EXPECTED,
);

/**
 * Schema of the query string of `GET /memory/contradictions`, which lists contradictions that are proposed and not
 * decided, the latest first.
 */
export const proposalQuery = z.strictObject({
  user_id: id.optional().describe('Only contradictions between memories of this user; all users by default.'),
  limit: digits(1, MAX_PROPOSALS).default(50).describe('Greatest number of proposals, the latest first.'),
});

/**
 * Schema of the query string of `GET /memory/duplicates`, which lists pairs of memories that say nearly the same, the
 * most similar first.
 */
export const nearDuplicateQuery = z.strictObject({
  user_id: id.optional().describe('Only memories of this user; all users by default.'),
  min_similarity: decimal(1).default(NEAR_DUPLICATE_COSINE).describe('Cosine similarity from which a pair is listed.'),
  limit: digits(1, MAX_NEAR_DUPLICATES).default(50).describe('Greatest number of pairs, the most similar first.'),
});

const { type, similarity, weight, automatic, created_at, updated_at, written_by } = link.shape;
const stated = { weight, created_at, updated_at, written_by };

/** Schema of the reply 200 to `POST /memory/link`, which states a link between two memories, or changes its weight. */
export const linkedReply = z.strictObject({
  ok: z.literal(true),
  src: uuid,
  dst: uuid,
  type,
  similarity,
  automatic,
  ...stated,
});
/** Schema of the reply 200 to `DELETE /memory/link`, which removes a link, stated or automatic. */
export const unlinkedReply = z.strictObject({ ok: z.literal(true), src: uuid, dst: uuid, type });
/** Schema of the reply 200 to `POST /memory/supersede`, which states that a newer memory replaces an older one. */
export const supersededReply = z.strictObject({
  ok: z.literal(true),
  old_id: uuid,
  new_id: uuid,
  status: z.enum(MEMORY_STATUSES).describe('Status of the old memory.'),
  valid_to: timestamp.nullable().describe('End of validity of the old memory.'),
  version: z.int().min(1).describe('Version of the old memory.'),
});
/** Schema of the reply 200 to `POST /memory/contradict`, which states that two memories contradict each other. */
export const contradictedReply = z.strictObject({ ok: z.literal(true), a: uuid, b: uuid, ...stated, weight: unit });
const proposed = z
  .strictObject({ id: uuid, content: z.string(), event_time: timestamp, created_at: timestamp })
  .meta({ id: 'ProposedMemory' });
/**
 * Schema of the reply 200 to `GET /memory/contradictions`, which lists contradictions that are proposed and not
 * decided, the latest first.
 */
export const proposalList = z.strictObject({
  items: z.array(
    z
      .strictObject({
        user_id: z.string().describe('The user of both memories.'),
        earlier: proposed.describe('The memory that was added first.'),
        later: proposed.describe('The memory that was added second.'),
        by: z.enum(['form', 'model']).describe('Whether the form of the texts says so, or a language model.'),
        similarity,
        created_at: timestamp.describe('When the contradiction was proposed.'),
      })
      .meta({ id: 'ProposedContradiction' }),
  ),
});
export type ProposalItem = Wire<typeof proposalList>['items'][number];
/**
 * Schema of the reply 200 to `GET /memory/duplicates`, which lists pairs of memories that say nearly the same, the most
 * similar first.
 */
export const nearDuplicateList = z.strictObject({
  items: z.array(
    z
      .strictObject({
        user_id: z.string().describe('The user of both memories.'),
        earlier: proposed.describe('The memory that was added first.'),
        later: proposed.describe('The memory that was added second.'),
        similarity: z.number().describe('Cosine similarity, as measured when the waypoint was made.'),
      })
      .meta({ id: 'NearDuplicates' }),
  ),
  degraded: z.boolean().describe('True if the work that one request may cause ended before all were looked at.'),
});
export type NearDuplicateItem = Wire<typeof nearDuplicateList>['items'][number];
/**
 * Schema of the reply 200 to `GET /memory/:id/links`, which lists links of all types from and to a memory, the highest
 * weight first.
 */
export const linkList = z.strictObject({ id: uuid, items: z.array(link) });
