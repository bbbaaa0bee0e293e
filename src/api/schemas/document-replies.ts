/** Schemas of replies about documents. */
import { z } from 'zod';
import { DOCUMENT_FORMATS, DOCUMENT_STATES, OMISSION_REASONS } from '../../engine/index.ts';
import { count, failure, itemError, pageEnd, timestamp, token, uuid, writer } from './memory-replies.ts';
import { anyObject, type Wire } from './values.ts';

const warning = z
  .strictObject({
    code: z.enum([
      'page_unreadable',
      'hidden_text_dropped',
      'hidden_text_found',
      'base64_text',
      'attachment_ignored',
      'external_reference_ignored',
      'script_ignored',
      'undecodable_bytes',
      'part_unreadable',
    ]),
    message: z.string(),
    page: z.int().exactOptional().describe('Page that it is about; absent if it is about no single page.'),
  })
  .meta({ id: 'DocumentWarning' });

const progress = z
  .strictObject({
    pages_done: count.describe('Pages that were read; 0 for a format without pages.'),
    chunks: count.describe('Chunks of the whole document; 0 until it is read.'),
    embedded: count.describe('Chunks that have their vectors.'),
    linked: count.describe('Chunks whose links were looked for; a chunk need not have any.'),
    failed: count.describe('Chunks whose job has given up; queries find them by their words.'),
    stages: z
      .record(z.string(), z.number())
      .describe('Duration of each stage of the work that has ended, by its name, in milliseconds.'),
  })
  .describe('How far the work on the latest version of the document is.');

const fields = {
  id: uuid,
  user_id: z.string().describe('`""` means no particular user.'),
  session_id: z.string().describe('`""` means no session.'),
  external_id: z.string().nullable().describe('Id of the document in your system; null for none.'),
  written_by: writer.describe('Public id of the key that handed in what is shown; null if that is not known.'),
  state: z
    .enum(DOCUMENT_STATES)
    .describe(
      '`processing` until every chunk is embedded and linked, or its job has given up; then `ready`. `empty`: ' +
        'the document was read and has no text. `failed`, `cancelled`: queries find no version of it.',
    ),
  error: failure.nullable().describe('Why the document failed or is empty; null if it did neither.'),
  source: z.enum(['upload', 'url']),
  url: z.string().nullable().describe('Address that the page was fetched from; null for an upload.'),
  file_name: z.string().nullable().describe('Name that was given with an upload; null without one.'),
  format: z.enum(DOCUMENT_FORMATS).nullable().describe('The declared format until the file is read; null for none.'),
  bytes: count.nullable().describe('Size of the file in bytes; null until a page is fetched.'),
  sha256: z.string().nullable().describe("SHA-256 of the file's bytes, in hexadecimal; null until a page is fetched."),
  title: z
    .string()
    .describe(
      'The title that was given, else that of the file, else the file\'s name without its ending; `""` for none.',
    ),
  authors: z.array(z.string()).describe('Authors that the file names; empty if it names none or is not read yet.'),
  language: z
    .string()
    .nullable()
    .describe('BCP 47 tag such as `en`, from the file or found in its text; null if unknown.'),
  published_at: timestamp.nullable().describe('When the file says that it was published; null if it does not say.'),
  modified_at: timestamp.nullable().describe('When the file says that it was last changed; null if it does not say.'),
  type: z.string().nullable().describe('Your own type of document; null for none.'),
  tags: z.array(z.string()),
  metadata: anyObject,
  event_time: timestamp.nullable().describe('Event time of its memories, as it was stated; null if it was not.'),
  expires_at: timestamp.nullable().describe('Time from which the document cannot be read or found; null for never.'),
  root_memory_id: uuid
    .nullable()
    .describe('The memory that represents the whole document; null until queries can find the document.'),
  chunks: count.describe('Number of chunks; 0 until the document is read.'),
  pages: count.nullable().describe('Number of pages; null until the document is read, and for a format without pages.'),
  characters: count.describe('Length of the extracted text in UTF-16 code units; 0 until it is read.'),
  tokens: count.describe('Estimated tokens of the whole text; 0 until it is read.'),
  progress,
  receipt: z
    .strictObject({ stored: count, kept: count, removed: count })
    .nullable()
    .describe('Numbers of chunks that are new, were kept and were removed; null until queries can find the document.'),
  warnings: z
    .array(warning)
    .describe('What was left out, or was kept but should be checked. Warnings never hold content.'),
  job_id: uuid.nullable().describe('The latest job that reads the document; null once the ledger no longer holds it.'),
  created_at: timestamp,
  updated_at: timestamp,
  shown_at: timestamp.nullable().describe('When queries could first find this version of it; null before that.'),
  ready_at: timestamp.nullable().describe('When it became `ready`; null before that.'),
};

