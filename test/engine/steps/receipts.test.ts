import { createHash } from 'node:crypto';
import { text as textOf } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DocumentFormat, TextReceipt } from '../../../src/engine/types.ts';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { packDocx } from '../../support/make-docx.ts';
import { packEpub, packXlsx } from '../../support/make-office.ts';
import { drawLines, makePdf } from '../../support/make-pdf.ts';
import { newDocument, upload } from '../../support/new-document.ts';
import { HOSTILE_SHAPES } from '../text/hostile-shapes.ts';
import { sqliteOf } from '../../support/sqlite-of.ts';

let fixture: TestEngine;
beforeAll(async () => {
  const settings = { OM_CHUNK_TOKENS: '64', OM_CHUNK_OVERLAP_TOKENS: '16', OM_EMBEDDINGS: 'none' };
  fixture = await openTestEngine({ settings });
});
afterAll(() => fixture.close());

interface File {
  readonly bytes: string | Buffer;
  readonly declared?: DocumentFormat | null;
  readonly externalId?: string;
}

let serial = 0;

async function receiptOf({ bytes, declared = 'markdown', externalId }: File): Promise<TextReceipt> {
  const source = { ...(await upload(fixture.tenant, bytes)), declared };
  // Each text is a document of its own user, since equal bytes are one document.
  const userId = externalId === undefined ? `user ${serial++}` : 'one user';
  const added = await fixture.tenant.addDocument(newDocument(source, { userId, externalId: externalId ?? null }));
  await fixture.drain();
  return fixture.tenant.documentReceipt(added.document.id, { limit: 10_000, offset: 0 });
}

/** Checks that the spans tile the text, character by character, by what their memories hold. */
async function expectTiled(receipt: TextReceipt): Promise<string> {
  let text = '';
  for (const { memoryId, startOffset, ownOffset, endOffset, isIntact } of receipt.spans) {
    const { content } = await fixture.tenant.getMemory(memoryId);
    expect([isIntact, ownOffset, content.length]).toEqual([true, text.length, endOffset - startOffset]);
    expect(text.slice(startOffset)).toBe(content.slice(0, ownOffset - startOffset));
    text += content.slice(ownOffset - startOffset);
  }
  expect([receipt.isComplete, receipt.held, receipt.total]).toEqual([true, text.length, receipt.spans.length]);
  if (receipt.total === 0) return text;
  expect(text).toHaveLength(receipt.characters);
  expect(receipt.sha256).toBe(createHash('sha256').update(text).digest('hex'));
  expect(receipt.heldSha256).toBe(receipt.sha256);
  expect(text).toBe(await textOf(await fixture.tenant.documentContent(receipt.documentId)));
  return text;
}

describe('every character of a text is held or named', () => {
  test('of random texts', async () => {
    const piece = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 60 }),
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.constantFrom('# ', '\n\n', '\r\n', '```\n', '| a | b |\n', '- ', '。', 'x'.repeat(700), ' '.repeat(900)),
      fc.constantFrom('👨‍👩‍👧‍👦'.repeat(20), 'A sentence that says something. '.repeat(9)),
    );
    const run = fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 25 }), async (pieces) => {
      await expectTiled(await receiptOf({ bytes: `${serial} ${pieces.join('').toWellFormed()}` }));
    });
    await fc.assert(run, { numRuns: 25 });
  });

  test.each(Object.entries(HOSTILE_SHAPES))('of %s', async (_, make) => {
    await expectTiled(await receiptOf({ bytes: make(4_000) }));
  });

  test('of Word, Excel, EPUB, e-mail, JSON, CSV and code', async () => {
    const words = 'The harbour master wrote down every ship that came in before noon. ';
    const paragraph = `<w:p><w:r><w:t>${words.repeat(9)}</w:t></w:r></w:p>`;
    const cells = Array.from(
      { length: 60 },
      (_, at) => `<row><c t="inlineStr"><is><t>${words}${at}</t></is></c></row>`,
    );
    const files: readonly File[] = [
      { bytes: await packDocx(paragraph.repeat(4)), declared: 'docx' },
      { bytes: await packXlsx([{ name: 'Ships', rows: cells.join('') }]), declared: 'xlsx' },
      {
        bytes: await packEpub({ 'a.xhtml': `<p>${words.repeat(20)}</p>`, 'b.xhtml': '<p>End.</p>' }),
        declared: 'epub',
      },
      { bytes: `From: a <a@example.org>\r\nSubject: Ships\r\n\r\n${words.repeat(20)}`, declared: 'email' },
      { bytes: JSON.stringify(Array.from({ length: 40 }, (_, at) => ({ at, words }))), declared: 'json' },
      { bytes: `no,text\n${Array.from({ length: 40 }, (_, at) => `${at},${words}`).join('\n')}`, declared: 'csv' },
      { bytes: `function a() {\n  return 1;\n}\n\n`.repeat(40), declared: 'code' },
    ];
    for (const file of files) expect((await expectTiled(await receiptOf(file))).length).toBeGreaterThan(100);
  });
});

