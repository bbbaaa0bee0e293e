import { z } from 'zod';
import { EDGE_TYPES, MEMORY_STATES, MEMORY_STATUSES, SECTORS } from '../../engine/index.ts';
import { anyObject, SHOWN_AS, type Wire } from './values.ts';

/** What replies say about memories. Each schema is strict, so that a test finds a field that nobody described. */

/** Unix milliseconds. */
export const timestamp = z
  .int()
  .meta({ id: 'Timestamp', description: 'Unix milliseconds.', examples: [1_795_265_978_965] });
export const uuid = z.uuid().register(SHOWN_AS, {
  type: 'string',
  format: 'uuid',
  examples: ['01a1fe30-e25b-7576-a0c2-3c4e3646bd72'],
});
export const unit = z.number().min(0).max(1);
export const count = z.int().min(0);
const sectorOf = z.enum(SECTORS);

export const token = z
  .string()
  .nullable()
  .describe('Stands for these writes in a query that is to wait for them; null where nothing is left to do.')
  .meta({ examples: ['e12327b4.1.1'] });

/** Why one item, document or job failed. Beside the codes of errors, `code` may be one of a document or `crash`. */
export const failure = z
  .strictObject({ code: z.string(), message: z.string() })
  .meta({ id: 'Failure', examples: [{ code: 'invalid', message: 'content: must not be empty' }] });

/** What stands in a batch's reply for an item that was refused. */
export const itemError = z
  .strictObject({ error: failure })
  .meta({ id: 'ItemError', examples: [{ error: { code: 'invalid', message: 'content: must not be empty' } }] });

const sectors = z.array(sectorOf).describe('The primary sector first; `["semantic"]` until it was first classified.');

const stored = {
  id: uuid.describe('Ids are in the order of adding.'),
  user_id: z.string().describe('`""` for nobody in particular.'),
  session_id: z.string(),
  content: z.string(),
  title: z.string(),
  type: z.string().nullable(),
  tags: z.array(z.string()),
  files: z.array(z.string()),
  metadata: anyObject,
  primary_sector: sectorOf,
  sectors,
  state: z
    .enum(MEMORY_STATES)
    .describe('`failed`: its job gave up or was cancelled before it had a vector; queries find it by its words.'),
  status: z
    .enum(MEMORY_STATUSES)
    .describe('`superseded` by another memory, `contradicted` by one that was said to be right.'),
  salience: unit.describe('Decayed to the moment of reading, by `decay_lambda` a day.'),
  strength: unit.describe('Decayed to the moment of reading, by 0.01 a day.'),
  decay_lambda: z.number().min(0),
  confidence: unit,
  importance: unit.nullable(),
  access_count: count.describe('How often a query returned and reinforced it.'),
  last_seen_at: timestamp,
  created_at: timestamp,
  updated_at: timestamp,
  event_time: timestamp,
  valid_from: timestamp.nullable(),
  valid_to: timestamp.nullable(),
  expires_at: timestamp.nullable(),
  external_id: z.string().nullable(),
  version: z.int().min(1).describe('1, and one more for each change; also the `etag`.'),
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
  version: 1,
};
const SKIMMED_EXAMPLE = { gist: STORED_EXAMPLE.content, entities: [] };

/** A memory beside a hit, without the gist and entities that are read off the text when it is shown alone. */
export const storedMemory = z.strictObject(stored).meta({ id: 'StoredMemory', examples: [STORED_EXAMPLE] });
export type StoredMemory = Wire<typeof storedMemory>;
export const storedFields = stored;
export const storedExample = STORED_EXAMPLE;

const shown = {
  ...stored,
  gist: z.string().describe('As stated, else read off the text.'),
  entities: z.array(z.string()).describe('As stated, else read off the text.'),
};

/** A memory that is shown for itself. */
export const memorySchema = z
  .strictObject(shown)
  .meta({ id: 'Memory', examples: [{ ...STORED_EXAMPLE, ...SKIMMED_EXAMPLE }] });
export type MemoryItem = Wire<typeof memorySchema>;

