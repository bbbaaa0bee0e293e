import { z } from 'zod';
import { EDGE_TYPES, MEMORY_STATUSES } from '../../engine/index.ts';
import { link, timestamp, unit, uuid } from './memory-replies.ts';
import { BODY_EXPECTED, choice, expected, fraction, givenId, id } from './values.ts';

/** Links between memories, as requests state them and replies show them. */

const owner = id.nullish().describe("Not stored: another user's memories are a 404.");
const ends = {
  user_id: owner,
  src: givenId.describe('The memory that it leads from.'),
  dst: givenId.describe('The memory that it leads to; another than `src`.'),
};
const STATED_TYPES = EDGE_TYPES.filter((type) => type !== 'supersedes' && type !== 'contradicts');

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
      .describe('What the link says.'),
    weight: fraction
      .nullish()
      .describe('How much of what a query woke passes it. Left out, a link that is there keeps its weight.'),
  },
  BODY_EXPECTED,
);

export const unlinkSchema = z.strictObject(
  {
    ...ends,
    type: choice(EDGE_TYPES).describe(
      'Also `supersedes` (from the new memory to the old) and `contradicts` (either way round).',
    ),
  },
  expected('an object'),
);

export const supersedeSchema = z.strictObject(
  {
    user_id: owner,
    old_id: givenId.describe('The memory that gives way.'),
    new_id: givenId.describe('The memory that takes its place, of the same user.'),
  },
  BODY_EXPECTED,
);

export const contradictSchema = z.strictObject(
  {
    user_id: owner,
    a: givenId.describe('One of the two.'),
    b: givenId.describe('The other, of the same user.'),
    winner: givenId.nullish().describe('The id of `a` or `b` that is right: the other becomes `contradicted`.'),
  },
  BODY_EXPECTED,
);

const { type, similarity, weight, automatic, created_at, updated_at } = link.shape;
const stated = { weight, created_at, updated_at };

export const linkedReply = z.strictObject({
  ok: z.literal(true),
  src: uuid,
  dst: uuid,
  ...{ type, similarity, automatic, ...stated },
});
export const unlinkedReply = z.strictObject({ ok: z.literal(true), src: uuid, dst: uuid, type });
export const supersededReply = z.strictObject({
  ok: z.literal(true),
  old_id: uuid,
  new_id: uuid,
  status: z.enum(MEMORY_STATUSES).describe("The old memory's."),
  valid_to: timestamp.nullable().describe("The old memory's."),
  version: z.int().min(1).describe("The old memory's."),
});
export const contradictedReply = z.strictObject({ ok: z.literal(true), a: uuid, b: uuid, ...stated, weight: unit });
export const linkList = z.strictObject({ id: uuid, items: z.array(link) });