describe('what was left out is named', () => {
  test('running heads and page numbers of a PDF', async () => {
    const pages = [1, 2, 3, 4, 5].map((number) => ({
      texts: [
        { text: 'Annual report of the society', x: 72, y: 760 },
        ...drawLines(['One line.', 'Two lines.', 'Three lines.', `Body ${number}.`, 'Five.', 'Six.', 'Seven.'], {
          x: 72,
          y: 500 - number * 10,
        }),
        { text: `Page ${number + 4}`, x: 300, y: 30 },
      ],
    }));
    const receipt = await receiptOf({ bytes: Buffer.from(makePdf({ pages })), declared: 'pdf' });
    await expectTiled(receipt);
    // Both lines stay where they come first.
    const characters = 4 * 'Annual report of the society'.length + 4 * 'Page 5'.length;
    expect(receipt.omissions).toEqual([{ reason: 'running_head', count: 8, characters }]);
  });

  test('what is around an article, and what markup hides', async () => {
    const article = `<p>${'The market is on Saturdays, and the bakery opens at six. '.repeat(20)}</p>`;
    const html =
      `<html><body><nav>Home Shop Contact</nav><main>${article}</main>` +
      `<p style="display:none">Unseen words</p><footer>Imprint</footer></body></html>`;
    const receipt = await receiptOf({ bytes: html, declared: 'html' });
    await expectTiled(receipt);
    expect(receipt.omissions).toEqual([
      { reason: 'hidden_text', count: 1, characters: 'Unseenwords'.length },
      { reason: 'boilerplate', count: 1, characters: 'HomeShopContactImprint'.length },
    ]);
  });

  test('control characters, and the data at the start of Markdown', async () => {
    const matter = '---\ntitle: Ships\n---\n';
    const receipt = await receiptOf({ bytes: `${matter}Two characters \u0001\u0002 that nobody sees.` });
    expect(await expectTiled(receipt)).toBe('Two characters  that nobody sees.');
    expect(receipt.omissions).toEqual([
      { reason: 'control_characters', count: 2, characters: 2 },
      { reason: 'front_matter', count: 1, characters: matter.length },
    ]);
  });

  test('a text of blanks alone, of which there is no memory', async () => {
    const receipt = await receiptOf({ bytes: ' \n\n \n' });
    expect(receipt).toMatchObject({ isComplete: true, held: 0, characters: 5, spans: [], rootMemoryId: null });
    expect(receipt.omissions).toEqual([{ reason: 'no_text', count: 1, characters: 5 }]);
  });
});

test('a new reading says which memories it kept', async () => {
  const part = (name: string) => `## ${name}\n\n${`What ${name} wrote down for the others. `.repeat(9)}\n\n`;
  await receiptOf({ bytes: `${part('Ann')}${part('Bea')}${part('Cem')}`, externalId: 'letters' });
  const receipt = await receiptOf({ bytes: `${part('Ann')}${part('Bob')}${part('Cem')}`, externalId: 'letters' });
  await expectTiled(receipt);
  const kept = receipt.spans.filter(({ isKept }) => isKept).length;
  expect([receipt.kept, receipt.stored]).toEqual([kept, receipt.total - kept]);
  expect([kept > 0, kept < receipt.total, receipt.removed > 0]).toEqual([true, true, true]);
});

test('a text that was changed or lost since is not called complete', async () => {
  const receipt = await receiptOf({ bytes: 'A line that somebody changes behind our back.\n\n'.repeat(20) });
  const { memoryId } = receipt.spans[1]!;
  const again = () => fixture.tenant.documentReceipt(receipt.documentId, { limit: 1, offset: 1 });
  const was = (await fixture.tenant.getMemory(memoryId)).content;
  const { store } = fixture.batch.open();
  const put = (content: string) =>
    sqliteOf(store).db.prepare('UPDATE memories SET content = ? WHERE id = ?').run(content, memoryId);
  // The last place is not one that the chunk in front has, too.
  put(was.replace(/somebody(?!.*somebody)/s, 'SOMEBODY'));
  expect(await again()).toMatchObject({
    isComplete: false,
    total: receipt.total,
    spans: [{ memoryId, isIntact: false }],
  });
  put(was.slice(1));
  expect(await again()).toMatchObject({ isComplete: false, spans: [{ isIntact: false }] });
  put(was);
  expect((await again()).isComplete).toBe(true);
});

test('a document that was not read has no receipt', async () => {
  const source = await upload(fixture.tenant, 'Not read yet.');
  const { document } = await fixture.tenant.addDocument(newDocument(source, { userId: 'waits' }));
  await expect(fixture.tenant.documentReceipt(document.id, { limit: 1, offset: 0 })).rejects.toMatchObject({
    code: 'conflict',
  });
  await fixture.drain();
});
