/** Schemas of replies about memories. Each schema is strict, so that a test finds a field that it does not describe. */
import { z } from 'zod';
import { EDGE_TYPES, MEMORY_STATES, MEMORY_STATUSES, SECTORS } from '../../engine/index.ts';
import { screenedFields } from './privacy.ts';
import { anyObject, anyValue, SHOWN_AS, type Wire } from './values.ts';

/** Schema of a time in a reply: Unix milliseconds. */
export const timestamp = z
  .int()
  .meta({ id: 'Timestamp', description: 'Unix milliseconds.', examples: [1_795_265_978_965] });
/** Schema of an id that the service gave to a memory, document, job or the like: a UUID. */
export const uuid = z.uuid().register(SHOWN_AS, {
  type: 'string',
  format: 'uuid',
  examples: ['01a1fe30-e25b-7576-a0c2-3c4e3646bd72'],
});
/** Schema of a number from 0 to 1, both included. */
export const unit = z.number().min(0).max(1);
/** Schema of a number of things: an integer from 0 on. */
export const count = z.int().min(0);
const sectorOf = z.enum(SECTORS);

/**
 * Schema of a write receipt: a text by which a query waits, for at most `TOKEN_WAIT_MS`, for the jobs that a write
 * left; null if none is left.
 */
export const token = z
  .string()
  .nullable()
  .describe(
    'Write receipt: a query that sends it waits, at most 2 s, for the background work of this write, such as sectors ' +
      'and vectors. Queries find the words of the write even without that work. null if no work is left.',
  )
  .meta({ examples: ['e12327b4.1.1'] });

/** Schema of the error of a failed item, document or job. `code` is one of the API or of documents, or `crash`. */
export const failure = z
  .strictObject({ code: z.string(), message: z.string() })
  .meta({ id: 'Failure', examples: [{ code: 'invalid', message: 'content: must not be empty' }] });

/** Schema of the result of an item that was refused, in the reply to a batch. */
export const itemError = z
  .strictObject({ error: failure })
  .meta({ id: 'ItemError', examples: [{ error: { code: 'invalid', message: 'content: must not be empty' } }] });

const sectors = z
  .array(sectorOf)
  .describe('Sectors, the primary one first; `["semantic"]` until the memory is classified.');

/** Schema of the public id of the key that wrote something; null if it is not known. */
export const writer = z
  .string()
  .nullable()
  .describe(
    'Public id of the key that wrote it, as `cairn keys list` shows it; `environment` for OM_API_KEY, `anonymous` ' +
      'without a key, `cli` for the command line; null if that is not known or no caller wrote it.',
  );