const EXAMPLE = {
  id: '01a1ff55-50c1-7421-a45c-cf733ddd36c3',
  user_id: 'ana',
  session_id: '',
  external_id: 'wiki-12',
  written_by: '3f2a9c0d1e4b5a68',
  state: 'ready',
  error: null,
  source: 'upload',
  url: null,
  file_name: null,
  format: 'markdown',
  bytes: 64,
  sha256: 'c03273aa821fc076557f1f63e4d505e8f4972b3ef6641307edcff5e6a32b13be',
  title: 'Rollback',
  authors: [],
  language: null,
  published_at: null,
  modified_at: null,
  type: null,
  tags: [],
  metadata: {},
  event_time: null,
  expires_at: null,
  root_memory_id: '01a1ff55-5a16-778f-b779-62323601c987',
  chunks: 1,
  pages: null,
  characters: 64,
  tokens: 14,
  progress: { pages_done: 0, chunks: 1, embedded: 1, linked: 1, failed: 0, stages: { queued: 38, parse: 2337 } },
  receipt: { stored: 1, kept: 0, removed: 0 },
  warnings: [],
  job_id: '01a1ff55-50c2-73f1-b4c5-17553b17bb0d',
  created_at: 1795285143745,
  updated_at: 1795285146220,
  shown_at: 1795285146139,
  ready_at: 1795285146220,
};

/**
 * Schema of the reply 200 to `GET /documents/:id` and `POST /documents/:id/cancel`, and of the event `state` of
 * `GET /documents/:id/events`, which streams a document as it changes.
 */
export const documentSchema = z.strictObject(fields).meta({ id: 'Document', examples: [EXAMPLE] });
export type DocumentItem = Wire<typeof documentSchema>;

const outcome = z
  .enum(['accepted', 'replaced', 'unchanged'])
  .describe('`replaced`: a known document is read again; `unchanged`: nothing needs to be done.');
const jobId = uuid
  .nullable()
  .describe('The unfinished job that reads the document, whichever request began it; null if there is none.');

/** Result of one document in a batch. */
const documentOutcome = z
  .strictObject({
    document_id: uuid,
    job_id: jobId,
    state: z.enum(DOCUMENT_STATES),
    outcome,
  })
  .meta({ id: 'DocumentOutcome' });
export type DocumentOutcomeItem = Wire<typeof documentOutcome>;

/**
 * Schema of the reply 202 to `POST /memory/ingest` and other routes that store one document: it is on disk and is still
 * to be read.
 */
export const acceptedDocument = documentOutcome.extend({ token }).meta({ id: 'AcceptedDocument' });

/**
 * Schema of the reply 200 to `POST /memory/ingest` and other routes that store one document, with the additional fields
 * that OpenMemory's clients expect. They reply so if the document has not changed, or was read while the request waited
 * for it; else they reply 202 (`acceptedDocument`).
 */
export const ingestedDocument = z
  .strictObject({
    ...fields,
    document_id: uuid,
    job_id: jobId,
    outcome,
    token,
    child_count: count.describe('The same as `chunks`.'),
    total_tokens: count.describe('The same as `tokens`.'),
    strategy: z.enum(['single', 'root-child']).describe('`root-child` for more than one chunk, else `single`.'),
    extraction: z.strictObject({
      content_type: z.enum(DOCUMENT_FORMATS).nullable().describe('The same as `format`.'),
      char_count: count.describe('The same as `characters`.'),
      estimated_tokens: count.describe('The same as `tokens`.'),
      extraction_method: z.enum(DOCUMENT_FORMATS).nullable().describe('The same as `format`.'),
    }),
  })
  .meta({
    id: 'IngestedDocument',
    description: "A document with the additional fields that OpenMemory's clients expect.",
    examples: [
      {
        ...EXAMPLE,
        document_id: EXAMPLE.id,
        outcome: 'accepted',
        token: 'ece1a89d.1.1',
        child_count: 1,
        total_tokens: 14,
        strategy: 'single',
        extraction: {
          content_type: 'markdown',
          char_count: 64,
          estimated_tokens: 14,
          extraction_method: 'markdown',
        },
      },
    ],
  });
export type IngestedItem = Wire<typeof ingestedDocument>;

/**
 * Schema of both replies to `POST /documents/batch`, which stores several documents and pages and waits for none: 202,
 * or 200 if no item has to be read, since each was unchanged or refused.
 */
export const documentBatchReply = z.strictObject({
  results: z.array(z.union([documentOutcome, itemError])).describe('In the order of the items.'),
  accepted: count.describe('Documents and pages that were accepted, unchanged ones included.'),
  rejected: count.describe('Items that were refused; nothing of them is stored.'),
  token,
});

/** Schema of the reply 200 to `GET /documents`, which lists documents, the newest first. */
export const documentPage = z.strictObject({ items: z.array(documentSchema), total: count, ...pageEnd });

// ── Position of a chunk in its document ──────────────────────────────────────────────────────────────────────────────

