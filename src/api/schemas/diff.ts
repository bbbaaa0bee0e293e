/** Schemas of differences between two times. */
import { z } from 'zod';
import { DIFF_AXES } from '../../engine/index.ts';
import { LIMITS } from './value-limits.ts';
import { count, storedMemory, timestamp, unit, uuid } from './memory-replies.ts';
import { choice, decimal, digits, givenId, id, label, queryTime, text, type Wire } from './values.ts';

/**
 * Schema of the query string of `GET /diff`, which reports the memories that became known, were changed, replaced,
 * contradicted, ended, faded or erased between two times.
 */
export const diffQuery = z.strictObject({
  from: queryTime.describe('Start of the window, excluded.'),
  to: queryTime.optional().describe('End of the window, included; the present by default.'),
  axis: choice(DIFF_AXES)
    .default('recorded')
    .describe(
      '`recorded`: what was stored and changed in the window. `valid`: what began or ended in the window, by ' +
        'what is known now.',
    ),
  user_id: id.optional().describe('Only memories of this user; all users by default.'),
  session_id: givenId.optional().describe('Only memories of this session.'),
  tag: label(LIMITS.labelCharacters).optional().describe('Only memories with this tag.'),
  topic: text(LIMITS.queryCharacters)
    .refine((value) => value.trim() !== '', 'must not be empty')
    .optional()
    .describe('Only the 200 best memories that a query with this text finds, also those that do not hold at present.'),
  faded_below: decimal(1).default(0.1).describe('Salience under which a memory counts as faded.'),
  limit: digits(1, 200).default(50).describe('Greatest number of entries of each list.'),
  format: choice(['json', 'prompt']).default('json').describe('`prompt` adds a `text` for a language model.'),
  token_budget: digits(1, LIMITS.tokenBudget).optional().describe('Greatest number of estimated tokens of the `text`.'),
});
export type DiffQuery = z.output<typeof diffQuery>;

const entry = z.strictObject({ memory: storedMemory, at: timestamp.describe('When the change happened.') });
const lists = {
  added: z.array(entry).describe('Memories that were stored (axis `recorded`), or began to hold (`valid`).'),
  changed: z
    .array(entry.extend({ before: storedMemory, fields: z.array(z.string()).describe('Names of the changed fields.') }))
    .describe('Memories that were changed, as they were at both ends of the window. Their text may have stayed.'),
  superseded: z
    .array(entry.extend({ by: storedMemory.nullable() }))
    .describe('Memories that another one replaced; `by` is null if that one was erased or cannot be shown.'),
  contradicted: z
    .array(
      z.strictObject({
        a: storedMemory,
        b: storedMemory,
        winner: uuid.nullable().describe('The memory for which it was decided; null while it is undecided.'),
        automatic: z.boolean().describe('Whether Cairn or a language model found it, rather than a client.'),
        at: timestamp.describe('When it was recorded.'),
      }),
    )
    .describe('Pairs of memories about which it was recorded that they contradict each other.'),
  ended: z.array(entry).describe('Memories whose validity ended before a successor began, or without one.'),
  archived: z.array(entry).describe('Memories that were archived.'),
  restored: z
    .array(entry)
    .describe(
      'Memories that are active at the end of the window and were superseded, contradicted or archived at its start.',
    ),
  faded: z
    .array(z.strictObject({ memory: storedMemory, salience_from: unit, salience_to: unit }))
    .describe('Memories whose salience fell below `faded_below`; the one with the highest `salience_from` first.'),
};

/**
 * Schema of the reply 200 to `GET /diff`, which reports the memories that became known, were changed, replaced,
 * contradicted, ended, faded or erased between two times.
 */
export const diffReply = z.strictObject({
  from: timestamp,
  to: timestamp,
  axis: z.enum(DIFF_AXES),
  ...lists,
  counts: z
    .strictObject({
      added: count,
      changed: count,
      superseded: count,
      contradicted: count,
      ended: count,
      archived: count,
      restored: count,
      faded: count,
    })
    .describe('Entries of each list before it was cut to `limit` and to 512 KiB of text.'),
  erased: z
    .strictObject({ deleted: count, expired: count })
    .nullable()
    .describe(
      'Numbers of memories that were deleted and that expired in the whole tenant, by the audit log, without those ' +
        'of documents that were deleted by themselves; null with a filter or a topic, with `axis=valid`, with ' +
        '`OM_AUDIT=off`, and if the log does not reach back to `from`.',
    ),
  degraded: z
    .boolean()
    .describe(
      'True if not all memories were looked at, for the `topic` or for the lists, as one request may only read so ' +
        'much (`OM_QUERY_WORK_MB`).',
    ),
  text: z.string().exactOptional().describe('All this as a text for a language model, if `format` is `prompt`.'),
  tokens: count.exactOptional().describe('Estimated tokens of `text`.'),
  truncated: z
    .literal(true)
    .exactOptional()
    .describe('Entries were left out, as the reply may have at most 8 MiB; absent otherwise.'),
});
export type DiffReply = Wire<typeof diffReply>;
