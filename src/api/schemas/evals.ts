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
  user_id: id
    .optional()
    .describe('The user whose memories are searched; `""` for memories of no particular user; all users if left out.'),
  k: integer(1, 100).optional().describe('Greatest number of hits; 10 if left out.'),
  expected: entries.describe(
    'What the answer must contain. An entry that is a UUID is the id of a memory that must be among the hits. The ' +
      'words of any other entry must stand in the title or content of one hit, next to each other and in this order; ' +
      'case, accents and punctuation do not matter. With an empty list, the query must return no hit.',
  ),
  forbidden: entries.optional().describe('Entries, as in `expected`, that no hit may be or contain; none if left out.'),
});

const evalName = givenId.regex(/^[\w.-]{1,64}$/, 'expected 1..64 of letters, digits, ., - and _');

const QUESTIONS = 'The questions of the set, each with what its answer must contain.';
const items = z
  .array(item, expected('an array of items'))
  .max(EVAL_LIMITS.items, `expected at most ${EVAL_LIMITS.items} items`)
  .describe(QUESTIONS);

/** Schema of the JSON body of `POST /evals`, which stores an evaluation set in place of the one of the same name. */
export const evalSet = z.strictObject(
  {
    name: evalName.describe('Name of the set.'),
    guard: flag
      .optional()
      .describe(
        'If true, the set guards two kinds of change: of the query defaults, and of the embedding model. A change ' +
          'that lowers `recall` or `rightly_empty` of the set, or raises `forbidden`, is refused unless it is ' +
          'forced. False if left out.',
      ),
    items: items.min(1, 'expected at least one item').describe(QUESTIONS),
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
    version: z.string().describe('Version of Cairn that made the run.'),
    model: z.string().describe('The embedding models whose vectors were searched; `none` for words alone.'),
    settings: z
      .string()
      .describe(
        'Hash of the settings that queries read, 16 hexadecimal digits. Runs with equal settings have equal hashes.',
      ),
    changed: z
      .array(z.enum(EVAL_CHANGES))
      .describe('What differs from the run before; empty if nothing does, and for the first run.'),
    items: count.describe('Number of items (queries) that were run.'),
    recall: share.describe(
      'Mean share of the expected entries that were found, over the items that expect any; null if none does.',
    ),
    precision: share.describe(
      'Mean share of the hits that contain an expected entry, over the items that expect any and had hits; ' +
        'null if there are no such items.',
    ),
    rightly_empty: share.describe(
      'Share of the items with an empty `expected` to which no hit was returned; null if there are no such items.',
    ),
    forbidden: count.describe('Number of items whose answer contained a forbidden entry.'),
    p95_ms: z
      .number()
      .min(0)
      .describe('Time within which 95 of 100 queries of the run were answered, ms; 0 for a run without items.'),
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
  items: count.describe('Number of items (queries).'),
  updated_at: timestamp.describe('When the set was last stored.'),
  last_run: run.nullable().describe('The latest run; null if the set was never run.'),
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
        place: count.describe('Index of the item in the set, from 0.'),
        hits: z.array(z.string()).describe('Ids of the hits, best first.'),
        missing: z.array(z.string()).describe('Entries of `expected` that the answer did not contain.'),
        forbidden: z.array(z.string()).describe('Entries of `forbidden` that the answer contained.'),
        ms: z.number().min(0).describe('Duration of the query, ms.'),
      }),
    )
    .describe('The result of each item.'),
});
export type EvalRunReply = Wire<typeof evalRunReply>;

/** Schema of the reply 200 to `DELETE /evals/:name`, which deletes an evaluation set and its runs. */
export const evalDeleted = z.strictObject({ deleted: z.literal(true) });

/**
 * Schema of the query string of `GET /evals/:name/runs`, which lists the runs of an evaluation set, newest first. Each
 * run names what changed since the run before, such as settings or the model.
 */
export const evalRunsQuery = z.strictObject({
  limit: digits(1, EVAL_LIMITS.runs).default(20).describe('Greatest number of runs to list.'),
});
/**
 * Schema of the reply 200 to `GET /evals/:name/runs`, which lists the runs of an evaluation set, newest first. Each run
 * names what changed since the run before, such as settings or the model.
 */
export const evalRuns = z.strictObject({ items: z.array(run).describe('Newest first.') });

/**
 * Schema of the query string of `PUT /settings/retrieval`, which replaces all defaults that this tenant has for its
 * queries.
 */
export const forceQuery = z.strictObject({
  force: choice(['true', 'false'])
    .default('false')
    .describe(
      'With `true`, the defaults are set even if they lower the measures of a guarded evaluation set; with ' +
        '`false`, the default, they are then refused.',
    ),
});