/** Fields for the position of a chunk in the extracted text of its document. */
const positionFields = {
  chunk: count
    .nullable()
    .describe('Number of the chunk, counted from 0; null for the root memory, which represents the whole document.'),
  start_offset: count.nullable().describe('Start in the extracted text, in UTF-16 code units.'),
  end_offset: count.nullable().describe('End in the extracted text, excluded.'),
  page_from: z.int().nullable().describe('First page, slide or sheet of the chunk; null if the format has none.'),
  page_to: z.int().nullable().describe('Last page, slide or sheet of the chunk; null if the format has none.'),
  heading_path: z.array(z.string()).describe('Headings above the chunk, outermost first.'),
};

/** Schema of the source of a chunk: its document, and its position in that. */
export const provenance = z
  .strictObject({
    document_id: uuid,
    title: z.string(),
    file_name: z.string().nullable(),
    url: z.string().nullable(),
    format: z.enum(DOCUMENT_FORMATS).nullable(),
    sha256: z.string().nullable(),
    ...positionFields,
    chunks: count.describe('Chunks of the whole document.'),
    ingested_at: timestamp.describe('When this version of the document was accepted.'),
  })
  .meta({ id: 'Provenance', description: 'Position of a match in its document.' });
export type ProvenanceItem = Wire<typeof provenance>;

const chunk = z.strictObject({
  memory_id: uuid,
  ...positionFields,
  chunk: count
    .nullable()
    .describe('Number of the chunk, counted from 0; never null, as the root memory is not listed.'),
  tokens: count,
});
export type ChunkItem = Wire<typeof chunk>;
/**
 * Schema of the reply 200 to `GET /documents/:id/chunks`, which lists the chunks of a document in the order of its
 * text, without the root memory.
 */
export const chunkPage = z.strictObject({
  id: uuid,
  items: z.array(chunk).describe('The chunks of the document, in the order of its text, without the root memory.'),
  total: count,
  ...pageEnd,
});

// ── Receipt ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const omission = z
  .strictObject({
    reason: z
      .enum(OMISSION_REASONS)
      .describe(
        '`running_head`: repeated heads, feet and page numbers; `boilerplate`: what a web page has around its ' +
          'article; `hidden_text`: text that markup hides; `front_matter`: became metadata; `control_characters`; ' +
          '`redacted`: markers of the privacy policy stand in its place; `no_text`: blanks alone.',
      ),
    count: count.describe('Number of lines, parts, characters or values that were left out, as the reason says.'),
    characters: count.describe('In UTF-16 code units; without blanks for parts of web pages.'),
  })
  .meta({ id: 'Omission' });

const heldSpan = z
  .strictObject({
    memory_id: uuid,
    chunk: count,
    start_offset: count.describe('Start in the extracted text, in UTF-16 code units.'),
    own_offset: count.describe(
      'Offset of the first character that no earlier chunk holds; the characters before it overlap the chunk before.',
    ),
    end_offset: count.describe('End in the extracted text, in UTF-16 code units, excluded.'),
    kept: z.boolean().describe('Whether the memory is one of the reading before, with the same title and text.'),
    intact: z
      .boolean()
      .describe(
        'Whether the memory has a text of this length and of the hash that was stored with it, which fits the chunk ' +
          'in front; `complete` compares whole texts.',
      ),
  })
  .meta({ id: 'HeldSpan' });

/** Schema of the reply 200 to `GET /documents/:id/receipt`, which accounts for every character of a document. */
export const receiptReply = z
  .strictObject({
    id: uuid,
    root_memory_id: uuid.nullable().describe('The memory that stands for the whole document; it holds no span.'),
    characters: count.describe('Length of the extracted text, in UTF-16 code units.'),
    held: count.describe('Characters that memories hold unchanged, each counted once.'),
    sha256: z.string().nullable().describe('SHA-256 of the extracted text as it was read; null if it was not noted.'),
    held_sha256: z.string().describe('SHA-256 of what the memories hold now, which `/content` sends.'),
    complete: z
      .boolean()
      .describe('Whether every character is held (or is a blank of `no_text`), and what is held is what was read.'),
    stored: count.describe('Chunks that are new.'),
    kept: count.describe('Chunks that were kept from the reading before.'),
    removed: count.describe('Chunks of the reading before that are gone.'),
    items: z.array(heldSpan).describe('In the order of the text.'),
    total: count,
    omissions: z.array(omission).describe('What the file has and the text does not, as far as the reader can tell.'),
    warnings: z.array(warning),
  })
  .meta({
    id: 'TextReceipt',
    examples: [
      {
        id: EXAMPLE.id,
        root_memory_id: EXAMPLE.root_memory_id,
        characters: 64,
        held: 64,
        sha256: EXAMPLE.sha256,
        held_sha256: EXAMPLE.sha256,
        complete: true,
        stored: 1,
        kept: 0,
        removed: 0,
        items: [
          {
            memory_id: '01a1ff55-5a1a-713e-8abe-ac9f3766d934',
            chunk: 0,
            start_offset: 0,
            own_offset: 0,
            end_offset: 64,
            kept: false,
            intact: true,
          },
        ],
        total: 1,
        omissions: [],
        warnings: [],
      },
    ],
  });
export type ReceiptItem = Wire<typeof receiptReply>;
