import { z } from 'zod';
import { LIMITS } from './limits.ts';
import { count, uuid } from './memory-replies.ts';
import { page, userId } from './values.ts';

/** The names that memories mention and what they state about two of them. */

export const entitiesQuery = z.strictObject({
  ...page,
  q: z
    .string()
    .max(LIMITS.labelCharacters, `expected at most ${LIMITS.labelCharacters} characters`)
    .default('')
    .meta({ description: 'What the name begins with, whatever its case.', examples: ['j'] }),
  user_id: userId.optional().describe("Only names that this user's memories mention."),
});

const summary = {
  name: z.string().describe('Folded: lower case, without accents.'),
  label: z.string().describe('As the first memory writes it that still mentions it.'),
  type: z.string(),
  mentions: count.describe('Memories that mention it and that a query could find.'),
};
const EXAMPLE = { name: 'jwt', label: 'JWT', type: 'technology', mentions: 2 };

export const entityPage = z.strictObject({
  items: z.array(z.strictObject(summary).meta({ id: 'Entity', examples: [EXAMPLE] })),
});

export const entityDetails = z
  .strictObject({
    ...summary,
    relations: z
      .array(
        z.strictObject({
          type: z.string(),
          direction: z.enum(['out', 'in']).describe('`out` where this name is the source of the relation.'),
          name: z.string(),
          label: z.string(),
          memories: count.describe('Memories that state it.'),
        }),
      )
      .describe('What is stated about it and another name; the most often stated first, at most 100.'),
    memory_ids: z.array(uuid).describe('The latest first, at most 100.'),
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
