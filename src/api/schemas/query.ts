/** Schemas of queries, of explanations and of a tenant's defaults for queries. */
import { z } from 'zod';
import {
  DEFAULT_K,
  CUTS,
  EXPANSIONS,
  FORMATS,
  INCLUDED,
  type Json,
  MEMORY_STATUSES,
  type Metadata,
  PENALISED,
  PROFILES,
  RERANKERS,
  SECTORS,
  SIMILARITIES,
  TEXT_COLUMNS,
  WEIGHT_NAMES,
} from '../../engine/index.ts';
import { LIMITS } from './value-limits.ts';
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
  namespace,
  numberUpTo,
  sector,
  SHOWN_AS,
  someOf,
  tags,
  text,
  time,
  type Wire,
} from './values.ts';

// ── Filters ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const range = z.strictObject(
  { from: time.optional().describe('Start, included.'), to: time.optional().describe('End, excluded.') },
  expected('an object {from, to}'),
);
const ids = z
  .array(id, expected('a list of strings'))
  .min(1, 'must not be empty')
  .max(LIMITS.filterValues, `at most ${LIMITS.filterValues} entries`);

/**
 * Counts the conditions of a metadata filter on one key: each operator (`$…`) of an object counts, and a value without
 * operators counts as one.
 */
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

/** Schema of filters. Those of OpenMemory's clients are sector, user_id, min_score, startTime and endTime. */
export const filtersSchema = z
  .strictObject(
    {
      sectors: someOf(SECTORS)
        .optional()
        .describe(
          'Memories of one of these sectors, primary or additional. Together with `as_of.recorded`, the query is ' +
            'answered 400.',
        ),
      types: ids.optional().describe('Memories of one of these types.'),
      tags: tags.optional().describe('Memories with all of these tags.'),
      users: ids.optional().describe('Memories of these users. If a `user_id` is given too, both must hold.'),
      sessions: ids.optional().describe('Memories of these sessions.'),
      statuses: someOf(MEMORY_STATUSES)
        .optional()
        .describe(
          'Only memories with one of these statuses. If left out, only active ones; a query also finds those ' +
            'that `deep_recall`, `include` or `as_of` let in, and a list those that `as_of` lets in.',
        ),
      external_ids: ids.optional().describe('Memories with one of these ids in your system.'),
      written_by: ids
        .optional()
        .describe(
          'Memories that were added with one of these keys (their public ids), even if another key changed them since.',
        ),
      documents: ids
        .optional()
        .describe('Chunks and root memories of the documents with these ids, in the version that queries find.'),
      files: z
        .array(label(LIMITS.fileCharacters).min(1, 'must not be empty'), expected('a list of strings'))
        .min(1, 'must not be empty')
        .max(LIMITS.filterValues, `at most ${LIMITS.filterValues} entries`)
        .optional()
        .describe('Memories whose field `files` has one of these paths.'),
      event_time: range.optional().describe('Memories whose `event_time` is in this range.'),
      created_at: range.optional().describe('Memories whose `created_at` is in this range.'),
      metadata: metadataFilter
        .optional()
        .describe(
          '`{key: value}` or `{key: {operator: value}}`, at most 32 conditions. Operators are `$eq`, `$ne`, `$gt`, ' +
            '`$gte`, `$lt`, `$lte`, `$in`, `$nin` and `$exists`; several in one object must all hold. A key is a ' +
            'name on the top level; a dot in it has no special meaning. A value matches one of the same type that is ' +
            'equal to it; null also matches a missing key.',
        ),
      namespace: z
        .union([z.literal(''), namespace], expected('labels joined by dots, such as a.b'))
        .nullish()
        .describe(
          'Only items of this namespace and of those below it; `""` for the items of all namespaces, without ' +
            'memories that are in none.',
        ),
      min_salience: fraction.nullish().describe('Memories whose salience is at least this at the time of the request.'),
      sector: sector
        .nullish()
        .describe("Memories of this sector, under OpenMemory's name. With `sectors`, both must hold."),
      user_id: id
        .nullish()
        .describe("Memories of this user, under OpenMemory's name. If other fields name users, too, all must hold."),
      min_score: fraction.nullish().describe('The same as `min_score` of the query, which has priority.'),
      startTime: time.nullish().describe('The same as `startTime` of the query; the later of the two counts.'),
      endTime: time.nullish().describe('The same as `endTime` of the query; the earlier of the two counts.'),
    },
    expected('an object'),
  )
  .meta({ id: 'Filters', description: 'Fields are joined by AND, the values of one list by OR.' });