const stored = {
  id: uuid.describe('Ids are sorted by the time of adding.'),
  user_id: z.string().describe('`""` means no particular user.'),
  session_id: z.string().describe('`""` means no session.'),
  content: z.string(),
  title: z.string(),
  type: z.string().nullable(),
  tags: z.array(z.string()),
  files: z.array(z.string()),
  metadata: anyObject,
  primary_sector: sectorOf,
  sectors,
  sector_confidence: unit.describe(
    'How clearly the text belongs to the primary sector: 0.2 for a text without signs of any sector, 1 if a ' +
      'caller set the sector, 0 until the text is classified.',
  ),
  state: z
    .enum(MEMORY_STATES)
    .describe(
      '`failed`: the job gave up or was cancelled before the memory had a vector; queries find it by its words.',
    ),
  status: z
    .enum(MEMORY_STATUSES)
    .describe(
      '`superseded`: another memory replaces it; `contradicted`: a memory that contradicts it was named the winner.',
    ),
  salience: unit.describe(
    'How present the memory is when it is read; it falls with `e^(−decay_lambda · days)` and grows by recall.',
  ),
  strength: unit.describe(
    'How well established the memory is when it is read; it falls with `e^(−0.01 · days)` and grows by reinforcement.',
  ),
  decay_lambda: z.number().min(0).describe('Rate at which the salience falls, per day.'),
  confidence: unit.describe('How sure its author is that the memory is true; 1 for certain.'),
  importance: unit.nullable().describe('Salience that a caller stated last; null if no caller did.'),
  access_count: count.describe('Number of queries that returned and reinforced the memory.'),
  last_seen_at: timestamp.describe(
    'When it was added, added again, reinforced, or last returned by a reinforcing query.',
  ),
  created_at: timestamp,
  updated_at: timestamp.describe('When `version` last rose; `created_at` at first.'),
  event_time: timestamp.describe('When the event happened; `created_at` if no caller stated a time.'),
  valid_from: timestamp.nullable().describe('Start of validity, included; null for none.'),
  valid_to: timestamp.nullable().describe('End of validity, excluded; null for none.'),
  expires_at: timestamp.nullable().describe('Time from which it cannot be read; null for never.'),
  external_id: z.string().nullable().describe('Id of the memory in your system, or the key of an item; null for none.'),
  namespace: z.string().optional().describe('Namespace of an item; absent if it is in none.'),
  value: anyValue.optional().describe('Value of an item, any JSON; absent if it has none.'),
  written_by: writer,
  version: z.int().min(1).describe('Starts at 1 and rises by one with each change; also sent as the `etag`.'),
};

const STORED_EXAMPLE = {
  id: '01a1fe30-e25b-7576-a0c2-3c4e3646bd72',
  user_id: 'ana',
  session_id: '',
  content: 'Deploys to staging happen every Tuesday after the stand-up.',
  title: '',
  type: null,
  tags: ['deploy'],
  files: [],
  metadata: { team: 'platform', build: 41 },
  primary_sector: 'semantic',
  sectors: ['semantic'],
  sector_confidence: 0.5,
  state: 'ready',
  status: 'active',
  salience: 0.4,
  strength: 1,
  decay_lambda: 0.005,
  confidence: 1,
  importance: null,
  access_count: 0,
  last_seen_at: 1795265978965,
  created_at: 1795265978965,
  updated_at: 1795265978965,
  event_time: 1795265978965,
  valid_from: null,
  valid_to: null,
  expires_at: null,
  external_id: null,
  written_by: '3f2a9c0d1e4b5a68',
  version: 1,
};
export const SKIMMED_EXAMPLE = { gist: STORED_EXAMPLE.content, entities: [] };

/**
 * Schema of a memory in the answer to a query. It lacks the gist (short summary) and the entities (mentioned names),
 * which are derived from the text when a memory is requested by itself.
 */
export const storedMemory = z.strictObject(stored).meta({ id: 'StoredMemory', examples: [STORED_EXAMPLE] });
export type StoredMemory = Wire<typeof storedMemory>;
/** Fields of a memory as it was stored, for schemas that extend them. */
export const storedFields = stored;
export const storedExample = STORED_EXAMPLE;

/**
 * Fields of a memory that is requested by itself: the stored fields, and its gist (short summary) and entities
 * (mentioned names), which are derived from the text if the caller stated none.
 */
export const shown = {
  ...stored,
  gist: z.string().describe('One line about the text, as stated, else derived from the text.'),
  entities: z.array(z.string()).describe('Names in the text, as stated, else derived from the text.'),
};

/** Schema of a memory that is requested by itself, or in a list of memories. */
export const memorySchema = z
  .strictObject(shown)
  .meta({ id: 'Memory', examples: [{ ...STORED_EXAMPLE, ...SKIMMED_EXAMPLE }] });
export type MemoryItem = Wire<typeof memorySchema>;

/** Schema of the reply 200 to `PATCH /memory/:id`, which changes the named fields of a memory and keeps the others. */
export const patchedMemory = z.strictObject({ ...shown, ...screenedFields, updated: z.literal(true) }).meta({
  examples: [
    {
      ...STORED_EXAMPLE,
      ...SKIMMED_EXAMPLE,
      tags: ['deploy', 'staging'],
      metadata: { build: 42 },
      version: 2,
      updated: true,
    },
  ],
});

