import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import yazl from 'yazl';
import { parseDocument } from '../../../../src/engine/documents/parser/parse-document.ts';
import { PARSE_LIMITS } from '../../../../src/engine/documents/parsed-document.ts';
import type { ReadDocument } from '../../../../src/engine/documents/parser/parser-frames.ts';
import { replySchema } from '../../../../src/engine/documents/parser/parser-replies.ts';
import type { ParseRequest } from '../../../../src/engine/ports.ts';
import { requestOf } from '../../../support/ask-parser.ts';

function parse(content: string | Uint8Array, request: Partial<ParseRequest> = {}): Promise<ReadDocument> {
  return parseDocument(requestOf(content, request), () => {});
}

function zipOf(files: Readonly<Record<string, string>>): Promise<Buffer> {
  const zip = new yazl.ZipFile();
  for (const [name, content] of Object.entries(files)) zip.addBuffer(Buffer.from(content), name);
  zip.end();
  return buffer(zip.outputStream);
}

const PROSE =
  'The committee met on Tuesday to discuss the new budget for the library. Several members felt that the opening hours should be extended, while others pointed out that there was no money for more staff. ';

test.each([
  ['markdown', 'md', '# Title\n\nText.\n'],
  ['text', 'txt', 'Text.\n'],
  ['html', 'html', '<!doctype html><html><head><title>T</title></head><body><p>Text.</p></body></html>'],
  ['csv', 'csv', 'name,age\nAnn,4\n'],
  ['json', 'json', '{"name": "Ann"}'],
  ['ndjson', 'ndjson', '{"name": "Ann"}\n{"name": "Bob"}\n'],
  ['code', 'ts', 'export const a = 1;\n'],
  ['email', 'eml', 'From: a@example.com\r\nTo: b@example.com\r\nSubject: Hi\r\n\r\nText.\r\n'],
])('%s is read by its own parser, and its reply is one that the parent takes', async (format, extension, content) => {
  const { text, ...document } = await parse(content, { extension });
  expect(document).toMatchObject({ format, characters: text.length });
  expect(document.chunks.length).toBe(1);
  expect(() => replySchema.parse({ kind: 'read', rssMb: 1, document })).not.toThrow();
});

test('an archive is what it holds, whatever it is called', async () => {
  const word = await zipOf({ '[Content_Types].xml': '<Types/>', 'word/document.xml': '<document/>' });
  const mismatch = parse(word, { declared: 'xlsx' });
  await expect(mismatch).rejects.toMatchObject({ name: 'DocumentError', code: 'unsupported_document' });
  const other = parse(await zipOf({ 'a.txt': 'a' }), { extension: 'zip' });
  await expect(other).rejects.toMatchObject({ name: 'DocumentError', code: 'unsupported_document' });
});

test('the chunks cover the text, and its tokens are counted once', async () => {
  const paragraphs = Array.from({ length: 200 }, (_, index) => `## Meeting ${index}\n\n${PROSE}\n\n`);
  const options = { extension: 'md', sizeTokens: 256 };
  const whole = await parse(paragraphs.join(''), { ...options, overlapTokens: 0 });
  const overlapping = await parse(paragraphs.join(''), { ...options, overlapTokens: 64 });
  for (const { text, chunks } of [whole, overlapping]) {
    expect(chunks[0]?.startOffset).toBe(0);
    expect(chunks.at(-1)?.endOffset).toBe(text.length);
    for (const [index, chunk] of chunks.entries()) {
      expect(chunk.startOffset).toBeLessThanOrEqual(chunks[index - 1]?.endOffset ?? 0);
    }
  }
  expect(whole.tokens).toBe(whole.chunks.reduce((sum, { tokens }) => sum + tokens, 0));
  expect(Math.abs(overlapping.tokens - whole.tokens)).toBeLessThan(whole.tokens * 0.02);
  expect(whole.outline.length).toBe(200);
});

test.each([
  ['nothing', ''],
  ['blanks', ' \n\t\u00a0\u3000\n'],
  ['what has no width', '\u200b\ufeff\u200d\n'],
])('a document of %s has no chunks', async (_, content) => {
  expect(await parse(content, { declared: 'text' })).toMatchObject({ chunks: [], tokens: 0, outline: [] });
});

test('the language is the one that the file names, else the one that it is written in; code has none', async () => {
  const html = (lang: string) => `<!doctype html><html${lang}><body><p>${PROSE}</p></body></html>`;
  expect(await parse(html(' lang="de_at"'), { declared: 'html' })).toMatchObject({ language: 'de-AT' });
  expect(await parse(html(' lang="English"'), { declared: 'html' })).toMatchObject({ language: 'en' });
  expect(await parse(html(''), { declared: 'html' })).toMatchObject({ language: 'en' });
  expect(await parse(PROSE, { declared: 'code', extension: 'ts' })).toMatchObject({ language: null });
});

test('no control characters, and titles of a bounded length', async () => {
  const html = (title: string) =>
    `<!doctype html><html><head><title>${title}</title></head><body><p>a\u0001b\u0085c</p></body></html>`;
  const { title, text } = await parse(html(`a &#10; b\u0002 ${'😀'.repeat(PARSE_LIMITS.titleCharacters)}`));
  expect(title.startsWith('a b 😀')).toBe(true);
  expect(title.length).toBeLessThanOrEqual(PARSE_LIMITS.titleCharacters);
  expect(title.isWellFormed() && !title.includes('\uFFFD')).toBe(true);
  expect(text).not.toMatch(/[\0-\x08\x0b-\x1f\x7f]/);
  const json = await parse('{"key": "a\\u0001b\\fc\\u007f"}', { declared: 'json' });
  expect(json.text).toMatch(/a b\nc /);
});

test('too much text and too many chunks are refused', async () => {
  const long = Buffer.alloc(PARSE_LIMITS.textCharacters + 1, `${PROSE}\n`);
  await expect(parse(long, { declared: 'text' })).rejects.toMatchObject({ code: 'document_too_large' });
  const short = Buffer.alloc(PARSE_LIMITS.chunks * 64 * 6, `${PROSE}\n`);
  const cut = parse(short, { declared: 'text', sizeTokens: 64, overlapTokens: 0 });
  await expect(cut).rejects.toMatchObject({ code: 'document_too_large' });
});
