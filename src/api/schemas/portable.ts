/** Schemas of the lines of an export. The types of the same names in engine/types/portable.ts explain the fields. */
import { z } from 'zod';
import {
  DOCUMENT_FORMATS,
  EDGE_TYPES,
  MEMORY_STATES,
  MEMORY_STATUSES,
  PORTABLE_TYPES,
  type PortableLine,
  type PortableType,
  SECTORS,
} from '../../engine/index.ts';
import { storedEvalSet } from './evals.ts';
import { LIMITS, MAX_TIME, MIN_TIME } from './value-limits.ts';
import { uuid } from './memory-replies.ts';
import { retrievalSchema } from './query.ts';
import { newStanding } from './standing.ts';
import { exportedItem } from './store.ts';
import {
  anyObject,
  choice,
  expected,
  exportedTime,
  files,
  flag,
  fraction,
  givenId,
  id,
  integer,
  jsonValue,
  label,
  metadata,
  numberUpTo,
  storedUrl,
  tags,
  text,
  unboundedText,
  type Wire,
} from './values.ts';

/** Greatest length of an etag or a similar text in UTF-16 code units; a line with a longer one is refused. */
const FOUND_CHARACTERS = 65_536;
/** Greatest count, offset, version or position in a line of an import. */
const MOST = 1_000_000_000_000;
/**
 * Greatest length of a memory's text in a line of an import, in bytes. It is four times that of a text that is added,
 * since markers such as `[REDACTED:iban]` may have made a stored text longer. One commit indexes its words, for which
 * all other writes wait: some 0.5 s for each MiB.
 */
const CONTENT_BYTES = 4 * LIMITS.contentBytes;

// ── Lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Makes the schema of a field that may be left out or null: both give `fallback`. */
const or = <Schema extends z.ZodType, const Fallback>(schema: Schema, fallback: Fallback) =>
  schema.nullish().transform((value): z.output<Schema> | Fallback => value ?? fallback);
const orNull = <Schema extends z.ZodType>(schema: Schema) => or(schema, null);

const found = text(FOUND_CHARACTERS);
const parsed = text(LIMITS.parsedCharacters);
/** As its text and its title, the gist of a memory may be four times as long as that of an add. */
const gist = text(4 * LIMITS.gistCharacters);
const counted = or(integer(0, MOST), 0);
const writer = orNull(givenId).describe(
  'Public id of the key that wrote it, for readers of the file; after an import, the importing key counts as its ' +
    'writer.',
);
const content = unboundedText.superRefine((value, context) => {
  const bytes = Buffer.byteLength(value);
  if (bytes <= CONTENT_BYTES) return;
  const message = `${bytes} bytes of UTF-8, at most ${CONTENT_BYTES} are kept as one memory`;
  context.addIssue({ code: 'custom', message, params: { code: 'too_large' } });
});
const anchor = z.object({ value: fraction, at: exportedTime }, expected('an object with value and at'));

const place = z.object(
  {
    id: uuid.describe('Id of the document.'),
    index: integer(-1, MOST).describe('Number of the chunk, from 0; -1 for the memory of the whole document.'),
    start_offset: integer(0, MOST),
    end_offset: integer(0, MOST),
    page_from: orNull(integer(0, MOST)),
    page_to: orNull(integer(0, MOST)),
    heading_path: or(z.array(text(LIMITS.headingCharacters)).max(LIMITS.headings), []),
    tokens: counted,
  },
  expected('an object'),
);

const vector = z.object(
  {
    provider: found,
    model: found,
    dimensions: integer(1, 8_192),
    encoding: z.enum(['int5', 'float32']),
    window: integer(-1, MOST),
    role: choice(['whole', 'window', 'mean']),
    precision: orNull(choice(['float32', 'float16', 'int8'])),
    data: z.base64().max(65_536),
  },
  expected('an object'),
);

const memoryLine = z
  .object({
    type: z.literal('memory'),
    id: uuid,
    user_id: or(id, ''),
    session_id: or(id, ''),
    content,
    title: or(parsed, ''),
    gist: or(gist, ''),
    entities: or(tags, []),
    memory_type: orNull(label(LIMITS.labelCharacters)).describe('Your own type of memory.'),
    tags: or(tags, []),
    files: or(files, []),
    metadata: or(metadata, {}),
    importance: orNull(fraction),
    confidence: or(fraction, 1),
    event_time: orNull(exportedTime).describe('Time of the event as a caller stated it; null if none did.'),
    valid_from: orNull(exportedTime),
    valid_to: orNull(exportedTime),
    expires_at: orNull(exportedTime),
    external_id: orNull(givenId),
    item: orNull(exportedItem).describe('Name and lifetime of an item; null for a memory that is no item.'),
    value: orNull(jsonValue).describe('Value of an item; null for any other memory.'),
    created_at: orNull(exportedTime),
    updated_at: orNull(exportedTime),
    version: or(integer(1, MOST), 1),
    status: or(choice(MEMORY_STATUSES), 'active'),
    state: orNull(choice(MEMORY_STATES)).describe('Null or absent: an import classifies and links the memory as new.'),
    sectors: or(z.array(choice(SECTORS)).max(SECTORS.length), []).describe(
      'Sectors, the primary one first; empty if the memory was not classified yet.',
    ),
    salience: orNull(anchor).describe('Salience, which decays from the time `at`; null for that of a new memory.'),
    decay_lambda: orNull(numberUpTo(1_000)),
    strength: orNull(anchor),
    access_count: counted,
    last_seen_at: orNull(exportedTime),
    document: orNull(place).describe('Position of the memory in its document; null for a memory of no document.'),
    written_by: writer,
    vectors: z.array(vector).max(4_096).exactOptional(),
  })
  .meta({ id: 'MemoryLine' });

