import { z } from 'zod';
import { DOCUMENT_FORMATS, OMISSION_REASONS } from '../../types.ts';
import { DOCUMENT_ERROR_CODES } from '../document-error.ts';
import { PARSE_LIMITS } from '../parsed-document.ts';

const count = z.int().nonnegative();
const offset = count.max(PARSE_LIMITS.textCharacters);
const page = z.int().positive().nullable();
const time = z.int().nullable();
const shortText = z.string().max(PARSE_LIMITS.titleCharacters);

/**
 * Schema of a document that a child process has read. The parent checks it, since a malicious file may control the
 * child.
 */
const readDocumentSchema = z.object({
  format: z.enum(DOCUMENT_FORMATS),
  title: shortText,
  authors: z.array(shortText),
  language: shortText.nullable(),
  publishedAt: time,
  modifiedAt: time,
  warnings: z.array(z.object({ code: shortText, message: shortText, page: z.int().optional() })),
  omissions: z.array(z.object({ reason: z.enum(OMISSION_REASONS), count, characters: count })).max(20),
  pages: count.nullable(),
  characters: offset,
  tokens: count,
  outline: z.array(z.object({ level: z.int().min(1).max(6), text: z.string() })).max(200),
  chunks: z
    .array(
      z.object({
        startOffset: offset,
        endOffset: offset,
        headingPath: z.array(z.string()),
        pageFrom: page,
        pageTo: page,
        tokens: count,
      }),
    )
    .max(PARSE_LIMITS.chunks),
});

/**
 * Schema of the head of a reply. `ready`: the child accepts documents. `page`: it has read some pages of a long file.
 * `read`: it has read the document, whose text is the frame's body. `failed`: it could not read the document. `rssMb`
 * is the child's memory (MB).
 */
export const replySchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ready') }),
  z.object({ kind: z.literal('page'), done: count, pages: count }),
  z.object({ kind: z.literal('read'), rssMb: count, document: readDocumentSchema }),
  z.object({
    kind: z.literal('failed'),
    code: z.enum(DOCUMENT_ERROR_CODES),
    message: z.string().max(1000),
    rssMb: count,
    /** Whether the child ends after this reply. */
    isLast: z.boolean(),
  }),
]);
export type Reply = z.infer<typeof replySchema>;
