/** Schemas of the names that memories mention and of the relations between them. */
import { z } from 'zod';
import { LIMITS } from './value-limits.ts';
import { count, uuid } from './memory-replies.ts';
import { page, userId } from './values.ts';

/**
 * Schema of the query string of `GET /entities`, which lists entities (names that memories mention), the most mentioned
 * first.
 */
export const entitiesQuery = z.strictObject({
  ...page,
  q: z
    .string()
    .max(LIMITS.labelCharacters, `expected at most ${LIMITS.labelCharacters} characters`)
    .default('')
    .meta({ description: 'Beginning of the name, in any case.', examples: ['j'] }),
  user_id: userId.optional().describe("Only names that this user's memories mention."),
});

const summary = {
  name: z.string().describe('The name in lower case and without accents.'),
  label: z.string().describe('The spelling in the first memory that mentions the name.'),
  type: z.string(),
  mentions: count.describe('Memories that mention the name and that a query could find.'),
};
const truncated = (missing: string) =>
  z.literal(true).exactOptional().describe(`${missing}, as not all memories were looked at; absent otherwise.`);
const EXAMPLE = { name: 'jwt', label: 'JWT', type: 'technology', mentions: 2 };

/**
 * Schema of the reply 200 to `GET /entities`, which lists entities (names that memories mention), the most mentioned
 * first.
 */
export const entityPage = z.strictObject({
  items: z.array(z.strictObject(summary).meta({ id: 'Entity', examples: [EXAMPLE] })),
  truncated: truncated('Names may be missing and counts too low'),
});

/**
 * Schema of the reply 200 to `GET /entities/:name`, which shows one entity (a name that memories mention) with its
 * relations to others.
 */
export const entityDetails = z
  .strictObject({
    ...summary,
    relations: z
      .array(
        z.strictObject({
          type: z.string(),
          direction: z.enum(['out', 'in']).describe('`out` if this name is the source of the relation.'),
          name: z.string(),
          label: z.string(),
          memories: count.describe('Memories that state the relation.'),
        }),
      )
      .describe('Relations to other names, the most often stated first; at most 100.'),
    memory_ids: z.array(uuid).describe('Memories that mention the name, the latest first; at most 100.'),
    truncated: truncated('Relations and memories may be missing and counts too low'),
  })
  .meta({
    id: 'EntityDetails',
    examples: [
      {
        ...EXAMPLE,
        relations: [{ type: 'uses', direction: 'in', name: 'authentication', label: 'Authentication', memories: 1 }],
        memory_ids: ['01a1fe31-618a-7633-ac13-ebf5879252ec'],
      },
    ],
  });