const ms = z.int().min(MIN_TIME).max(MAX_TIME).nullable();
const replaced = z.strictObject(
  {
    content: unboundedText.exactOptional(),
    title: parsed.exactOptional(),
    gist: gist.exactOptional(),
    entities: tags.exactOptional(),
    type: label(LIMITS.labelCharacters).nullable().exactOptional(),
    tags: tags.exactOptional(),
    files: files.exactOptional(),
    metadata: metadata.exactOptional(),
    value: jsonValue.exactOptional(),
    importance: fraction.nullable().exactOptional(),
    confidence: fraction.exactOptional(),
    sessionId: id.exactOptional(),
    eventTime: ms.exactOptional(),
    validFrom: ms.exactOptional(),
    validTo: ms.exactOptional(),
    expiresAt: ms.exactOptional(),
    status: choice(MEMORY_STATUSES).exactOptional(),
  },
  expected('an object'),
);

const revisionLine = z
  .object({
    type: z.literal('revision'),
    memory: uuid,
    version: integer(1, MOST).describe('Number of the version that the update replaced.'),
    replaced_at: exportedTime,
    by_link: or(flag, false),
    status: choice(MEMORY_STATUSES),
    event_time: exportedTime,
    valid_from: orNull(exportedTime),
    valid_to: orNull(exportedTime),
    replaced: replaced.describe('Former values of the fields that changed; times are Unix milliseconds.'),
    written_by: writer,
  })
  .meta({ id: 'RevisionLine' });

const linkLine = z
  .object({
    type: z.literal('link'),
    src: uuid,
    dst: uuid,
    link_type: choice(EDGE_TYPES),
    similarity: orNull(z.number().min(-1).max(1.001)),
    weight: orNull(fraction),
    automatic: or(flag, false),
    winner: orNull(uuid).describe(
      'Id of the memory in whose favour a contradiction was decided; null if it is undecided, or for another type.',
    ),
    created_at: orNull(exportedTime),
    updated_at: orNull(exportedTime),
    written_by: writer,
  })
  .meta({ id: 'LinkLine' });

