import fs from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';
import ts from 'typescript';
import { afterAll, describe, expect, test } from 'vitest';
import { createParserPool } from '../../../../src/engine/adapters/parser-pool.ts';
import { OPEN_MODULES } from '../../../../src/engine/documents/parser/sandbox-process.ts';
import type { DocumentFormat } from '../../../../src/engine/types.ts';
import { requestOf } from '../../../support/ask-parser.ts';
import { packDocx } from '../../../support/make-docx.ts';
import { packEpub, packPptx, packXlsx, shape } from '../../../support/make-office.ts';
import { makePdf } from '../../../support/make-pdf.ts';

const ROOT = path.resolve(import.meta.dirname, '../../../..');
const PARSER = path.join(ROOT, 'src/engine/documents/parser/parse-document.ts');

/** Modules of Node and files of ours that a file imports; types, which are not loaded, are left out. */
function importsOf(file: string): { readonly builtIns: string[]; readonly files: string[] } {
  const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ESNext, verbatimModuleSyntax: true };
  const code = ts.transpileModule(fs.readFileSync(file, 'utf8'), { compilerOptions: options }).outputText;
  const names = ts.preProcessFile(code).importedFiles.map(({ fileName }) => fileName);
  return {
    builtIns: names.filter((name) => isBuiltin(name)).map((name) => name.replace(/^node:/, '')),
    files: names.filter((name) => name.startsWith('.')).map((name) => path.resolve(path.dirname(file), name)),
  };
}

/** All files of ours that are loaded when a document is read, of whatever format. */
function filesLoadedBy(entry: string): Set<string> {
  const seen = new Set([entry]);
  for (const file of seen) for (const imported of importsOf(file).files) seen.add(imported);
  return seen;
}

describe('the modules that read documents', () => {
  const files = [...filesLoadedBy(PARSER)];

  test('are all found from the entry', () => {
    const folder = path.join(ROOT, 'src/engine/documents/formats');
    const formats = fs.readdirSync(folder).map((name) => path.join(folder, name));
    expect(formats.filter((file) => !files.includes(file))).toEqual([]);
  });

  test('import only those modules of Node that a parser can load', () => {
    const open: ReadonlySet<string> = new Set(OPEN_MODULES);
    const closed = files.flatMap((file) =>
      importsOf(file)
        .builtIns.filter((name) => !open.has(name))
        .map((name) => `${path.relative(ROOT, file)} imports ${name}`),
    );
    expect(closed).toEqual([]);
  });
});

describe('a sandboxed process reads', () => {
  const pool = createParserPool({ size: 1, timeoutMs: 60_000, heapMb: 512 });
  afterAll(() => pool.close());

  const eml = [
    'From: Ann <ann@example.org>',
    'To: bob@example.org',
    'Subject: Harbour',
    'MIME-Version: 1.0',
    'Content-Type: multipart/alternative; boundary=x',
    '',
    '--x',
    'Content-Type: text/html; charset=koi8-r',
    'Content-Transfer-Encoding: base64',
    '',
    Buffer.from('<p>The lantern is lit.</p>').toString('base64'),
    '--x--',
  ].join('\r\n');
  const inlineCell = '<row r="1"><c t="inlineStr"><is><t>The lantern is lit.</t></is></c></row>';
  const html = '<!doctype html><html><head><title>T</title></head><body><p>The lantern is lit.</p></body></html>';

  const documents: readonly (readonly [DocumentFormat, string, () => Promise<string | Uint8Array>])[] = [
    ['docx', 'docx', () => packDocx('<w:p><w:r><w:t>The lantern is lit.</w:t></w:r></w:p>')],
    ['pptx', 'pptx', () => packPptx([{ shapes: shape('The lantern is lit.', 'title') }])],
    ['xlsx', 'xlsx', () => packXlsx([{ name: 'Sheet', rows: inlineCell }])],
    ['epub', 'epub', () => packEpub({ 'a.xhtml': '<p>The lantern is lit.</p>' })],
    ['pdf', 'pdf', async () => makePdf({ pages: [{ texts: [{ text: 'The lantern is lit.', x: 72, y: 700 }] }] })],
    ['html', 'html', async () => html],
    ['csv', 'csv', async () => 'name,note\nAnn,The lantern is lit.\n'],
    ['email', 'eml', async () => eml],
    ['json', 'json', async () => '{"note": "The lantern is lit."}'],
    ['ndjson', 'ndjson', async () => '{"note": "The lantern is lit."}\n{"note": "And bright."}\n'],
    ['markdown', 'md', async () => '# Harbour\n\nThe lantern is lit.\n'],
    ['text', 'txt', async () => 'The lantern is lit.\n'],
    ['code', 'ts', async () => "export const note = 'The lantern is lit.';\n"],
  ];

  test.each(documents)('%s', async (format, extension, make) => {
    const declared = ['docx', 'pptx', 'xlsx', 'epub', 'pdf', 'html'].includes(format) ? null : format;
    const { chunks, ...read } = await pool.parse(requestOf(await make(), { extension, declared }));
    expect(read.format).toBe(format);
    expect(chunks.map(({ content }) => content).join('')).toContain('The lantern is lit.');
  });

  test('text in an encoding that needs a table', async () => {
    const japanese = Buffer.from('93fa967b8cea82cc95b68fcd82c582b781420a', 'hex'); // Shift_JIS
    const { chunks } = await pool.parse(requestOf(japanese, { declared: 'text', charset: 'shift_jis' }));
    expect(chunks[0]?.content).toContain('日本語の文章です。');
  });
});