/**
 * Schema of warnings about fields of a request that are accepted for OpenMemory's clients and ignored; absent if there
 * are none.
 */
export const warnings = z
  .array(z.string())
  .exactOptional()
  .describe('Fields of the request that mean nothing here, and why; absent if there are none.');

/** Schema of the reply 202 to `POST /memory/add` and `POST /memories`. */
export const acceptedMemory = z
  .strictObject({ id: uuid, job_id: uuid, state: z.literal('queued'), token: token, ...screenedFields, warnings })
  .meta({ id: 'AcceptedMemory' });
export type AcceptedItem = Wire<typeof acceptedMemory>;

/** Schema of the result of an add whose text is stored already: the existing memory. */
export const duplicateMemory = z
  .strictObject({
    id: uuid.describe('The existing memory.'),
    primary_sector: sectorOf,
    sectors,
    deduplicated: z.literal(true),
    state: z.enum(MEMORY_STATES),
    ...screenedFields,
    warnings,
  })
  .meta({ id: 'DuplicateMemory' });
export type DuplicateItem = Wire<typeof duplicateMemory>;

/** Schema of the result of an add that waited until its job had ended. */
export const finishedMemory = z
  .strictObject({
    id: uuid,
    primary_sector: sectorOf,
    sectors,
    chunks: z.literal(1).describe("OpenMemory's clients expect this field; a memory is never split."),
    state: z.enum(MEMORY_STATES),
    error: failure.exactOptional().describe('Why the memory has no vector; only if `state` is `failed`.'),
    ...screenedFields,
    warnings,
  })
  .meta({ id: 'FinishedMemory' });
export type FinishedItem = Wire<typeof finishedMemory>;

const acceptedOutcome = z
  .strictObject({ id: uuid, state: z.literal('queued'), job_id: uuid, ...screenedFields })
  .meta({ id: 'AcceptedItem' });
/** Schema of the result of one item of a batch. */
const batchOutcome = z.union([acceptedOutcome, duplicateMemory, itemError]);
export type BatchOutcome = Wire<typeof batchOutcome>;

const summary = {
  accepted: count.describe('Items that were stored, duplicates included.'),
  rejected: count.describe('Items that were refused; nothing of them is stored.'),
  token,
  receipt_id: uuid.exactOptional().describe('The receipt of the batch, with `receipt=true`: `GET /receipts/{id}`.'),
  receipt_error: itemError.shape.error
    .exactOptional()
    .describe('Why a JSON batch has no receipt, though `receipt=true`; its items are stored all the same.'),
};
const line = { line: z.int().min(1).describe('Line of the item in the upload, counted from 1.') };
const lineOutcome = z.union([
  acceptedOutcome.extend(line).meta({ id: 'AcceptedLine' }),
  duplicateMemory.extend(line).meta({ id: 'DuplicateLine' }),
  itemError.extend(line).meta({ id: 'RejectedLine' }),
]);
const endedEarly = itemError.shape.error
  .exactOptional()
  .describe('Why the upload ended early; every item with a result is stored.');

/** Schema of the reply to a batch. Its results have line numbers only if the batch was sent as NDJSON. */
export const batchReply = z
  .strictObject({
    results: z.array(z.union([batchOutcome, lineOutcome])).describe('In the order of the items.'),
    ...summary,
    error: endedEarly,
  })
  .meta({ id: 'BatchReply' });
/** Schema of one line of the NDJSON reply to a batch: the result of an item, or the summary, which comes last. */
export const batchReplyLine = z.union([
  batchOutcome,
  lineOutcome,
  z.strictObject({ ...summary, error: endedEarly }).meta({ id: 'BatchSummary' }),
]);

