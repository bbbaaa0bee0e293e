/** Schemas of evaluation sets and their runs. */
import { z } from 'zod';
import { EVAL_CHANGES, EVAL_LIMITS } from '../../engine/index.ts';
import { LIMITS } from './value-limits.ts';
import { count, timestamp, unit } from './memory-replies.ts';
import { BODY_EXPECTED, choice, digits, expected, flag, givenId, id, integer, text, type Wire } from './values.ts';

const entry = text(512).refine(
  (value) => /[\p{L}\p{N}\p{Extended_Pictographic}]/u.test(value),
  'expected an id or words',
);
const entries = z
  .array(entry, expected('an array of ids or words'))
  .max(EVAL_LIMITS.entries, `expected at most ${EVAL_LIMITS.entries} entries`);

const item = z.strictObject({
  query: text(LIMITS.queryCharacters)
    .refine((value) => value.trim() !== '', 'must not be empty')
    .describe('The question.'),
  user_id: id.optional().describe('The user whose memories are asked; all users if left out.'),
  k: integer(1, 100).optional().describe('Most hits, 10 if left out.'),
  expected: entries.describe(
    'Ids of memories that must be hits, and texts whose words must stand in a row in one of the hits; empty: no hit ' +
      'may come.',
  ),
  forbidden: entries.optional().describe('Ids and texts, as in `expected`, that no hit may be or hold.'),
});

const evalName = givenId.regex(/^[\w.-]{1,64}$/, 'expected 1..64 of letters, digits, ., - and _');

const items = z
  .array(item, expected('an array of items'))
  .max(EVAL_LIMITS.items, `expected at most ${EVAL_LIMITS.items} items`)
  .describe('The questions.');

/** Schema of the JSON body of `POST /evals`, which stores an evaluation set in place of the one of the same name. */
export const evalSet = z.strictObject(
  {
    name: evalName.describe('Name of the set.'),
    guard: flag
      .optional()
      .describe(
        'If true, a change of the query defaults is refused if it lowers `recall` or `rightly_empty` of the set or ' +
          'raises `forbidden`, unless it is forced.',
      ),
    items: items.min(1, 'expected at least one item').describe('The questions.'),
  },
  BODY_EXPECTED,
);
/**
 * Schema of the reply 200 to `GET /evals/:name`, which shows an evaluation set with its items. A set has none left if
 * all of them were about users who were erased.
 */
export const storedEvalSet = evalSet.extend({ items });
export type EvalSetBody = z.output<typeof evalSet>;
export type EvalSetItem = Wire<typeof storedEvalSet>;

const share = unit.nullable();

const run = z
  .strictObject({
    at: timestamp,
    version: z.string().describe('Version of Cairn.'),
    model: z.string().describe('The embedding models whose vectors were searched; `none` for words alone.'),
    settings: z
      .string()
      .describe('Hash of the settings that queries read, 16 hex digits, to see whether two runs had the same.'),
    changed: z.array(z.enum(EVAL_CHANGES)).describe('What differs from the run before.'),
    items: count.describe('Items that were asked.'),
    recall: share.describe('Mean share of the expected entries that were found; null if no item expects any.'),
    precision: share.describe('Mean share of the hits that hold something expected; null without such hits.'),
    rightly_empty: share.describe('Share of the items that expect nothing for which nothing came; null without any.'),
    forbidden: count.describe('Items that had a forbidden hit.'),
    p95_ms: z.number().min(0).describe('Time within which 95 of 100 queries were answered, ms.'),
  })
  .meta({
    id: 'EvalRun',
    examples: [
      {
        at: 1795265978965,
        version: '0.2.0',
        model: 'none',
        settings: '9b74c9897bac770f',
        changed: ['settings'],
        items: 40,
        recall: 0.95,
        precision: 0.41,
        rightly_empty: 1,
        forbidden: 0,
        p95_ms: 12.5,
      },
    ],
  });
export type EvalRunItem = Wire<typeof run>;

const summary = z.strictObject({
  name: z.string(),
  guard: z.boolean(),
  items: count,
  updated_at: timestamp,
  last_run: run.nullable(),
});
export type EvalSummaryItem = Wire<typeof summary>;
/** Schema of the reply 200 to `POST /evals`, which stores an evaluation set or replaces the set of the same name. */
export const evalSummary = summary;
/** Schema of the reply 200 to `GET /evals`, which lists the evaluation sets, each with its last run. */
export const evalList = z.strictObject({ items: z.array(summary) });

/**
 * Schema of the reply 200 to `POST /evals/:name/run`, which sends all queries of an evaluation set and stores the
 * measures (recall, precision …).
 */
export const evalRunReply = z.strictObject({
  run,
  items: z
    .array(
      z.strictObject({
        place: count.describe('Place of the item in the set, from 0.'),
        hits: z.array(z.string()).describe('Ids of the hits, best first.'),
        missing: z.array(z.string()).describe('Expected entries that were not found.'),
        forbidden: z.array(z.string()).describe('Forbidden entries that were found.'),
        ms: z.number().min(0),
      }),
    )
    .describe('What came of each item.'),
});
export type EvalRunReply = Wire<typeof evalRunReply>;

/** Schema of the reply 200 to `DELETE /evals/:name`, which deletes an evaluation set and its runs. */
export const evalDeleted = z.strictObject({ deleted: z.literal(true) });

/**
 * Schema of the query string of `GET /evals/:name/runs`, which lists the runs of an evaluation set, newest first. Each
 * run names what changed since the run before, such as settings or the model.
 */
export const evalRunsQuery = z.strictObject({
  limit: digits(1, EVAL_LIMITS.runs).default(20).describe('Most runs to list.'),
});
/**
 * Schema of the reply 200 to `GET /evals/:name/runs`, which lists the runs of an evaluation set, newest first. Each run
 * names what changed since the run before, such as settings or the model.
 */
export const evalRuns = z.strictObject({ items: z.array(run).describe('Newest first.') });

/**
 * Schema of the query string of `PUT /settings/retrieval`, which replaces all of this tenant's defaults, from the next
 * query on.
 */
export const forceQuery = z.strictObject({
  force: choice(['true', 'false'])
    .default('false')
    .describe('`true` sets the defaults even if a guarded evaluation set falls.'),
});