// ── How an answer is found ───────────────────────────────────────────────────────────────────────────────────────────

/** Makes the schema of weights by name, from 0 to `max`. It is no record, so that a refusal lists the allowed names. */
const weightTable = <Name extends string>(names: readonly Name[], max: number) => {
  const weight = numberUpTo(max);
  const shape = Object.fromEntries(names.map((name) => [name, weight.exactOptional()]));
  return z.strictObject(shape as Record<Name, z.ZodExactOptional<typeof weight>>, expected('an object'));
};

/** Fields for options of retrieval, in a query and in a tenant's defaults. */
const retrievalFields = {
  profile: choice(PROFILES).describe(
    'Formula that makes the `raw_score` of a match from its features; `composite` by default.',
  ),
  similarity: choice(SIMILARITIES).describe(
    'How the feature `similarity` is made: `relative`, the default, divides the relevance of a memory by that of ' +
      'the best candidate, so that the best has 1; `absolute` takes the relevance as it is, at most 1. If ' +
      '`vector_weight` is 1, the relevance is the cosine.',
  ),
  penalties: weightTable(PENALISED, 1).describe(
    'Factors from 0 to 1 on the `raw_score` of memories by status. By default superseded and archived 0.5, ' +
      'contradicted 0.3. The factor of `contradicted` also lowers the weaker of two matches that contradict each ' +
      'other; it is then at least 0.9 if only the form of their texts says so. The factor of `consolidated`, 0.8, ' +
      'lowers a memory if the one that was gathered from it and others is a candidate, too, unless the memory ranks ' +
      'before that one even so.',
  ),
  weights: weightTable(WEIGHT_NAMES, 1).describe(
    'Weights of the profile by name, 0 to 1; others keep their values. By default `composite` has similarity 0.7, ' +
      'salience 0.1, recency 0.1 and waypoint 0.1; `activation` has activation 0.5, recency 0.2, strength 0.2 and ' +
      'confidence 0.1; `retention` has alpha 0.3, the exponent of the feature `retention`; `fusion` has none. In a ' +
      'query, a name that its profile does not use is a 400.',
  ),
  column_weights: weightTable(TEXT_COLUMNS, LIMITS.columnWeight).describe(
    'Weights of a word by the column in which it stands, 0 to 10; the others keep their values. By default title 2; ' +
      'entities, tags and identifiers 1.5; content and gist 1; context, the memories around it in its session, 0.3.',
  ),
  vector_weight: fraction.describe(
    'Share of the vectors, against the words, in the relevance of a memory: 0 for words only, 1 for vectors only. ' +
      'By default 0.08 with the offline embedder, and 0.5 with a model of a provider.',
  ),
  k_sparse: integer(1, LIMITS.candidates).describe(
    'Greatest number of candidates from the search by words; `k` + 20 by default.',
  ),
  k_dense: integer(1, LIMITS.candidates).describe(
    'Greatest number of candidates from the search by vectors; by default `k`, but at least 20.',
  ),
  dense_sectors: choice(['all', 'candidate']).describe(
    '`all`, the default: the nearest `k_dense` memories of all sectors. `candidate`: if the query shows what kind of ' +
      'memory it looks for, the nearest `k_dense` of each such sector.',
  ),
  session_prior: fraction.describe(
    'Greatest share of its own `raw_score` that a match gains because others of the first 20 candidates are of the ' +
      'same session; 0.1 by default, 0 for none.',
  ),
  max_hops: integer(0, LIMITS.hops).describe(
    'Greatest number of links in a row that are followed from the best direct hits; 2 by default, 0 to follow none.',
  ),
  decay_per_hop: fraction.describe(
    'Share of the activation (relevance that spreads over links) that remains after each link; 0.5 by default.',
  ),
  entity_graph: flag.describe(
    'If true, names in the query also bring memories about names that are related to them; true by default.',
  ),
  rerank: choice(RERANKERS).describe(
    'How the first candidates are ranked again by their texts: `none` keeps their order; `builtin`, the default, ' +
      'asks no model; `llm` does the same and then asks a language model (`OM_LLM_MODEL`) to order them.',
  ),
  k_rerank: integer(2, LIMITS.rerank).describe(
    'Greatest number of candidates that `llm` orders; 20 by default. `builtin` reads 24 whatever this says.',
  ),
  min_score: fraction.describe(
    'Matches with a lower `score` are left out, except those that only a strong link or a related name found; 0 ' +
      'leaves none out. By default `OM_MIN_SCORE` (0.3), which is not applied if the query has several sentences and ' +
      'it is not known which of them ask (`floor.reason`).',
  ),
  relative_floor: fraction.describe(
    'Matches whose `raw_score` is below this share of the best `raw_score` are left out; 0, the default, leaves ' +
      'none out.',
  ),
  cut: choice(CUTS).describe(
    'How the answer is cut to the memories that belong together; `none`, the default, cuts nothing. `relative` ' +
      'sets `relative_floor` to 0.5 if nothing else sets it. `exact` is for short facts: of the first 20 candidates ' +
      "it returns only those whose own text holds most of the query's other words than names; a near vector makes " +
      'up for some of them. One that has none of the names in the query counts half. Of these it returns only those ' +
      'before the largest clear gap in how much they hold. It often returns nothing.',
  ),
  per_document: integer(0, LIMITS.k).describe(
    'Greatest number of matches that are derived from one document or memory, with this memory itself; 2 by ' +
      'default, 0 for no limit. Applies only if `k` is at most 10. Unless it is 0, a matching chunk replaces the ' +
      'root memory of its document.',
  ),
  collapse_similar: z
    .boolean(expected('true or false'))
    .describe(
      'Of memories that say nearly the same, written by one key for one user, only the best is a match, with the ' +
        'others in `similar`; true by default. Memories whose key is not known are not compared.',
    ),
  writer_share: fraction.describe(
    'Greatest share of the first places, rounded up, that memories written by one key take while matches written by ' +
      'another key are left; 0.75 by default, 1 for no bound.',
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
/**
 * Schema of the JSON body of `PUT /settings/retrieval`, which replaces all defaults that this tenant has for its
 * queries.
 */
export const retrievalSchema = z.strictObject(retrievalOptions, BODY_EXPECTED);
export type RetrievalBody = z.output<typeof retrievalSchema>;

/**
 * Schema of a tenant's defaults in a reply. It has only the options that were set, so that a client can send them back
 * unchanged.
 */
export const retrievalReply = z
  .strictObject(eachOptional(retrievalFields))
  .meta({ id: 'RetrievalDefaults', examples: [{ profile: 'activation', weights: { recency: 0.1 }, max_hops: 1 }] });
export type RetrievalItem = Wire<typeof retrievalReply>;

// ── Queries ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Schema of the earlier time as of which a query is answered: one time, or an object with `valid` and `recorded`. */
export const asOf = z.union(
  [
    time,
    z
      .strictObject({
        valid: time
          .optional()
          .describe(
            'Memories whose event time is not after this time and that were valid then; without it, at `recorded`.',
          ),
        recorded: time.optional().describe('Memories that were stored by this time, with their values of that time.'),
      })
      .refine(
        ({ valid, recorded }) => valid !== undefined || recorded !== undefined,
        'names neither valid nor recorded',
      )
      .meta({ id: 'AsOf' }),
  ],
  expected('a time, or an object {valid, recorded} of times'),
);

/** Schema of the JSON body of `POST /memory/query`, which finds memories by words, vectors and links. */
export const querySchema = z
  .strictObject(
    {
      query: text(LIMITS.queryCharacters)
        .min(1, 'must not be empty')
        .describe('Plain text; a memory may match any of its words. `"a phrase"` in double quotes counts as one term.'),
      k: integer(1, LIMITS.k).nullish().describe(`Greatest number of matches; ${DEFAULT_K} by default.`),
      user_id: id.nullish().describe('Only memories of this user; `""` for no particular user. All users by default.'),
      filters: filtersSchema.nullish().describe('Which memories are searched; all that the key may see by default.'),
      startTime: time.nullish().describe("`created_at` from this time on, included; the name is OpenMemory's."),
      endTime: time.nullish().describe("`created_at` up to this time, included; the name is OpenMemory's."),
      ...retrievalOptions,
      token_budget: integer(1, LIMITS.tokenBudget)
        .nullish()
        .describe(
          "Greatest number of estimated tokens of the matches' contents, or of the whole text with a `format` " +
            'other than `json`. A match that does not fit is skipped; a shorter one further down may take its place. ' +
            'Where the best one does not fit, the reply says in `best_needs` what would be enough. No limit by ' +
            'default, except 1 Mi characters of titles and contents in a text.',
        ),
      deep_recall: flag
        .nullish()
        .describe(
          'If true, superseded, contradicted and archived memories take part, at the factors of `penalties`; false ' +
            'by default. No effect with `filters.statuses`.',
        ),
      include: someOf(INCLUDED)
        .nullish()
        .describe(
          'Kinds of memories that take part although queries leave them out by default. `contradicted`: memories ' +
            'that lost a contradiction, at the factor of `penalties`. None by default.',
        ),
      as_of: asOf
        .nullish()
        .describe('The past time that the query is about; a time alone means `valid`. The present by default.'),
      top_k: z
        .strictObject(
          {
            knowledge: integer(0, LIMITS.k)
              .optional()
              .describe('Greatest number of matches that are derived from others.'),
            episodes: integer(0, LIMITS.k)
              .optional()
              .describe('Greatest number of matches that others are derived from.'),
          },
          expected('an object {knowledge, episodes}'),
        )
        .nullish()
        .describe(
          'Greatest number of matches of each kind, within `k`; no such limits by default. A match that is of ' +
            'both kinds counts as `knowledge`; matches of neither kind are not limited.',
        ),
      include_episodes: flag
        .nullish()
        .describe(
          'If true, the reply has `episodes` (with `prompt`, headings in the text; with `text` and `plain`, ' +
            'nothing). By default only `prompt` has them. If false, memories that others are derived from are no ' +
            'matches either, unless `top_k.episodes` bounds them.',
        ),
      expand: someOf(EXPANSIONS)
        .nullish()
        .describe(
          'Memories to return beside each match. `neighbours`: up to two before and two after it, in its document ' +
            'if it is a chunk, else in its session. `document`: up to three memories that the match is derived from. ' +
            'They must pass the filters, too. None by default.',
        ),
      reinforce: flag
        .nullish()
        .describe(
          'If false, the query reinforces no memories and links; by default `OM_DECAY_REINFORCE_ON_QUERY`, which ' +
            'is true.',
        ),
      explain: flag
        .nullish()
        .describe('If true, adds `explain` to each match, and `trace` to the reply; false by default.'),
      format: choice(FORMATS)
        .nullish()
        .describe(
          '`json`, the default: the matches as data. With the others the reply has one text of all matches ' +
            'instead: `prompt` is laid out for the prompt of a language model, `text` has one match with its source ' +
            'on each line, and `plain` the texts of the memories alone.',
        ),
      token: label(LIMITS.tokenCharacters)
        .nullish()
        .describe(
          'A write receipt: the query waits, at most 2 s, for the background work of its writes, and then answers in ' +
            'any case; `token_satisfied` says whether the work was finished.',
        ),
    },
    BODY_EXPECTED,
  )
  .meta({ id: 'Query' });
export type QueryBody = z.output<typeof querySchema>;

/** Schema of the JSON body of `POST /explain`: the query as it was sent, and the memory to explain. */
export const explainSchema = z
  .strictObject({ ...querySchema.shape, memory_id: givenId.describe('Id of the memory to explain.') }, BODY_EXPECTED)
  .meta({ id: 'ExplainQuery' });
