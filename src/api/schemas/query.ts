import { z } from 'zod';
import {
  EXPANSIONS,
  FORMATS,
  type Json,
  MEMORY_STATUSES,
  type Metadata,
  PROFILES,
  RERANKERS,
  SECTORS,
  TEXT_COLUMNS,
  WEIGHT_NAMES,
} from '../../engine/index.ts';
import { LIMITS } from './limits.ts';
import {
  BODY_EXPECTED,
  choice,
  expected,
  flag,
  fraction,
  givenId,
  id,
  integer,
  isObject,
  jsonObject,
  label,
  numberUpTo,
  sector,
  SHOWN_AS,
  someOf,
  tags,
  text,
  time,
  type Wire,
} from './values.ts';

/** What a query, an explanation and a tenant's defaults of queries may say. */

// ── Filters ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const range = z.strictObject(
  { from: time.optional().describe('Included.'), to: time.optional().describe('Excluded.') },
  expected('an object {from, to}'),
);
const ids = z
  .array(id, expected('a list of strings'))
  .min(1, 'must not be empty')
  .max(LIMITS.filterValues, `at most ${LIMITS.filterValues} entries`);

/** A bare value and each operator of a key is a condition. */
const conditionsOf = (condition: Json) =>
  isObject(condition) ? Math.max(1, Object.keys(condition as Metadata).filter((key) => key.startsWith('$')).length) : 1;

const metadataFilter = jsonObject
  .superRefine((value, context) => {
    const refuse = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
    const conditions = Object.entries(value);
    const total = conditions.reduce((sum, [, condition]) => sum + conditionsOf(condition), 0);
    if (total > LIMITS.metadataConditions) {
      return refuse([], `at most ${LIMITS.metadataConditions} conditions, each operator of a key being one`);
    }
    for (const [key, condition] of conditions) {
      if (!isObject(condition)) continue;
      for (const [operator, operand] of Object.entries(condition as Metadata)) {
        if (Array.isArray(operand) && operand.length > LIMITS.filterValues)
          refuse([key, operator], `at most ${LIMITS.filterValues} entries`);
      }
    }
  })
  .register(SHOWN_AS, { type: 'object', additionalProperties: true });

/** Cairn's own filters, and the five that OpenMemory's clients send: sector, user_id, min_score, startTime, endTime. */
const filtersSchema = z
  .strictObject(
    {
      sectors: someOf(SECTORS).optional().describe('Memories of one of these sectors, primary or additional.'),
      types: ids.optional().describe('Memories of one of these types.'),
      tags: tags.optional().describe('A memory must carry all of them.'),
      users: ids.optional().describe('Memories of these users; must agree with every other `user_id`.'),
      sessions: ids.optional().describe('Memories of these sessions.'),
      statuses: someOf(MEMORY_STATUSES).optional().describe('By default `active` alone.'),
      external_ids: ids.optional().describe('Memories with one of these names in your system.'),
      documents: ids.optional().describe('Ids of documents: their chunks and roots.'),
      event_time: range.optional().describe('When it happened.'),
      created_at: range.optional().describe('When it was added.'),
      metadata: metadataFilter
        .optional()
        .describe(
          '`{key: value}` or `{key: {operator: value}}`, at most 32 conditions. Operators are `$eq`, `$ne`, `$gt`, ' +
            '`$gte`, `$lt`, `$lte`, `$in`, `$nin` and `$exists`; several in one object must all hold. A key is a name ' +
            'on the top level, and a dot in it is a dot. Type and value must agree. null stands for a missing key too.',
        ),
      sector: sector.nullish().describe("OpenMemory's name for one sector."),
      user_id: id.nullish().describe("OpenMemory's name for one user."),
      min_score: fraction.nullish().describe('Used where the query itself has no `min_score`.'),
      startTime: time.nullish().describe('As `startTime` of the query.'),
      endTime: time.nullish().describe('As `endTime` of the query.'),
    },
    expected('an object'),
  )
  .meta({ id: 'Filters', description: 'Fields are joined by AND, the values of one list by OR.' });

// ── How an answer is found ───────────────────────────────────────────────────────────────────────────────────────────

/** An object of these names rather than a record, so that an unknown name is told which there are. */
const weightTable = <Name extends string>(names: readonly Name[], most: number) => {
  const weight = numberUpTo(most);
  const shape = Object.fromEntries(names.map((name) => [name, weight.exactOptional()]));
  return z.strictObject(shape as Record<Name, z.ZodExactOptional<typeof weight>>, expected('an object'));
};

/** What a query may say about how it is answered, and a tenant's defaults with it. */
const retrievalFields = {
  profile: choice(PROFILES).describe('How a match is scored; `composite` by default.'),
  weights: weightTable(WEIGHT_NAMES, 1).describe(
    "Weights of the profile by name; those left out keep theirs. A name that the query's profile does not read is a 400.",
  ),
  column_weights: weightTable(TEXT_COLUMNS, LIMITS.columnWeight).describe(
    'What a word counts by the column it stands in; those left out keep theirs.',
  ),
  vector_weight: fraction.describe(
    '0 for words only, 1 for vectors only; by default 0.05 offline and 0.5 with a model.',
  ),
  k_sparse: integer(1, LIMITS.candidates).describe("Candidates taken from the words' list; `k` + 20 by default."),
  k_dense: integer(1, LIMITS.candidates).describe(
    "Candidates taken from the vectors' list; `k`, at least 20, by default.",
  ),
  dense_sectors: choice(['all', 'candidate']).describe(
    '`candidate`: where the query says what kind of memory it is after, the nearest `k_dense` of each such sector.',
  ),
  session_prior: fraction.describe(
    'How much a match gains at most from others of its session that fit; 0.1 by default.',
  ),
  max_hops: integer(0, LIMITS.hops).describe('Links followed from the best direct hits; 2 by default.'),
  decay_per_hop: fraction.describe('Share of the activation that is left after each link; 0.5 by default.'),
  entity_graph: flag.describe('Memories about what the names of the query are related to take part; true by default.'),
  rerank: choice(RERANKERS).describe(
    'How the first candidates are looked at again; `builtin` by default. `llm` needs `OM_LLM_MODEL`.',
  ),
  min_score: fraction.describe('Matches with a lower `score` are left out; `OM_MIN_SCORE` (0.3) by default.'),
  relative_floor: fraction.describe("Matches whose `raw_score` is under this share of the best one's are left out."),
  per_document: integer(0, LIMITS.k).describe(
    'Most matches derived from one memory, itself included; 2 by default, 0 for any number. Applies while `k` is at ' +
      'most 10. Unless it is 0, the root of a document gives way to a chunk of it that fits.',
  ),
};