/**
 * Schema of the field `truncated`: true if the reply reached its greatest size and items were left out; absent if it is
 * complete.
 */
const truncated = z
  .literal(true)
  .exactOptional()
  .describe('Items were left out, as the reply may have at most 8 MiB; absent otherwise.');
/**
 * Fields of a page that say how it ends: whether it was cut, and where the next page begins (absent on the last one).
 */
export const pageEnd = {
  truncated,
  next: count.exactOptional().describe('Offset `u` of the next page; absent on the last page.'),
};
/**
 * Schema of the reply 200 to `GET /memory/all`, which lists memories that are active, valid and not expired, the newest
 * first.
 */
export const memoryPage = z.strictObject({ items: z.array(memorySchema), ...pageEnd });
/**
 * Schema of the reply 200 to `GET /users/:id/memories`, which lists one user's memories that are active, valid and not
 * expired, the newest first.
 */
export const userMemoryPage = z.strictObject({ user_id: z.string(), items: z.array(memorySchema), ...pageEnd });

/** Schema of the reply 200 to `POST /memory/reinforce`, which raises a memory's salience, and its strength by 0.1. */
export const reinforcedReply = z.strictObject({ ok: z.literal(true), id: uuid, salience: unit, strength: unit });

const revision = z.strictObject({
  version: z.int().min(1).describe('The version that was replaced.'),
  replaced_at: timestamp,
  written_by: writer.describe(
    'Public id of the key that made the change, or `undo:` and the id of a key whose changes it undid; null if that ' +
      'is not known or no caller did.',
  ),
  replaced: anyObject.describe('Earlier values of the fields that changed.'),
});
export type RevisionItem = Wire<typeof revision>;
/**
 * Schema of the reply 200 to `GET /memory/:id/history`, which shows the earlier values of a memory, the latest change
 * first.
 */
export const historyReply = z.strictObject({
  id: uuid,
  items: z.array(revision),
  truncated,
  next: count.exactOptional().describe('The `before` of the next page; absent on the last page.'),
});

/**
 * Schema of the reply 200 to `GET /memory/:id/timeline`, which shows the memories before and after a memory in time.
 */
export const timelineReply = z.strictObject({
  before: z.array(memorySchema).describe('The earliest first.'),
  anchor: memorySchema,
  after: z.array(memorySchema).describe('The earliest first.'),
  truncated,
});

/**
 * Schema of the reply 200 to `POST /memory/reflect`, which lets the language model write down conclusions from the
 * latest memories.
 */
export const reflectionReply = z.strictObject({
  job_id: uuid,
  state: z.enum(['queued', 'active', 'failed', 'done', 'dead', 'cancelled']),
  reflections: z
    .array(memorySchema)
    .describe('Memories that the job wrote; empty if there was nothing new to conclude.'),
  error: failure.exactOptional().describe('Why the job failed.'),
});
/**
 * Schema of the reply 202 to `POST /memory/reflect`, which lets the language model write down conclusions from the
 * latest memories.
 */
export const reflectionQueued = z.strictObject({ job_id: uuid, state: z.literal('queued'), token });

/** Schema of a link as seen from one of its two memories; `id` is the other one. */
export const link = z
  .strictObject({
    id: uuid.describe('The memory at the other end of the link.'),
    type: z.enum(EDGE_TYPES),
    direction: z.enum(['out', 'in']).describe('`out` if the link begins at the memory of the request.'),
    similarity: z.number().nullable().describe('Measured cosine of the two memories; null for a stated link.'),
    weight: unit,
    automatic: z.boolean().describe('Whether Cairn made the link, rather than a client.'),
    created_at: timestamp,
    updated_at: timestamp,
    written_by: writer.describe('Public id of the key that stated the link; null if that is not known or nobody did.'),
  })
  .meta({ id: 'Link' });
export type LinkItem = Wire<typeof link>;