export const patchedMemory = z.strictObject({ ...shown, updated: z.literal(true) }).meta({
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

export const acceptedMemory = z
  .strictObject({ id: uuid, job_id: uuid, state: z.literal('queued'), token: token })
  .meta({ id: 'AcceptedMemory' });
export type AcceptedItem = Wire<typeof acceptedMemory>;

export const duplicateMemory = z
  .strictObject({
    id: uuid.describe('The memory that was there already.'),
    primary_sector: sectorOf,
    sectors,
    deduplicated: z.literal(true),
    state: z.enum(MEMORY_STATES),
  })
  .meta({ id: 'DuplicateMemory' });
export type DuplicateItem = Wire<typeof duplicateMemory>;

export const finishedMemory = z
  .strictObject({
    id: uuid,
    primary_sector: sectorOf,
    sectors,
    chunks: z.literal(1).describe("Expected by OpenMemory's clients; a memory is kept whole."),
    state: z.enum(MEMORY_STATES),
    error: failure.exactOptional().describe('Why it has no vector; only where `state` is `failed`.'),
  })
  .meta({ id: 'FinishedMemory' });
export type FinishedItem = Wire<typeof finishedMemory>;

const acceptedOutcome = z
  .strictObject({ id: uuid, state: z.literal('queued'), job_id: uuid })
  .meta({ id: 'AcceptedItem' });
/** What became of one item of a batch. */
export const batchOutcome = z.union([acceptedOutcome, duplicateMemory, itemError]);
export type BatchOutcome = Wire<typeof batchOutcome>;

const summary = {
  accepted: count.describe('Items that are stored, duplicates included.'),
  rejected: count,
  token,
};
const line = { line: z.int().min(1).describe('Its line of the upload, counted from 1.') };
const lineOutcome = z.union([
  acceptedOutcome.extend(line).meta({ id: 'AcceptedLine' }),
  duplicateMemory.extend(line).meta({ id: 'DuplicateLine' }),
  itemError.extend(line).meta({ id: 'RejectedLine' }),
]);
const endedEarly = itemError.shape.error
  .exactOptional()
  .describe('Why the upload ended early; what has a result is stored.');

/** A batch that was sent as JSON has results without lines, one that was sent as NDJSON names them. */
export const batchReply = z
  .strictObject({
    results: z.array(z.union([batchOutcome, lineOutcome])).describe('In the order of the items.'),
    ...summary,
    error: endedEarly,
  })
  .meta({ id: 'BatchReply' });
/** One line of a batch's reply as NDJSON: a result an item, and the summary at the end. */
export const batchReplyLine = z.union([
  batchOutcome,
  lineOutcome,
  z.strictObject({ ...summary, error: endedEarly }).meta({ id: 'BatchSummary' }),
]);

export const deleteReceipt = z
  .strictObject({
    memories: count,
    documents: count,
    vectors: count,
    edges: count,
    revisions: count,
    jobs: count.describe('Jobs that spoke of a memory: they end, and stay in the ledger without its id.'),
    cached_embeddings: count,
    stored_replies: count.describe('Replies that were kept for idempotency keys.'),
  })
  .describe('Rows that were removed.')
  .meta({ id: 'DeleteReceipt' });
export type ReceiptItem = Wire<typeof deleteReceipt>;

export const deletedReply = z
  .strictObject({ ok: z.literal(true), deleted: count.describe('Memories that were erased.'), removed: deleteReceipt })
  .meta({
    id: 'Deleted',
    examples: [
      {
        ok: true,
        deleted: 1,
        removed: {
          memories: 1,
          documents: 0,
          vectors: 1,
          edges: 0,
          revisions: 1,
          jobs: 1,
          cached_embeddings: 0,
          stored_replies: 0,
        },
      },
    ],
  });

export const memoryPage = z.strictObject({ items: z.array(memorySchema) });
export const userMemoryPage = z.strictObject({ user_id: z.string(), items: z.array(memorySchema) });

export const reinforcedReply = z.strictObject({ ok: z.literal(true), id: uuid, salience: unit, strength: unit });

export const revision = z.strictObject({
  version: z.int().min(1).describe('The version that was replaced.'),
  replaced_at: timestamp,
  replaced: anyObject.describe('The old values of the fields that changed.'),
});
export type RevisionItem = Wire<typeof revision>;
export const historyReply = z.strictObject({ id: uuid, items: z.array(revision) });

export const timelineReply = z.strictObject({
  before: z.array(memorySchema).describe('Earlier first.'),
  anchor: memorySchema,
  after: z.array(memorySchema),
});
export type TimelineItem = Wire<typeof timelineReply>;

export const reflectionReply = z.strictObject({
  job_id: uuid,
  state: z.enum(['queued', 'active', 'failed', 'done', 'dead', 'cancelled']),
  reflections: z.array(memorySchema).describe('What was written; empty where nothing new followed.'),
  error: failure.exactOptional().describe('Why the job failed.'),
});
export const reflectionQueued = z.strictObject({ job_id: uuid, state: z.literal('queued'), token });

export const link = z
  .strictObject({
    id: uuid.describe('The memory at its other end.'),
    type: z.enum(EDGE_TYPES),
    direction: z.enum(['out', 'in']).describe('`out` where the memory that was asked for is its source.'),
    similarity: z.number().nullable().describe('As measured; null for a link that was stated.'),
    weight: unit,
    automatic: z.boolean().describe('Drawn by Cairn rather than stated by a client.'),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Link' });
export type LinkItem = Wire<typeof link>;