const warning = z.object({
  code: choice([
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
  message: parsed,
});
const receipt = z.object({ stored: integer(0, MOST), kept: integer(0, MOST), removed: integer(0, MOST) });

const documentLine = z
  .object({
    type: z.literal('document'),
    id: uuid,
    user_id: or(id, ''),
    session_id: or(id, ''),
    external_id: orNull(givenId),
    source: choice(['upload', 'url']),
    url: or(storedUrl, ''),
    file_name: or(text(LIMITS.fileNameCharacters), ''),
    charset: orNull(label(LIMITS.labelCharacters)),
    declared: orNull(choice(DOCUMENT_FORMATS)),
    format: orNull(choice(DOCUMENT_FORMATS)),
    sha256: orNull(z.string().regex(/^[0-9a-f]{64}$/, 'expected 64 hex digits')),
    bytes: orNull(integer(0, MOST)),
    given_title: or(parsed, ''),
    title: or(parsed, ''),
    authors: or(z.array(parsed).max(LIMITS.authors), []),
    language: orNull(label(LIMITS.labelCharacters)),
    published_at: orNull(exportedTime),
    modified_at: orNull(exportedTime),
    etag: orNull(found),
    last_modified: orNull(found),
    document_type: orNull(label(LIMITS.labelCharacters)),
    tags: or(tags, []),
    metadata: or(metadata, {}),
    event_time: orNull(exportedTime),
    expires_at: orNull(exportedTime),
    pages: orNull(integer(0, MOST)),
    characters: counted,
    tokens: counted,
    chunks: integer(0, LIMITS.chunks),
    warnings: or(z.array(warning).max(LIMITS.warnings), []),
    receipt: orNull(receipt),
    created_at: exportedTime,
    updated_at: exportedTime,
    read_at: exportedTime,
    shown_at: orNull(exportedTime),
    ready_at: orNull(exportedTime),
    written_by: writer,
  })
  .meta({ id: 'DocumentLine' });

const textLine = z
  .object({ type: z.literal('document_text'), document: uuid, text: unboundedText })
  .meta({ id: 'DocumentTextLine' });

const settingLine = z
  .object({ type: z.literal('setting'), name: z.literal('retrieval'), value: retrievalSchema })
  .meta({ id: 'SettingLine' });

const evalLine = z.object({ type: z.literal('eval_set'), ...storedEvalSet.shape }).meta({ id: 'EvalSetLine' });

const standingLine = z
  .object({
    type: z.literal('standing_query'),
    id: uuid,
    query: newStanding.shape.query,
    user_id: orNull(givenId).describe('Only memories of this user are compared; null for those of all users.'),
    filters: or(newStanding.shape.filters.unwrap(), {}),
    min_score: orNull(fraction),
    created_at: orNull(exportedTime),
    written_by: writer,
  })
  .meta({ id: 'StandingQueryLine' });

const logItemLine = z
  .object({
    type: z.literal('session_item'),
    user_id: or(id, ''),
    session_id: givenId,
    position: integer(0, MOST).describe('Position in the log, from 0; the items of a log come in this order.'),
    item: jsonValue,
    created_at: orNull(exportedTime),
    written_by: writer,
  })
  .meta({ id: 'SessionItemLine' });

export type SettingLine = z.output<typeof settingLine>;
export type EvalLine = z.output<typeof evalLine>;
export type StandingLine = z.output<typeof standingLine>;

/**
 * Schemas of the lines of an export that hold data (memories, documents, links …) rather than configuration, by the
 * line's type.
 */
const DATA_LINES = {
  memory: memoryLine,
  revision: revisionLine,
  link: linkLine,
  document: documentLine,
  document_text: textLine,
  session_item: logItemLine,
} as const satisfies { readonly [Type in PortableType]?: z.ZodType<Extract<PortableLine, { readonly type: Type }>> };

/** Schemas of all lines of an export between its first and its last line, by the line's type. */
export const LINE_SCHEMAS = {
  ...DATA_LINES,
  setting: settingLine,
  eval_set: evalLine,
  standing_query: standingLine,
} as const;

const lineCounts = z.record(z.string(), z.int().min(0));

/** Schema of the first line of an export. `version` is that of the portable form, `PORTABLE_VERSION`. */
export const headLine = z
  .object({
    type: z.literal('cairn.export'),
    version: z.int().min(1),
    cairn: z.string().optional(),
    tenant: z.string().optional(),
    created_at: z.string().optional(),
    filter: anyObject.optional(),
    models: z.array(anyObject).optional(),
  })
  .meta({ id: 'HeadLine' });

/** Schema of the last line of an export, by which an import recognises that the file is complete. */
export const endLine = z
  .object({
    type: z.literal('end'),
    counts: lineCounts.optional(),
    left_out: lineCounts.optional(),
    sha256: z.string().optional().describe('SHA-256 of all bytes before this line, as hexadecimal digits.'),
  })
  .meta({ id: 'EndLine' });

/** Schema of any line of an export, for the API description. */
export const portableLine = z
  .looseObject({
    type: choice(['cairn.export', ...PORTABLE_TYPES, 'end']).describe('What the line holds.'),
  })
  .meta({ id: 'PortableLine' });
/** Schema of any line of an export, in a reply. It equals `portableLine` but has a name of its own in OpenAPI. */
export const exportedLine = z.looseObject(portableLine.shape).meta({ id: 'ExportedLine' });

// ── The reply to an import ───────────────────────────────────────────────────────────────────────────────────────────

const failure = z.strictObject({ code: z.string(), message: z.string() });
const byType = z.record(z.string(), z.int().min(0)).describe('Number of lines, by type.');

/**
 * Schema of a line of the reply to an import: one refused line, the progress so far, or the summary, which comes last.
 */
export const importReply = z
  .union([
    z.strictObject({
      line: z.int().min(1).describe('Number of the refused line, from 1.'),
      error: failure.describe('Why the line was refused.'),
    }),
    z.strictObject({
      line: z.int().min(1).describe('Number of the last line that was handled so far.'),
      progress: z.int().min(0).describe('Number of lines so far that were stored, known or kept.'),
    }),
    z.strictObject({
      done: z.boolean().describe('Whether all lines were read.'),
      dry_run: z.boolean().describe('Whether nothing was stored, as the request asked.'),
      complete: z.boolean().describe('Whether the last line of an export (type `end`) was there.'),
      checksum: z
        .enum(['match', 'differs', 'absent'])
        .describe(
          'Whether the lines have the SHA-256 that the last line names; `absent` if it names none, or is not there.',
        ),
      stored: byType.describe('Number of lines that were stored, by type.'),
      known: byType.describe('Number of lines that were stored already, by type.'),
      kept: byType.describe('Number of lines about something that was changed here since and stays as it is, by type.'),
      refused: byType.describe('Number of refused lines, by type; those that could not be parsed count as `line`.'),
      unknown_fields: byType.describe('Number of fields that were ignored as unknown, by type and name of the field.'),
      error: failure
        .exactOptional()
        .describe('Why the import ended early; all lines that were answered before are stored.'),
    }),
  ])
  .meta({ id: 'ImportResult' });
export type ImportResult = Wire<typeof importReply>;