type Fields = Readonly<Record<string, z.ZodType>>;

const eachNullish = <Shape extends Fields>(shape: Shape) =>
  mapFields(shape, (field) => field.nullish().describe(field.description ?? '')) as {
    [Name in keyof Shape]: z.ZodOptional<z.ZodNullable<Shape[Name]>>;
  };
const eachOptional = <Shape extends Fields>(shape: Shape) =>
  mapFields(shape, (field) => field.optional()) as { [Name in keyof Shape]: z.ZodOptional<Shape[Name]> };
const mapFields = (shape: Fields, change: (field: z.ZodType) => z.ZodType): Fields =>
  Object.fromEntries(Object.entries(shape).map(([name, field]) => [name, change(field)]));

const retrievalOptions = eachNullish(retrievalFields);
export const retrievalSchema = z.strictObject(retrievalOptions, BODY_EXPECTED);
export type RetrievalBody = z.output<typeof retrievalSchema>;

/** A tenant's defaults: what was put and nothing else, so that it can be sent back as it is. */
export const retrievalReply = z
  .strictObject(eachOptional(retrievalFields))
  .meta({ id: 'RetrievalDefaults', examples: [{ profile: 'activation', weights: { recency: 0.1 }, max_hops: 1 }] });
export type RetrievalItem = Wire<typeof retrievalReply>;

// ── Queries ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const asOf = z.union(
  [
    time,
    z
      .strictObject({
        valid: time.optional().describe('Memories that had happened and held then.'),
        recorded: time.optional().describe('Memories that had been stored by then, as they stood then.'),
      })
      .refine(
        ({ valid, recorded }) => valid !== undefined || recorded !== undefined,
        'names neither valid nor recorded',
      )
      .meta({ id: 'AsOf' }),
  ],
  expected('a time, or an object {valid, recorded} of times'),
);

export const querySchema = z
  .strictObject(
    {
      query: text(LIMITS.queryCharacters)
        .min(1, 'must not be empty')
        .describe('Plain text, any word of which may match; `"a phrase"` in double quotes counts as one term.'),
      k: integer(1, LIMITS.k).nullish().describe('Most matches; 8 by default.'),
      user_id: id.nullish().describe('Only memories of this user, `""` for nobody\'s; all users by default.'),
      filters: filtersSchema.nullish().describe('Which memories take part.'),
      startTime: time.nullish().describe("OpenMemory's name: `created_at` from this time on, included."),
      endTime: time.nullish().describe("OpenMemory's name: `created_at` up to this time, included."),
      ...retrievalOptions,
      token_budget: integer(1, LIMITS.tokenBudget)
        .nullish()
        .describe(
          "Most estimated tokens of the matches' contents, or of the whole text with `format` `prompt` or `text`. A " +
            'match that does not fit is skipped, and a shorter one behind it may come.',
        ),
      deep_recall: flag
        .nullish()
        .describe('Superseded, contradicted and archived memories take part, for 0.5, 0.3 and 0.5 of their score.'),
      as_of: asOf.nullish().describe('A moment to look back to; a bare time is `valid`.'),
      top_k: z
        .strictObject(
          {
            knowledge: integer(0, LIMITS.k).optional().describe('Matches that are derived from others.'),
            episodes: integer(0, LIMITS.k).optional().describe('Matches that others are derived from.'),
          },
          expected('an object {knowledge, episodes}'),
        )
        .nullish()
        .describe('Most matches of a kind.'),
      include_episodes: flag.nullish().describe('Adds `episodes` to the reply; true by default for `prompt` alone.'),
      expand: someOf(EXPANSIONS)
        .nullish()
        .describe(
          '`neighbours`: two memories before and after each match in its session; `document`: up to three that it ' +
            'is derived from.',
        ),
      reinforce: flag
        .nullish()
        .describe('false leaves memories and links as they are; `OM_DECAY_REINFORCE_ON_QUERY` by default.'),
      explain: flag.nullish().describe('Adds `explain` to each match, and `trace` to the reply.'),
      format: choice(FORMATS)
        .nullish()
        .describe('`prompt` and `text` answer with a text for a language model; `json` by default.'),
      token: label(LIMITS.tokenCharacters).nullish().describe('Waits for the writes behind it, at most 2 s.'),
    },
    BODY_EXPECTED,
  )
  .meta({ id: 'Query' });
export type QueryBody = z.output<typeof querySchema>;

/** The query as it was sent, so that it need not be written anew. */
export const explainSchema = z
  .strictObject({ ...querySchema.shape, memory_id: givenId.describe('The memory to explain.') }, BODY_EXPECTED)
  .meta({ id: 'ExplainQuery' });
